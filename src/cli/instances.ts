/** drover instances: machines that providers were asked for. */
import type { InstanceView } from '../protocol/pools.ts';
import { UsageError, type OptionTable } from './args.ts';
import { defineCommand, takePositionals, type CommandContext } from './command.ts';
import { ago } from './durations.ts';
import { EXIT } from './exitCodes.ts';
import { printFacts, type Fact } from './facts.ts';
import { showMoney } from './money.ts';
import { fetchList, pagingOptions, printList } from './paging.ts';
import { statePaint } from './states.ts';
import type { Column } from './table.ts';

const options = {
  ...pagingOptions,
  pool: { kind: 'text', value: 'POOL', help: 'only of this pool' },
  ended: { kind: 'flag', help: 'those that have ended, the newest first' },
  script: { kind: 'flag', help: 'of one: what it was launched with' },
} as const satisfies OptionTable;

export const instancesCommand = defineCommand({
  name: 'instances',
  summary: 'List machines that providers were asked for; show one, or give it back',
  usage: [
    'instances [--pool POOL] [--ended] [--limit N | --all]',
    'instances ID [--script]',
    'instances destroy ID…',
  ],
  options,
  details:
    'A machine that was asked for is INTENDED, REQUESTED, BOOTING, then JOINED; one that\n' +
    'goes is DRAINING, DESTROYING until its provider does not have it, then DESTROYED.',
  async run(parsed, context) {
    const [first, ...ids] = parsed.positionals;
    if (first === undefined) {
      takePositionals(parsed, []);
      return listInstances(context, parsed.options);
    }
    if (first === 'destroy') return destroyAll(context, ids);
    const [id] = takePositionals(parsed, ['ID']);
    const instance = await context.client().getInstance(id!);
    if (context.json) await context.printJson(instance);
    else if (parsed.options.script) await context.print(instance.script || '(nothing is kept)');
    else await printFacts(context, factsOf(instance, context.io.now()));
    return EXIT.ok;
  },
});

/** Also what `drover cancel` does with the id of an instance. */
export async function destroyAll(context: CommandContext, ids: readonly string[]): Promise<number> {
  if (ids.length === 0) throw new UsageError('ID is missing', 'drover instances destroy ID');
  for (const id of ids) {
    const instance = await context.client().destroyInstance(id);
    if (context.json) await context.printJson(instance);
    else await context.print(`${id} ${instance.state}`);
  }
  return EXIT.ok;
}

async function listInstances(
  context: CommandContext,
  given: { limit: string | undefined; all: boolean; pool: string | undefined; ended: boolean },
): Promise<number> {
  const { pool, ended } = given;
  const listed = await fetchList(given, (page) => {
    return context.client().listInstances({ ...page, pool, ended });
  });
  const whenEmpty = ended
    ? 'no instance has ended'
    : 'no instances; pools with a provider bring them when work waits (docs/pools.md)';
  await printList(context, listed, columns(context.io.now()), whenEmpty);
  return EXIT.ok;
}

function columns(nowMs: number): Column<InstanceView>[] {
  return [
    { title: 'ID', value: ({ id }) => id },
    { title: 'POOL', value: ({ pool }) => pool },
    {
      title: 'STATE',
      value: ({ state, failure }) => (failure ? `${state} ${failure}` : state),
      paint: ({ state, failure }, paint) => statePaint(failure ? 'FAILED' : state, paint),
    },
    { title: 'HANDLE', value: ({ handle }) => handle || '-' },
    { title: 'HOST', value: ({ host }) => host || '-' },
    { title: 'WORKERS', value: ({ workers, size }) => `${workers.length}/${size}` },
    { title: 'ASKED', value: ({ createdAtMs }) => ago(createdAtMs, nowMs) },
    { title: 'COST', value: ({ spentMicros }) => showMoney(spentMicros) },
    { title: 'REASON', value: ({ reason }) => reason || '-' },
  ];
}

function factsOf(instance: InstanceView, nowMs: number): Fact[] {
  const { state, failure, startsAtMs, endsAtMs } = instance;
  const at = (ms: number | null): string =>
    ms === null ? '-' : `${new Date(ms).toISOString()} (${ago(ms, nowMs)})`;
  const time = (ms: number | null): string => (ms === null ? '-' : new Date(ms).toISOString());
  return [
    ['instance', instance.id],
    ['pool', `${instance.pool} (${instance.provider || 'no provider any more'})`],
    ['state', failure ? `${state}, ${failure}` : state],
    ['reason', instance.reason || '-'],
    ['handle', instance.handle || '-'],
    ['host', instance.host || '-'],
    ['workers', `${instance.workers.join(', ') || 'none'} of ${instance.size}`],
    ['for', instance.tasks.join(', ') || 'any work'],
    ['run as', instance.runAs || '-'],
    ['cost', `${showMoney(instance.spentMicros)}, ${showMoney(instance.priceHourMicros)}/h`],
    ['restarts', String(instance.restarts)],
    ['asked for', at(instance.createdAtMs)],
    ['taken', at(instance.requestedAtMs)],
    ['expected', time(startsAtMs)],
    ['started', at(instance.runningAtMs)],
    ['joined', at(instance.joinedAtMs)],
    ['ends', time(endsAtMs)],
    ['to be gone', at(instance.destroyAtMs)],
    ['gone', at(instance.endedAtMs)],
  ];
}
