/**
 * What a planner must hear to keep its copy equal to the state: only what changed since it last
 * heard.
 */
import type { PoolPolicy } from '../core/placement/admission.ts';
import type { PlannerWorker } from '../core/placement/request.ts';
import type { PlannerDeltas } from '../core/schedule/view.ts';
import type { AttemptUid, WorkerId } from '../model/ids.ts';
import { OPEN_TERMS } from '../model/placement.ts';
import type { Task } from '../model/task.ts';
import type { Worker } from '../model/worker.ts';
import type { LiveJob } from './live.ts';
import { requestOf } from './requests.ts';
import type { State } from './state.ts';

/** Marks only; what is sent is read from the state when it is sent, so repeats cost nothing. */
export class Deltas {
  readonly tasks = new Set<Task>();
  readonly workers = new Set<WorkerId>();
  readonly claims = new Set<AttemptUid>();

  get empty(): boolean {
    return this.tasks.size === 0 && this.workers.size === 0 && this.claims.size === 0;
  }

  take(state: State): PlannerDeltas {
    const deltas: PlannerDeltas = {
      requests: [],
      pending: [],
      notPending: [],
      workers: [],
      workersGone: [],
      claims: [],
      claimsGone: [],
      accounts: [],
    };
    const classes = new Set<string>();
    for (const task of this.tasks) takeTask(state, task, deltas, classes);
    for (const id of this.workers) {
      const live = state.workers.get(id);
      if (!live) {
        deltas.workersGone.push(id);
        continue;
      }
      deltas.workers.push(plannerWorker(live.worker, state.poolPolicies.get(live.worker.pool)));
    }
    for (const uid of this.claims) takeClaim(state, uid, deltas, classes);
    this.tasks.clear();
    this.workers.clear();
    this.claims.clear();
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
  const attempt = state.attempts.get(uid);
  const live = attempt && state.jobs.get(attempt.job);
  if (!claim || !live) {
    deltas.claimsGone.push(uid);
    return;
  }
  takeClass(live, deltas, classes);
  const { classKey } = live;
  deltas.claims.push({ claim, job: attempt.job, classKey, sinceMs: attempt.assignedAtMs });
}

function plannerWorker(worker: Worker, pool: PoolPolicy | undefined): PlannerWorker {
  const { id, name, network, attributes, resources } = worker;
  return {
    id,
    name,
    pool: worker.pool,
    network,
    attributes,
    resources,
    terms: pool?.terms ?? OPEN_TERMS,
    deviceHourMicros: pool?.deviceHourMicros ?? 0,
    cpuHourMicros: pool?.cpuHourMicros ?? 0,
    open: worker.state === 'ONLINE' && !worker.draining,
  };
}

function takeTask(state: State, task: Task, deltas: PlannerDeltas, classes: Set<string>): void {
  const live = state.jobs.get(task.job);
  if (!live || task.state !== 'PENDING') {
    deltas.notPending.push(task.id);
    return;
  }
  takeClass(live, deltas, classes);
  deltas.pending.push({
    task: task.id,
    job: task.job,
    index: task.index,
    version: task.version,
    classKey: live.classKey,
    round: live.job.round,
    attempts: task.attempts,
    notBeforeMs: task.notBeforeMs,
  });
}
