/** Ctrl-C counted: the first lets go of the job, the second asks for its end. */
import { setTimeout as delay } from 'node:timers/promises';
import type { DroverClient } from '../protocol/client.ts';
import type { CommandContext } from './command.ts';
import { EXIT } from './exitCodes.ts';
import type { CliIo } from './io.ts';

export interface Interrupts {
  first: AbortSignal;
  second: AbortSignal;
  /** Gives Ctrl-C back to the system: the next one ends the process. */
  stop(): void;
}

/** How long a second Ctrl-C is waited for before the command ends and leaves the job alone. */
const DETACH_WINDOW_MS = 3000;

export function watchInterrupts(io: CliIo): Interrupts {
  const first = new AbortController();
  const second = new AbortController();
  const stop = io.onInterrupt(() => {
    if (first.signal.aborted) second.abort();
    else first.abort();
  });
  return { first: first.signal, second: second.signal, stop };
}

export async function detach(
  context: CommandContext,
  client: DroverClient,
  id: string,
  interrupts: Interrupts,
): Promise<number> {
  await context.notice(
    `detached, job ${id} goes on. Ctrl-C again within ${DETACH_WINDOW_MS / 1000} s cancels it.\n` +
      `  follow: drover logs -f ${id}\n  cancel: drover cancel ${id}`,
  );
  if (!(await aborted(interrupts.second, DETACH_WINDOW_MS))) return EXIT.interrupt;
  interrupts.stop();
  await client.cancelJob(id);
  await context.notice(`cancel of job ${id} requested`);
  return EXIT.interrupt;
}

async function aborted(signal: AbortSignal, withinMs: number): Promise<boolean> {
  try {
    await delay(withinMs, undefined, { signal });
    return false;
  } catch (error) {
    if (signal.aborted) return true;
    throw error;
  }
}
