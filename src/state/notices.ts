/**
 * The outbox: what happens to jobs and budgets becomes a notice in the same mutation, so that it is
 * told if and only if it happened. Delivered ones are deleted.
 */
import type { JobId } from '../model/ids.ts';
import type { Job } from '../model/job.ts';
import type { Notice } from '../model/jobParts.ts';
import type { NoticeKind, QueuedNotice, TellRule } from '../model/notice.ts';
import type { LiveJob } from './live.ts';
import { DONE, missing, type Result, type SettleNotice } from './mutations.ts';
import type { State } from './state.ts';

/** By tenant; `*` is for those that are not named. */
export type TellDefaults = Readonly<Record<string, readonly TellRule[]>>;
const ANY_TENANT = '*';
/** A channel that takes nothing for long loses what comes beyond this. */
const QUEUE_LIMIT = 10_000;
const NOBODY: readonly TellRule[] = [];

export class Notices {
  readonly queued = new Map<string, QueuedNotice>();
  readonly #byChannel = new Map<string, number>();
  readonly #defaults: TellDefaults;
  /** Jobs whose start was told, so that no other task tells it again. */
  readonly started = new Set<JobId>();

  constructor(queued: readonly QueuedNotice[], defaults: TellDefaults) {
    this.#defaults = defaults;
    for (const notice of queued) this.add(notice);
  }

  /** Whom a job tells: as it says itself, else as its tenant's default does. */
  rulesOf({ spec, tenant }: Job): readonly TellRule[] {
    const own = spec.rules?.notify;
    return own && own.length > 0 ? own : this.defaultsOf(tenant);
  }

  defaultsOf(tenant: string): readonly TellRule[] {
    return this.#defaults[tenant] ?? this.#defaults[ANY_TENANT] ?? NOBODY;
  }

  add(notice: QueuedNotice): void {
    this.queued.set(notice.id, notice);
    this.#byChannel.set(notice.channel, this.waitingFor(notice.channel) + 1);
  }

  remove(notice: QueuedNotice): void {
    this.queued.delete(notice.id);
    this.#byChannel.set(notice.channel, this.waitingFor(notice.channel) - 1);
  }

  waitingFor(channel: string): number {
    return this.#byChannel.get(channel) ?? 0;
  }
}

/** Costs a job without rules a look at two fields. */
export function tellOfJob(
  state: State,
  { job }: LiveJob,
  kind: Notice,
  facts: QueuedNotice['facts'],
  nowMs: number,
): void {
  const rules = state.notices.rulesOf(job);
  if (rules.length === 0) return;
  const known = { name: job.spec.name, owner: job.owner, ...facts };
  for (const { to, on } of rules) {
    if (!on.includes(kind)) continue;
    queue(state, { tenant: job.tenant, channel: to, kind, job: job.id, facts: known }, nowMs);
  }
}

/** Once for a job, however many tasks it has. */
export function tellOfStart(state: State, live: LiveJob, worker: string, nowMs: number): void {
  const { notices } = state;
  if (notices.rulesOf(live.job).length === 0 || notices.started.has(live.job.id)) return;
  notices.started.add(live.job.id);
  if (live.tasks.some((task) => task.startedAtMs !== null)) return;
  const name = state.workers.get(worker as never)?.worker.name ?? worker;
  tellOfJob(state, live, 'started', { worker: name }, nowMs);
}

export function tellOfBudget(
  state: State,
  tenant: string,
  facts: QueuedNotice['facts'],
  nowMs: number,
): void {
  for (const { to, on } of state.notices.defaultsOf(tenant)) {
    if (!on.includes('budget')) continue;
    queue(state, { tenant, channel: to, kind: 'budget', job: null, facts }, nowMs);
  }
}

type Told = Pick<QueuedNotice, 'tenant' | 'channel' | 'kind' | 'job' | 'facts'>;

function queue(state: State, told: Told, nowMs: number): void {
  if (told.kind === 'interrupted' && joinsAnother(state, told)) return;
  const { notices } = state;
  if (notices.waitingFor(told.channel) >= QUEUE_LIMIT) {
    note(state, 'notice.dropped', told, `${QUEUE_LIMIT} others wait for the channel`, nowMs);
    return;
  }
  const id = state.mint('n');
  const fresh = { createdAtMs: nowMs, tries: 0, nextTryAtMs: nowMs, lastError: '' };
  const notice: QueuedNotice = { id, ...told, ...fresh };
  notices.add(notice);
  state.changes.notices.set(notice, 'insert');
}

/** A machine that is lost takes many tasks of a job with it: one notice counts them. */
function joinsAnother(state: State, { channel, job }: Told): boolean {
  for (const [notice, operation] of state.changes.notices) {
    if (operation !== 'insert' || notice.kind !== 'interrupted') continue;
    if (notice.channel !== channel || notice.job !== job) continue;
    notice.facts = { ...notice.facts, tasks: Number(notice.facts['tasks'] ?? 1) + 1 };
    return true;
  }
  return false;
}

export function settleNotice(state: State, mutation: SettleNotice, nowMs: number): Result {
  const notice = state.notices.queued.get(mutation.id);
  if (!notice) return missing(`notice ${mutation.id}`);
  if (mutation.outcome === 'failed') {
    notice.tries++;
    notice.lastError = mutation.reason;
    notice.nextTryAtMs = mutation.nextTryAtMs;
    state.changes.notices.set(notice, 'update');
    return DONE;
  }
  state.notices.remove(notice);
  state.changes.notices.set(notice, 'delete');
  const kind = mutation.outcome === 'sent' ? 'notice.sent' : 'notice.dropped';
  note(state, kind, notice, mutation.reason, nowMs);
  return DONE;
}

function note(
  state: State,
  kind: 'notice.sent' | 'notice.dropped',
  { tenant, job, channel, kind: about }: { kind: NoticeKind } & Told,
  reason: string,
  nowMs: number,
): void {
  const data = { channel, about, ...(reason && { reason }) };
  state.note(nowMs, { kind, tenant, ...(job && { job }), data });
}
