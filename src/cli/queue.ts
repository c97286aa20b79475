/** drover queue: what waits, in the order it will be looked at, and why. */
import type { QueueEntry } from '../protocol/jobs.ts';
import { defineCommand, takePositionals } from './command.ts';
import { shortDuration } from './durations.ts';
import { EXIT } from './exitCodes.ts';
import { fetchList, pagingOptions, printList } from './paging.ts';
import type { Column } from './table.ts';

export const queueCommand = defineCommand({
  name: 'queue',
  summary: 'List what waits, and why',
  usage: ['queue [--limit N | --all]'],
  options: pagingOptions,
  async run(parsed, context) {
    takePositionals(parsed, []);
    const client = context.client();
    const listed = await fetchList(parsed.options, (page) => client.queue(page));
    const whenEmpty = 'nothing waits; `drover jobs` lists what runs and ran';
    await printList(context, listed, columns(context.io.now()), whenEmpty);
    return EXIT.ok;
  },
});

function columns(nowMs: number): Column<QueueEntry>[] {
  return [
    { title: '#', value: (entry) => String(entry.position) },
    { title: 'JOB', value: (entry) => entry.job },
    { title: 'NAME', value: (entry) => entry.name || '-' },
    { title: 'OWNER', value: (entry) => entry.owner },
    { title: 'PRIORITY', value: (entry) => entry.priority },
    { title: 'TASKS', value: (entry) => String(entry.pendingTasks) },
    { title: 'WAITS', value: (entry) => shortDuration(nowMs - entry.createdAtMs) },
    { title: 'REASON', value: (entry) => entry.reason },
  ];
}
