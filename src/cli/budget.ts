/** drover budget: what tenants and users may use, what they have used, and changing it. */
import { AT_LIMIT, BUDGET_MODES } from '../model/budget.ts';
import type { BudgetInput, BudgetView } from '../protocol/budgets.ts';
import { oneOf, UsageError, type OptionTable, type OptionValues } from './args.ts';
import { LIMIT_NAMES, parseLimits, showLimit } from './budgetValues.ts';
import { defineCommand, type CommandContext } from './command.ts';
import { EXIT } from './exitCodes.ts';
import { printList } from './paging.ts';
import type { Column } from './table.ts';

const options = {
  set: { kind: 'list', value: 'LIMITS', help: `NAME=VALUE,…: ${LIMIT_NAMES.join(', ')}` },
  unset: { kind: 'list', value: 'NAMES', help: 'limit these no longer' },
  mode: { kind: 'text', value: 'M', help: 'over a limit: hard holds work, soft puts it last' },
  'at-limit': { kind: 'text', value: 'A', help: 'running work then may finish, or is to stop' },
  delete: { kind: 'flag', help: 'remove the whole budget' },
} as const satisfies OptionTable;

type Flags = OptionValues<typeof options>;

export const budgetCommand = defineCommand({
  name: 'budget',
  summary: 'Show or change what tenants and users may use',
  usage: [
    'budget [TENANT[/USER]]',
    'budget TENANT[/USER] [--set LIMITS] [--unset NAMES] [--mode M] [--at-limit A]',
    'budget TENANT[/USER] --delete',
  ],
  options,
  details:
    'Changing needs a token with the scope budgets:manage. Days and months are those of UTC.\n\n' +
    'examples:\n' +
    '  drover budget vision --set devices=8,hours/month=5000 --mode soft\n' +
    '  drover budget vision/ada --set money/day=50,money/month=1000 --at-limit stop',
  async run(parsed, context) {
    const { positionals, rest } = parsed;
    const extra = positionals[1] ?? rest?.[0];
    if (extra !== undefined) throw new UsageError(`unexpected argument ${JSON.stringify(extra)}`);
    const flags: Flags = parsed.options;
    const target = positionals[0] === undefined ? null : parseTarget(positionals[0]);
    if (!changes(flags)) return show(context, target);
    if (!target) throw new UsageError('whose budget? TENANT or TENANT/USER is missing');
    return flags.delete ? remove(context, target, flags) : change(context, target, flags);
  },
});

interface Target {
  tenant: string;
  user: string;
}

/** A user's name may hold a slash, a tenant's may not. */
function parseTarget(text: string): Target {
  const slash = text.indexOf('/');
  const tenant = slash < 0 ? text : text.slice(0, slash);
  const user = slash < 0 ? '' : text.slice(slash + 1);
  if (tenant === '' || (slash >= 0 && user === '')) {
    throw new UsageError(`${JSON.stringify(text)} is not TENANT or TENANT/USER`);
  }
  return { tenant, user };
}

function changes({ set, unset, mode, 'at-limit': atLimit, delete: gone }: Flags): boolean {
  return set.length > 0 || unset.length > 0 || mode !== undefined || atLimit !== undefined || gone;
}

async function show(context: CommandContext, target: Target | null): Promise<number> {
  const all = await context.client().listBudgets();
  const items = target ? all.filter((view) => isOf(view, target)) : all;
  const whenEmpty = target
    ? `no budget of ${showTarget(target)}: nothing limits it but the whole tenant's`
    : 'no budgets; `drover budget TENANT --set devices=8` makes one';
  await printList(context, { items, more: false }, COLUMNS, whenEmpty);
  return EXIT.ok;
}

function isOf(view: BudgetView, { tenant, user }: Target): boolean {
  return view.tenant === tenant && view.user === user;
}

function showTarget({ tenant, user }: Target): string {
  return user ? `${tenant}/${user}` : tenant;
}

/** Read, changed and written at the version read: what somebody else set meanwhile is not lost. */
async function change(context: CommandContext, target: Target, flags: Flags): Promise<number> {
  const wanted = {
    ...parseLimits(flags.set, flags.unset),
    ...(flags.mode !== undefined && { mode: oneOf(flags.mode, BUDGET_MODES, '--mode') }),
    ...(flags['at-limit'] !== undefined && {
      atLimit: oneOf(flags['at-limit'], AT_LIMIT, '--at-limit'),
    }),
  };
  const client = context.client();
  const present = (await client.listBudgets()).find((view) => isOf(view, target));
  const { used: _, ...base } = present ?? { ...NO_LIMITS, ...target, used: null };
  const view = await client.setBudget({ ...base, ...wanted });
  if (context.json) await context.printJson(view);
  else await printList(context, { items: [view], more: false }, COLUMNS, '');
  return EXIT.ok;
}

/** Version 0: refused when somebody else makes it first. */
const NO_LIMITS: Omit<BudgetInput, 'tenant' | 'user'> = {
  weight: 1,
  deviceMillis: null,
  deviceHoursPerDay: null,
  deviceHoursPerMonth: null,
  microsPerDay: null,
  microsPerMonth: null,
  mode: 'hard',
  atLimit: 'finish',
  version: 0,
};

async function remove(context: CommandContext, target: Target, flags: Flags): Promise<number> {
  const { set, unset, mode, 'at-limit': atLimit } = flags;
  if (set.length > 0 || unset.length > 0 || mode !== undefined || atLimit !== undefined) {
    throw new UsageError('--delete removes the whole budget: nothing else goes with it');
  }
  await context.client().deleteBudget(target.tenant, target.user);
  if (context.json) await context.printJson({ ...target, deleted: true });
  else await context.print(`${showTarget(target)} has no budget any more`);
  return EXIT.ok;
}

const COLUMNS: Column<BudgetView>[] = [
  { title: 'TENANT', value: (view) => view.tenant },
  { title: 'USER', value: (view) => view.user || '(all)' },
  ...LIMIT_NAMES.map((name) => ({
    title: name.toUpperCase(),
    value: (view: BudgetView) => showLimit(name, view),
  })),
  { title: 'MODE', value: (view) => view.mode },
  { title: 'AT LIMIT', value: (view) => view.atLimit },
];
