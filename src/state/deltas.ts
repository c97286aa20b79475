/**
 * What a planner must hear to keep its copy equal to the state: only what changed since it last
 * heard.
 */
import type { PlannerDeltas } from '../core/schedule/view.ts';
import type { AttemptUid, WorkerId } from '../model/ids.ts';
import type { Task } from '../model/task.ts';
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
    };
    const classes = new Set<string>();
    for (const task of this.tasks) takeTask(state, task, deltas, classes);
    for (const id of this.workers) {
      const live = state.workers.get(id);
      if (!live) {
        deltas.workersGone.push(id);
        continue;
      }
      const { pool, network, resources, state: workerState, draining } = live.worker;
      const open = workerState === 'ONLINE' && !draining;
      deltas.workers.push({ id, pool, network, resources, open });
    }
    for (const uid of this.claims) {
      const claim = state.claims.get(uid);
      if (claim) deltas.claims.push(claim);
      else deltas.claimsGone.push(uid);
    }
    this.tasks.clear();
    this.workers.clear();
    this.claims.clear();
    return deltas;
  }
}

function takeTask(state: State, task: Task, deltas: PlannerDeltas, classes: Set<string>): void {
  const live = state.jobs.get(task.job);
  if (!live || task.state !== 'PENDING') {
    deltas.notPending.push(task.id);
    return;
  }
  if (!classes.has(live.classKey)) {
    classes.add(live.classKey);
    deltas.requests.push(requestOf(live.job));
  }
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
