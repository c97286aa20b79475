/** drover hosts: the machines behind workers, and what is held against them. */
import type { HostView } from '../protocol/pools.ts';
import { UsageError } from './args.ts';
import { defineCommand, takePositionals } from './command.ts';
import { ago } from './durations.ts';
import { EXIT } from './exitCodes.ts';
import { printList } from './paging.ts';
import type { Column } from './table.ts';

const WORDS = { block: 'blocked', allow: 'allowed', clear: 'clear' } as const;

export const hostsCommand = defineCommand({
  name: 'hosts',
  summary: 'List hosts with their reputation; block, allow or clear one',
  usage: ['hosts', 'hosts block HOST…', 'hosts allow HOST…', 'hosts clear HOST…'],
  options: {},
  details:
    'A host is named POOL/NAME, as the list shows it. `block`: nothing is started there.\n' +
    '`allow`: whatever happened. `clear`: all that is held against it is forgotten.',
  async run(parsed, context) {
    const [verb, ...hosts] = parsed.positionals;
    const client = context.client();
    if (verb === undefined) {
      takePositionals(parsed, []);
      const items = await client.listHosts();
      const whenEmpty = 'nothing is held against any host';
      await printList(context, { items, more: false }, columns(context.io.now()), whenEmpty);
      return EXIT.ok;
    }
    const word = Object.hasOwn(WORDS, verb) ? WORDS[verb as keyof typeof WORDS] : undefined;
    if (!word)
      throw new UsageError(`unknown: hosts ${verb}`, 'drover hosts block|allow|clear HOST');
    if (hosts.length === 0) throw new UsageError('HOST is missing', `drover hosts ${verb} HOST`);
    for (const host of hosts) {
      const view = await client.setHost({ host, word });
      if (context.json) await context.printJson(view);
      else await context.print(`${view.id} ${view.avoided || 'is used'}`);
    }
    return EXIT.ok;
  },
});

function columns(nowMs: number): Column<HostView>[] {
  return [
    { title: 'HOST', value: ({ id }) => id },
    { title: 'WORKERS', value: ({ workers }) => String(workers) },
    {
      title: 'VERDICT',
      value: ({ verdict, avoided }) =>
        verdict === 'none' ? (avoided ? 'avoided' : 'used') : verdict,
      paint: ({ avoided }, paint) => (avoided ? paint.red : undefined),
    },
    { title: 'PENALTY', value: ({ penalty }) => penalty.toFixed(1) },
    { title: 'FAULTS', value: ({ faults }) => String(faults) },
    {
      title: 'LAST',
      value: ({ lastFaultAtMs: at }) => (at === null ? '-' : ago(at, nowMs)),
    },
    { title: 'EVIDENCE', value: ({ evidence }) => evidence || '-' },
  ];
}
