/** Why something waits, in words: from the data the decision used. */
import type { Claim } from '../model/claim.ts';
import type { FleetWorker, Rejection } from './placement/fleet.ts';
import type { PlacementRequest } from './placement/request.ts';
import { gangNeverFits } from './explain/gangRoom.ts';
import { neverFits } from './explain/never.ts';
import { count, duration, money, named } from './explain/words.ts';
import type { PendingClass } from './schedule/classes.ts';
import type { Binding, Limit } from './schedule/quota.ts';
import { helps } from './schedule/shapes.ts';
import type { PlannerView } from './schedule/view.ts';

const WAIT_CODES = [
  /** No worker has joined. */
  'NO_WORKER',
  /** It would fit, but for what is held now. */
  'NO_ROOM',
  /** No worker that has joined could take it, even if nothing else ran. */
  'NEVER_FITS_NOW',
  /** There is room for each member, but not for all where they reach each other. */
  'GANG_NETWORK',
  'RESERVED_FOR_OTHERS',
  /** Devices at once, or device time. */
  'QUOTA',
  'BUDGET',
  'ARRAY_LIMIT',
  'BACKOFF',
  /** Not all members of the gang wait. */
  'INCOMPLETE',
  /** It has a place in prospect and waits for others to leave it. */
  'PREEMPTING',
  /** It fits, but others go first. */
  'BEHIND',
] as const;
export type WaitCode = (typeof WAIT_CODES)[number];

export interface Explanation {
  code: WaitCode;
  sentence: string;
  /** How many workers were passed over for which reason; empty where nobody looked. */
  workers: { reason: Rejection; count: number }[];
  /** The limit that binds. `left`: thousandths of devices, device-milliseconds, or millionths. */
  quota: { tenant: string; user: string; limit: Limit; left: number; mode: 'soft' | 'hard' } | null;
  /** A place that is kept for it, or that it is nominated for. */
  reservation: { atMs: number | null; worker: string } | null;
  /** What change would let it run. */
  suggestions: string[];
}

export function explanation(
  code: WaitCode,
  sentence: string,
  more: Partial<Explanation> = {},
): Explanation {
  return { code, sentence, workers: [], quota: null, reservation: null, suggestions: [], ...more };
}

/** Looks at every worker. */
export function explainMisfit(view: PlannerView, request: PlacementRequest): Explanation {
  const { fleet } = view;
  if (fleet.size === 0) {
    const suggestions = ['join a worker: `drover agent`'];
    return explanation('NO_WORKER', 'no worker has joined yet', { suggestions });
  }
  const workers = [...fleet.rejections(request)].map(([reason, count]) => ({ reason, count }));
  const never =
    neverFits(fleet, request) ?? (request.gangSize > 1 ? gangNeverFits(fleet, request) : null);
  if (never) return explanation('NEVER_FITS_NOW', never.sentence, { workers, ...never });
  if (isKeptForOthers(view, request)) {
    const sentence = 'the room there is is kept for work that has waited longer';
    return explanation('RESERVED_FOR_OTHERS', sentence, { workers });
  }
  const parts = workers.map(({ reason, count }) => `${count} ${wordsFor(reason, request)}`);
  const sentence = `no room on ${count(fleet.size, 'worker')}: ${parts.join(', ')}`;
  const open = workers.find(({ reason }) => reason === 'gang');
  const code = open && open.count >= request.gangSize ? 'GANG_NETWORK' : 'NO_ROOM';
  return explanation(code, sentence, { workers });
}

/** Without looking at the workers. */
export function noRoom({ fleet }: PlannerView): Explanation {
  return explanation('NO_ROOM', `no room on ${count(fleet.size, 'worker')} now`);
}

/** What holds for this class and not for all that ask for the same. */
export function explainClass(
  view: PlannerView,
  pending: PendingClass,
  why: Explanation,
  over: Binding | null,
): Explanation {
  const { sentence } = why;
  const kept = view.reservations.of(pending);
  if (over) {
    const behind = `${sentence}; behind everybody else, as ${overWords(over)}`;
    return { ...why, sentence: behind, quota: quotaOf(over) };
  }
  const claim = kept?.claims[0];
  if (!kept || !claim) return why;
  const worker = nameOf(view, claim);
  const others = kept.claims.length > 1 ? ` and ${kept.claims.length - 1} more` : '';
  const told = `${sentence}; room is kept for it on ${worker}${others}`;
  return { ...why, sentence: told, reservation: { atMs: kept.atMs, worker } };
}

