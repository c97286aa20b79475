/** drover audit: who looked into what and who changed what. */
import type { EventView } from '../protocol/jobs.ts';
import { defineCommand, takePositionals } from './command.ts';
import { EXIT } from './exitCodes.ts';
import { fetchList, pagingOptions, printList } from './paging.ts';
import type { Column } from './table.ts';

export const auditCommand = defineCommand({
  name: 'audit',
  summary: 'List who looked into jobs and who changed what, the newest first',
  usage: ['audit [--limit N | --all]'],
  options: pagingOptions,
  async run(parsed, context) {
    takePositionals(parsed, []);
    const client = context.client();
    const listed = await fetchList(parsed.options, (page) => client.listAudit(page));
    await printList(context, listed, columns, 'nobody looked into anything yet');
    return EXIT.ok;
  },
});

const columns: Column<EventView>[] = [
  { title: 'WHEN', value: ({ atMs }) => new Date(atMs).toISOString() },
  { title: 'WHAT', value: ({ kind }) => kind },
  { title: 'BY', value: ({ data }) => String(data['by'] ?? data['user'] ?? '-') },
  { title: 'OF', value: ({ task, worker }) => task ?? worker ?? '-' },
  { title: 'DETAILS', value: ({ data }) => details(data) },
];

function details({ by: _by, user: _user, ...others }: EventView['data']): string {
  return Object.entries(others)
    .map(([name, value]) => `${name}=${String(value)}`)
    .join(' ');
}
