/** Jobs that wait for others to end: `after`. */
import { jobState } from '../core/lifecycle/job.ts';
import { taskEnded } from '../core/lifecycle/task.ts';
import { AFTER_MEANINGS } from '../core/lifecycle/after.ts';
import type { JobId } from '../model/ids.ts';
import { endTask } from './endings.ts';
import type { LiveJob } from './live.ts';
import type { State } from './state.ts';

/** Called once for a job that is new or rebuilt. Whoever is not live has ended as wanted. */
export function waitForOthers(state: State, live: LiveJob, nowMs: number): void {
  const waits = new Set<JobId>();
  for (const { job } of live.job.spec.after) {
    const other = state.jobs.get(job);
    if (!other) continue;
    if (other.job.endedAtMs !== null) {
      if (giveUpAfter(state, live, other, nowMs)) return;
      continue;
    }
    waits.add(job);
    const dependents = state.dependents.get(job);
    if (dependents) dependents.add(live);
    else state.dependents.set(job, new Set([live]));
  }
  live.waitsFor = waits.size > 0 ? waits : null;
}

/** A job has ended: those that waited for it go on, or never can. */
export function releaseDependents(state: State, ended: LiveJob, nowMs: number): void {
  forget(state, ended);
  const dependents = state.dependents.get(ended.job.id);
  if (!dependents) return;
  state.dependents.delete(ended.job.id);
  for (const live of dependents) {
    if (live.job.endedAtMs !== null) continue;
    live.waitsFor?.delete(ended.job.id);
    if (giveUpAfter(state, live, ended, nowMs) || live.waitsFor?.size !== 0) continue;
    live.waitsFor = null;
    for (const task of live.tasks) state.deltas.tasks.add(task);
  }
}

/** True when the other one has ended so that this one can never run. */
function giveUpAfter(state: State, live: LiveJob, ended: LiveJob, nowMs: number): boolean {
  const how = jobState(ended.counts);
  const unmet = live.job.spec.after.find(
    ({ job, when }) => job === ended.job.id && !AFTER_MEANINGS[when](how),
  );
  if (!unmet) return false;
  const reason = `job ${ended.job.id} ended ${how}; this one was to run after: ${unmet.when}`;
  for (const task of live.tasks) {
    if (!taskEnded(task.state)) endTask(state, live, task, 'giveUp', reason, nowMs);
  }
  return true;
}

/** It waits for nobody any more. */
function forget(state: State, ended: LiveJob): void {
  for (const id of ended.waitsFor ?? []) {
    const others = state.dependents.get(id);
    others?.delete(ended);
    if (others?.size === 0) state.dependents.delete(id);
  }
  ended.waitsFor = null;
}
