/**
 * Where a job stands in the queue, who is ahead and by what rule. Shares change with every
 * placement, so what is ahead by share is how much fits in until the shares are equal.
 */
import type { JobId } from '../../model/ids.ts';
import { PRIORITIES } from '../../model/job.ts';
import type { Account } from '../schedule/accounts.ts';
import type { PendingClass } from '../schedule/classes.ts';
import type { SchedulePolicy } from '../schedule/plan.ts';
import { bindingLimit } from '../schedule/quota.ts';
import type { PlannerView } from '../schedule/view.ts';
import { duration } from './words.ts';

export type AheadRule = 'band' | 'aged' | 'share' | 'age';

export interface QueuePosition {
  /** 1: it is next. Tasks, not jobs. */
  position: number;
  ahead: number;
  /** Of those ahead, how many are its own tenant's: all that this tenant may be told. */
  ownAhead: number;
  /** How many are ahead by which rule. */
  byRule: { rule: AheadRule; tasks: number }[];
  /** Of its own tenant only; others are counted, not named. */
  aheadSample: { job: JobId; rule: AheadRule }[];
  /** The rule that places the job itself, for a person. */
  rule: string;
}

const SAMPLE = 10;
const TIERS = ['aged', 'share', 'interruptible', 'demoted'] as const;

interface Standing {
  pending: PendingClass;
  tier: number;
  sinceMs: number;
  job: JobId;
}

/** Null when nothing of the job waits in the order. */
export function queuePosition(
  view: PlannerView,
  job: JobId,
  nowMs: number,
  policy: SchedulePolicy,
): QueuePosition | null {
  const mine = view.classes.ofJob(job);
  const own = mine && standingOf(mine, nowMs, policy, job);
  if (!own) return null;
  const counter = new Counter(own.pending.request.tenant);
  const sharing: Standing[] = [];
  for (const pending of view.classes.values()) {
    if (pending.request.band > own.pending.request.band || pending.waiting === 0) continue;
    const other = standingOf(pending, nowMs, policy);
    if (!other) continue;
    const higher = pending.request.band < own.pending.request.band;
    if (higher) counter.addAll(pending, 'band');
    else if (other.tier < own.tier) counter.addAll(pending, other.tier === 0 ? 'aged' : 'share');
    else if (other.tier > own.tier) continue;
    else if (TIERS[own.tier] !== 'aged') sharing.push(other);
    else if (isOlder(other, own)) counter.addAll(pending, 'aged', own);
  }
  const shareOf = (account: Account): number =>
    account.share(view.fleet.totals(), nowMs, policy.halfLifeMs);
  countSharing(view, sharing, own, shareOf, counter);
  return counter.position(ruleOf(own, policy, shareOf));
}

function standingOf(
  pending: PendingClass,
  nowMs: number,
  policy: SchedulePolicy,
  job?: JobId,
): Standing | null {
  const head = pending.queue.peek()?.[0];
  if (!head) return null;
  const { request } = pending;
  const over = bindingLimit(pending, request.gangSize, 0);
  if (over?.mode === 'hard') return null;
  let tier = request.placement.interruptible ? 2 : 1;
  if (nowMs - head.sinceMs >= policy.ageingMs) tier = 0;
  if (over) tier = 3;
  return { pending, tier, sinceMs: head.sinceMs, job: job ?? head.job };
}

function isOlder(a: Standing, b: Standing): boolean {
  return a.sinceMs === b.sinceMs ? a.job < b.job : a.sinceMs < b.sinceMs;
}

/** Tenants, then users, go ahead until they have as large a share; then the older jobs. */
function countSharing(
  view: PlannerView,
  sharing: Standing[],
  own: Standing,
  shareOf: (account: Account) => number,
  counter: Counter,
): void {
  const { tenant, user } = own.pending.owner;
  const others = Map.groupBy(sharing, ({ pending: { owner } }) => {
    if (owner.user === user) return user;
    return owner.tenant === tenant ? owner.user : owner.tenant;
  });
  for (const [account, standings] of others) {
    if (account === user) {
      for (const { pending } of standings) counter.addOlder(pending, own.job);
      continue;
    }
    const limit = account.user === '' ? tenant : user;
    const gap = shareOf(limit) - shareOf(account);
    const waiting = standings.reduce((sum, { pending }) => sum + pending.waiting, 0);
    const first = standings.toSorted((a, b) => (a.job < b.job ? -1 : 1))[0] as Standing;
    const step = stepOf(view, first.pending, account);
    let tasks = gap > 0 ? Math.ceil(gap / step) : 0;
    if (gap === 0 && first.job < own.job) tasks = 1;
    counter.add(first.pending, first.job, 'share', Math.min(waiting, tasks));
  }
}

/** By how much one of its tasks raises an account's share. */
function stepOf(view: PlannerView, { request }: PendingClass, { row }: Account): number {
  const totals = view.fleet.totals();
  const { cpuMillis, memoryBytes, device } = request.resources;
  const devices = (device ? device.count * device.share : 0) / (totals.deviceMillis || Infinity);
  const cpus = cpuMillis / (totals.cpuMillis || Infinity);
  const memory = memoryBytes / 2 ** 20 / (totals.memoryMiB || Infinity);
  return Math.max(devices, cpus, memory, Number.EPSILON) / (row?.weight ?? 1);
}

function ruleOf(
  own: Standing,
  policy: SchedulePolicy,
  shareOf: (account: Account) => number,
): string {
  const { request, owner } = own.pending;
  const band = PRIORITIES[request.band] ?? 'batch';
  const percent = (account: Account): string => `${(shareOf(account) * 100).toFixed(1)} %`;
  switch (TIERS[own.tier]) {
    case 'aged':
      return (
        `it has waited longer than ${duration(policy.ageingMs)}: ` +
        `only older ${band} work goes first`
      );
    case 'demoted':
      return `over a soft limit: behind everybody else's ${band} work`;
    default:
      return (
        `${band} work by share: tenant ${request.tenant} has ${percent(owner.tenant)}, ` +
        `user ${request.user} ${percent(owner.user)}, by weight and with past use; ` +
        'the smaller share first, then the older job'
      );
  }
}

class Counter {
  readonly #tenant: string;
  readonly #rules = new Map<AheadRule, number>();
  readonly #sample: { job: JobId; rule: AheadRule }[] = [];
  #own = 0;

  constructor(tenant: string) {
    this.#tenant = tenant;
  }

  add({ request }: PendingClass, job: JobId, rule: AheadRule, tasks: number): void {
    if (tasks <= 0) return;
    this.#rules.set(rule, (this.#rules.get(rule) ?? 0) + tasks);
    if (request.tenant !== this.#tenant) return;
    this.#own += tasks;
    if (this.#sample.length < SAMPLE) this.#sample.push({ job, rule });
  }

  addAll(pending: PendingClass, rule: AheadRule, before?: Standing): void {
    for (const { job, tasks } of pending.queue.jobs()) {
      if (before?.pending === pending && job >= before.job) continue;
      this.add(pending, job, rule, tasks);
    }
  }

  addOlder(pending: PendingClass, than: JobId): void {
    for (const { job, tasks } of pending.queue.jobs()) {
      if (job < than) this.add(pending, job, 'age', tasks);
    }
  }

  position(rule: string): QueuePosition {
    const byRule = [...this.#rules].map(([each, tasks]) => ({ rule: each, tasks }));
    const ahead = byRule.reduce((sum, { tasks }) => sum + tasks, 0);
    const own = { ownAhead: this.#own, aheadSample: this.#sample };
    return { position: ahead + 1, ahead, byRule, rule, ...own };
  }
}
