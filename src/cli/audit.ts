/** drover audit: who looked into what and who changed what, and whether that record is whole. */
import { brokenAt } from '../model/auditChain.ts';
import { eachItem } from '../protocol/client.ts';
import type { EventView } from '../protocol/jobs.ts';
import { UsageError } from './args.ts';
import { defineCommand, takePositionals, type CommandContext } from './command.ts';
import { EXIT } from './exitCodes.ts';
import { fetchList, pagingOptions, printList } from './paging.ts';
import type { Column } from './table.ts';

export const auditCommand = defineCommand({
  name: 'audit',
  summary: 'List who did what, the newest first, or check that nothing of it was changed',
  usage: ['audit [--limit N | --all]', 'audit --verify [--head HASH]'],
  options: {
    verify: { kind: 'flag', help: 'compute the chain of hashes again, from the first entry on' },
    head: { kind: 'text', value: 'HASH', help: 'verify: a head that was noted earlier is in it' },
    ...pagingOptions,
  },
  details:
    'Each entry has a hash that covers it and the entry before it. --verify prints the last:\n' +
    'keep it elsewhere, and --verify --head HASH proves later that nothing before it was lost.',
  async run(parsed, context) {
    takePositionals(parsed, []);
    const { verify: isCheck, head, ...paging } = parsed.options;
    if (isCheck) return verify(context, head);
    if (head !== undefined) throw new UsageError('--head is for drover audit --verify');
    const client = context.client();
    const listed = await fetchList(paging, (page) => client.listAudit(page));
    await printList(context, listed, columns, 'nobody did anything yet');
    return EXIT.ok;
  },
});

async function verify(context: CommandContext, head: string | undefined): Promise<number> {
  const client = context.client();
  const newestFirst: EventView[] = [];
  for await (const entry of eachItem((page) => client.listAudit(page), 500))
    newestFirst.push(entry);
  const entries = newestFirst.toReversed();
  const broken = brokenAt(entries);
  const last = entries.at(-1)?.hash ?? null;
  const missing = head !== undefined && !entries.some(({ hash }) => hash === head);
  const whole = broken === null && !missing;
  if (context.json) await context.printJson({ whole, entries: entries.length, head: last, broken });
  else if (broken !== null) await context.print(brokenText(entries, broken));
  else if (missing) await context.print(`NOT WHOLE: no entry has the hash ${head}`);
  else await context.print(`whole: ${entries.length} entries, head ${last ?? '-'}`);
  return whole ? EXIT.ok : EXIT.failed;
}

function brokenText(entries: EventView[], at: number): string {
  const { epoch, seq, kind, atMs } = entries[at]!;
  const when = new Date(atMs).toISOString();
  return `NOT WHOLE: entry ${at + 1} of ${entries.length} (${epoch}.${seq}, ${kind}, ${when})`;
}

const columns: Column<EventView>[] = [
  { title: 'WHEN', value: ({ atMs }) => new Date(atMs).toISOString() },
  { title: 'WHAT', value: ({ kind }) => kind },
  { title: 'BY', value: ({ data }) => String(data['by'] ?? data['user'] ?? '-') },
  { title: 'OF', value: ({ job, task, worker }) => task ?? job ?? worker ?? '-' },
  { title: 'DETAILS', value: ({ data }) => details(data) },
];

function details({ by: _by, ...others }: EventView['data']): string {
  return Object.entries(others)
    .map(([name, value]) => `${name}=${String(value)}`)
    .join(' ');
}
