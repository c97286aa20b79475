/** Limits of a budget as people write them: weight=2,devices=8,hours/day=100,money/month=1000. */
import type { BudgetInput, BudgetView } from '../protocol/budgets.ts';
import { oneOf, UsageError } from './args.ts';
import { parseMoney, showMoney } from './money.ts';

type Limits = Omit<BudgetInput, 'tenant' | 'user' | 'version' | 'mode' | 'atLimit'>;

interface LimitKind {
  field: keyof Limits;
  /** What it is when nothing limits it. */
  none: number | null;
  parse(text: string, what: string): number;
  used(view: BudgetView): number;
  show(amount: number): string;
}

const plain = (amount: number): string => String(Number(amount.toFixed(1)));

const LIMITS = {
  weight: {
    field: 'weight',
    none: 1,
    parse: decimal,
    used: () => 0,
    show: String,
  },
  devices: {
    field: 'deviceMillis',
    none: null,
    parse: (text, what) => Math.round(decimal(text, what) * 1000),
    used: ({ used }) => used.deviceMillis,
    show: (amount) => plain(amount / 1000),
  },
  'hours/day': {
    field: 'deviceHoursPerDay',
    none: null,
    parse: decimal,
    used: ({ used }) => used.deviceHoursDay,
    show: plain,
  },
  'hours/month': {
    field: 'deviceHoursPerMonth',
    none: null,
    parse: decimal,
    used: ({ used }) => used.deviceHoursMonth,
    show: plain,
  },
  'money/day': {
    field: 'microsPerDay',
    none: null,
    parse: parseMoney,
    used: ({ used }) => used.microsDay + used.heldMicros,
    show: showMoney,
  },
  'money/month': {
    field: 'microsPerMonth',
    none: null,
    parse: parseMoney,
    used: ({ used }) => used.microsMonth + used.heldMicros,
    show: showMoney,
  },
} as const satisfies Record<string, LimitKind>;

export type LimitName = keyof typeof LIMITS;
export const LIMIT_NAMES = Object.keys(LIMITS) as LimitName[];

/** Each name once, over all flags. */
export function parseLimits(sets: string[], unsets: string[]): Partial<Limits> {
  const wanted = new Map<LimitName, number | null>();
  const add = (name: LimitName, value: number | null): void => {
    if (wanted.has(name)) throw new UsageError(`${name} is given twice`);
    wanted.set(name, value);
  };
  for (const entry of sets.flatMap(parts)) {
    const equals = entry.indexOf('=');
    if (equals < 0) throw new UsageError(`--set ${entry}: write --set ${entry}=VALUE`);
    const name = oneOf(entry.slice(0, equals).trim(), LIMIT_NAMES, '--set');
    add(name, LIMITS[name].parse(entry.slice(equals + 1), `--set ${name}`));
  }
  for (const entry of unsets.flatMap(parts)) {
    const name = oneOf(entry, LIMIT_NAMES, '--unset');
    add(name, LIMITS[name].none);
  }
  const fields = [...wanted].map(([name, value]) => [LIMITS[name].field, value]);
  return Object.fromEntries(fields) as Partial<Limits>;
}

function parts(list: string): string[] {
  return list.split(',').map((entry) => entry.trim());
}

/** 8, 0.5; at most three places. */
function decimal(text: string, what: string): number {
  if (/^\d{1,9}(\.\d{1,3})?$/.test(text.trim())) return Number(text);
  throw new UsageError(`${what} ${JSON.stringify(text)} is not a number`, 'write 8 or 0.5');
}

/** Used of allowed: 3.5/8; without a limit only what is used. */
export function showLimit(name: LimitName, view: BudgetView): string {
  const { field, used, show } = LIMITS[name];
  const limit = view[field];
  if (name === 'weight') return show(view.weight);
  return limit === null ? show(used(view)) : `${show(used(view))}/${show(limit)}`;
}
