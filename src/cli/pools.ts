/** drover pools and drover providers: where machines come from, and what stands in their way. */
import type { PoolView } from '../protocol/pools.ts';
import { UsageError } from './args.ts';
import { defineCommand, takePositionals, type CommandContext } from './command.ts';
import { ago } from './durations.ts';
import { EXIT } from './exitCodes.ts';
import { printFacts, type Fact } from './facts.ts';
import { showMoney } from './money.ts';
import { printList } from './paging.ts';
import { printTable, type Column } from './table.ts';

export const poolsCommand = defineCommand({
  name: 'pools',
  summary: 'List pools; show one with the work of others at its site',
  usage: ['pools', 'pools NAME'],
  options: {},
  details:
    'COMING are machines that were asked for and have not joined. A pool that cannot launch\n' +
    'says why, and when it tries again. `drover providers test NAME` asks its provider now.',
  async run(parsed, context) {
    const nowMs = context.io.now();
    const [name] = parsed.positionals;
    const items = await context.client().listPools();
    if (name === undefined) {
      takePositionals(parsed, []);
      await printList(context, { items, more: false }, columns(nowMs), 'no pools');
      return EXIT.ok;
    }
    takePositionals(parsed, ['NAME']);
    const pool = items.find((one) => one.name === name);
    if (!pool) {
      const known = items.map((one) => one.name).join(', ');
      throw new UsageError(`there is no pool "${name}"`, `one of: ${known}`);
    }
    await showPool(context, pool, nowMs);
    return EXIT.ok;
  },
});

export const providersCommand = defineCommand({
  name: 'providers',
  summary: "Ask a pool's provider now what it has",
  usage: ['providers test POOL'],
  options: {},
  async run(parsed, context) {
    const [verb, ...positionals] = parsed.positionals;
    if (verb !== 'test') throw new UsageError('drover providers test POOL');
    const [name] = takePositionals({ positionals, rest: parsed.rest }, ['POOL']);
    const pool = await context.client().lookAtPool(name!);
    await showPool(context, pool, context.io.now());
    return pool.listError === '' ? EXIT.ok : EXIT.failed;
  },
});

async function showPool(context: CommandContext, pool: PoolView, nowMs: number): Promise<void> {
  if (context.json) return context.printJson(pool);
  const facts: Fact[] = [
    ['pool', pool.name],
    ['provider', pool.provider || 'none: agents join by themselves'],
    ['workers', String(pool.workers)],
    ['instances', `${counts(pool)}; at least ${pool.min}, at most ${pool.max}; ${pool.mode}`],
    ['asked', pool.listedAtMs === null ? 'never' : ago(pool.listedAtMs, nowMs)],
    ['problem', problemOf(pool, nowMs) || '-'],
    ['notice', pool.notice || '-'],
    ['spent', spentOf(pool)],
  ];
  await printFacts(context, facts);
  if (pool.others.length === 0) return;
  await context.print('\nwork of others there:');
  await printTable(context.io, pool.others, [
    { title: 'ID', value: ({ handle }) => handle },
    { title: 'NAME', value: ({ name }) => name },
    { title: 'USER', value: ({ user }) => user },
    { title: 'STATE', value: ({ state }) => state },
    { title: 'WHERE', value: ({ where }) => where || '-' },
    { title: 'REASON', value: ({ reason }) => reason || '-' },
  ]);
}

function columns(nowMs: number): Column<PoolView>[] {
  return [
    { title: 'POOL', value: ({ name }) => name },
    { title: 'PROVIDER', value: ({ provider }) => provider || '-' },
    { title: 'WORKERS', value: ({ workers }) => String(workers) },
    { title: 'INSTANCES', value: (pool) => (pool.provider ? counts(pool) : '-') },
    { title: 'MAX', value: ({ provider, max }) => (provider ? String(max) : '-') },
    { title: 'SPENT TODAY', value: ({ spent }) => showMoney(spent.day) },
    {
      title: 'PROBLEM',
      value: (pool) => problemOf(pool, nowMs) || '-',
      paint: (pool, paint) => (problemOf(pool, nowMs) ? paint.yellow : undefined),
    },
  ];
}

function counts({ coming, joined, leaving }: PoolView): string {
  const parts = [`${joined} joined`];
  if (coming > 0) parts.push(`${coming} coming`);
  if (leaving > 0) parts.push(`${leaving} leaving`);
  return parts.join(', ');
}

function problemOf({ listError, error, notBeforeMs }: PoolView, nowMs: number): string {
  if (listError) return `cannot be asked: ${listError}`;
  if (!error) return '';
  if (notBeforeMs === null) return `last failure: ${error}`;
  const seconds = Math.max(0, Math.ceil((notBeforeMs - nowMs) / 1000));
  return `${error} (tries again in ${seconds} s)`;
}

function spentOf({ spent, spendLimits }: PoolView): string {
  const period = (sum: number, limit: number, words: string): string =>
    `${showMoney(sum)}${limit > 0 ? ` of ${showMoney(limit)}` : ''} ${words}`;
  return [
    period(spent.hour, spendLimits.hour, 'this hour'),
    period(spent.day, spendLimits.day, 'today'),
    period(spent.month, spendLimits.month, 'this month'),
    `${showMoney(spent.total)} in all`,
  ].join(', ');
}
