/** Which task a person means by an id and --task. */
import type { DroverClient } from '../protocol/client.ts';
import { UsageError } from './args.ts';
import { splitTask } from './logs.ts';

/** A job of one task is named by the job alone. `usage` is how to name one of several. */
export async function findTask(
  client: DroverClient,
  written: string,
  flag: string | undefined,
  usage: string,
): Promise<string> {
  const { id, task } = splitTask(written, flag);
  if (task !== undefined) return `${id}.${task}`;
  // Two, because a full page may be followed by one that is empty.
  const { items } = await client.listTasks(id, { limit: 2 });
  if (items.length === 1) return items[0]!.id;
  throw new UsageError(`job ${id} has several tasks`, `drover ${usage.replace('ID', id)}`);
}