export function explainLimit(binding: Binding, request: PlacementRequest): Explanation {
  const code = binding.limit === 'money' ? 'BUDGET' : 'QUOTA';
  const { needed, left, limit } = binding;
  const amounts: Record<Limit, (amount: number) => string> = {
    devices: (amount) => named(Math.max(0, amount) / 1000, 'device'),
    'device-time': (amount) => `${duration(Math.max(0, amount))} of a device`,
    money: (amount) => money(Math.max(0, amount)),
  };
  const words = `it needs ${amounts[limit](needed)}, ${amounts[limit](left)} left`;
  const suggestions = [`raise the limit: \`drover budget\``];
  if (limit !== 'devices' && request.timeLimitMs === 0) {
    suggestions.push('give a time limit under an hour: without one an hour is set aside');
  }
  return explanation(code, `${overWords(binding)}: ${words}`, {
    quota: quotaOf(binding),
    suggestions,
  });
}

export function explainArrayLimit(limit: number): Explanation {
  const sentence = `${count(limit, 'task')} of the array run, as many as may at once`;
  return explanation('ARRAY_LIMIT', sentence, { suggestions: ['raise the limit of the array'] });
}

/** It might fit, but in pools that cost more than is left. */
export function explainUnaffordable(view: PlannerView, { owner }: PendingClass): Explanation {
  const { tenant, user } = owner;
  const account = user.microsLeft <= tenant.microsLeft ? user : tenant;
  const left = money(Math.max(0, account.microsLeft));
  const who = account.user === '' ? `tenant ${account.tenant}` : `user ${account.user}`;
  const where = `on ${count(view.fleet.size, 'worker')} where ${left} suffice`;
  const sentence = `no room ${where}, which is what ${who} has left`;
  const quota = {
    tenant: account.tenant,
    user: account.user,
    limit: 'money' as const,
    left: account.microsLeft,
    mode: account.row?.mode ?? ('hard' as const),
  };
  return explanation('BUDGET', sentence, {
    quota,
    suggestions: ['raise the limit: `drover budget`'],
  });
}

export function explainNomination(
  view: PlannerView,
  claims: { claim: Claim }[],
  victims: number,
): Explanation {
  const worker = nameOf(view, (claims[0] as { claim: Claim }).claim);
  const others = claims.length > 1 ? ` and ${claims.length - 1} more` : '';
  const whom = victims > 0 ? count(victims, 'task') : 'what is stopping there';
  const sentence = `gets ${worker}${others} as soon as ${whom} made room`;
  return explanation('PREEMPTING', sentence, { reservation: { atMs: null, worker } });
}

function isKeptForOthers(view: PlannerView, request: PlacementRequest): boolean {
  const { reservations, fleet } = view;
  const kept = [...reservations.values()].filter((each) => reservations.isLaid(each));
  if (kept.length === 0 || request.gangSize > 1) return false;
  const workers: FleetWorker[] = [];
  for (const { claims } of kept) {
    for (const claim of claims) workers.push(...[fleet.worker(claim.worker)].filter((w) => !!w));
  }
  for (const each of kept) reservations.lift(each);
  const fits = helps(fleet, workers, request);
  for (const each of kept) reservations.lay(each);
  return fits;
}

function overWords({ account, limit, mode }: Binding): string {
  const who = account.user === '' ? `tenant ${account.tenant}` : `user ${account.user}`;
  const what: Record<Limit, string> = {
    devices: 'devices at once',
    'device-time': 'device time',
    money: 'money',
  };
  return `${who} is at the ${mode === 'soft' ? 'soft ' : ''}limit of ${what[limit]}`;
}

function quotaOf({ account, limit, left, mode }: Binding): Explanation['quota'] {
  return { tenant: account.tenant, user: account.user, limit, left, mode };
}

function nameOf(view: PlannerView, { worker }: Claim): string {
  return view.fleet.worker(worker)?.info.name ?? worker;
}

function wordsFor(reason: Rejection, request: PlacementRequest): string {
  const words: Record<Rejection, string> = {
    pool: `not in pool ${request.pool}`,
    closed: 'draining or out of contact',
    terms: 'that do not take such work',
    constraint: 'without the attributes asked for',
    ends: 'that end before it would',
    'anti-affinity': `with another of ${request.placement.antiAffinity}`,
    exclusive: 'that would have to be shared',
    devices: 'with too few free devices that match',
    cpus: 'with too few free CPUs',
    memory: 'with too little free memory',
    ports: 'with too few free ports',
    gang: `with room for a member, but all ${request.gangSize} do not fit on one network`,
  };
  return words[reason];
}
