/**
 * What a planner must hear to keep its copy equal to the state: only what changed since it last
 * heard.
 */
import type { PoolPolicy } from '../core/placement/admission.ts';
import type { HeldInput } from '../core/placement/held.ts';
import type { PlannerWorker } from '../core/placement/request.ts';
import type { PlannerDeltas } from '../core/schedule/view.ts';
import { jobOf, type AttemptUid, type WorkerId } from '../model/ids.ts';
import { bothTerms } from '../core/placement/terms.ts';
import type { Task } from '../model/task.ts';
import type { Worker } from '../model/worker.ts';
import { plannerAccount, type LiveAccount } from './accounts.ts';
import { takesWork } from './health.ts';
import type { LiveJob } from './live.ts';
import { inputHashesOf, requestOf } from './requests.ts';
import type { State } from './state.ts';

/** Marks only; what is sent is read from the state when it is sent, so repeats cost nothing. */
export class Deltas {
  readonly tasks = new Set<Task>();
  readonly workers = new Set<WorkerId>();
  readonly claims = new Set<AttemptUid>();
  readonly accounts = new Set<LiveAccount>();
  /** Of inputs, as workers told it. Kept by the planner alone: no hurry, and no row. */
  readonly held = new Map<WorkerId, HeldInput[]>();

  get empty(): boolean {
    const { tasks, workers, claims, accounts } = this;
    return tasks.size + workers.size + claims.size + accounts.size === 0;
  }

  take(state: State, nowMs: number): PlannerDeltas {
    const deltas: PlannerDeltas = {
      requests: [],
      pending: [],
      notPending: [],
      workers: [],
      workersGone: [],
      claims: [],
      claimsGone: [],
      accounts: Array.from(this.accounts, (account) => plannerAccount(account, nowMs)),
    };
    const classes = new Set<string>();
    for (const task of this.tasks) takeTask(state, task, deltas, classes);
    for (const id of this.workers) {
      const live = state.workers.get(id);
      if (!live) {
        deltas.workersGone.push(id);
        continue;
      }
      deltas.workers.push(plannerWorker(state, live.worker, nowMs));
    }
    for (const uid of this.claims) takeClaim(state, uid, deltas, classes);
    if (this.held.size > 0) deltas.held = [...this.held];
    this.tasks.clear();
    this.workers.clear();
    this.claims.clear();
    this.accounts.clear();
    this.held.clear();
    return deltas;
  }
}

function takeClass(live: LiveJob, deltas: PlannerDeltas, classes: Set<string>): void {
  if (classes.has(live.classKey)) return;
  classes.add(live.classKey);
  deltas.requests.push(requestOf(live.job));
}

function takeClaim(
  state: State,
  uid: AttemptUid,
  deltas: PlannerDeltas,
  classes: Set<string>,
): void {
  const claim = state.claims.get(uid);
  const live = state.jobs.get(jobOf(uid));
  if (!claim || !live) {
    deltas.claimsGone.push(uid);
    return;
  }
  takeClass(live, deltas, classes);
  const sinceMs = state.attempts.get(uid)?.assignedAtMs ?? live.job.createdAtMs;
  deltas.claims.push({ claim, job: live.job.id, classKey: live.classKey, sinceMs });
}

function plannerWorker(state: State, worker: Worker, nowMs: number): PlannerWorker {
  const pool = state.poolPolicies.get(worker.pool);
  const { id, name, network, attributes, resources } = worker;
  return {
    id,
    name,
    pool: worker.pool,
    network,
    attributes,
    resources,
    terms: pool ? bothTerms(pool.terms, worker.terms) : worker.terms,
    deviceHourMicros: pool?.deviceHourMicros ?? 0,
    cpuHourMicros: pool?.cpuHourMicros ?? 0,
    lasts: lastsOf(worker, pool, nowMs),
    open: takesWork(state, worker),
  };
}

/** For the attempt's last words after it was stopped. */
export const LAST_WORDS_MS = 30_000;
/** What is left is told in steps of this part of it, so that it changes rarely. */
const STEPS_OF_REST = 64;
const ASSUMED_JOB_MS = 3_600_000;

/** Rounded down. It is told anew as time passes, see control/fleet/ends.ts. */
export function lastsOf(
  { endsAtMs }: Worker,
  pool: PoolPolicy | undefined,
  nowMs: number,
): PlannerWorker['lasts'] {
  if (endsAtMs === null) return null;
  const restMs = Math.max(0, endsAtMs - nowMs - LAST_WORDS_MS);
  const stepMs = Math.max(1000, 2 ** Math.floor(Math.log2(Math.max(1, restMs / STEPS_OF_REST))));
  const ms = Math.floor(restMs / stepMs) * stepMs;
  return { ms, assumedJobMs: pool?.assumedJobMs ?? ASSUMED_JOB_MS };
}

function takeTask(state: State, task: Task, deltas: PlannerDeltas, classes: Set<string>): void {
  const live = state.jobs.get(task.job);
  if (!live || live.waitsFor || task.state !== 'PENDING') {
    deltas.notPending.push(task.id);
    return;
  }
  takeClass(live, deltas, classes);
  const inputs = inputHashesOf(live.job.spec);
  deltas.pending.push({
    task: task.id,
    job: task.job,
    index: task.index,
    version: task.version,
    classKey: live.classKey,
    round: live.job.round,
    attempts: task.attempts,
    notBeforeMs: task.notBeforeMs,
    // After a failure it waits since it may be tried again, not since it was submitted.
    sinceMs: Math.max(task.createdAtMs, task.notBeforeMs),
    ...(inputs && { inputs }),
  });
}
