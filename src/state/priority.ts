/** A job moves to another band: what waits is planned anew, what runs keeps running. */
import { DONE, missing, type Result, type SetPriority } from './mutations.ts';
import { classKeyOf } from './requests.ts';
import type { State } from './state.ts';

export function setPriority(state: State, mutation: SetPriority, nowMs: number): Result {
  const live = state.jobs.get(mutation.job);
  if (!live || live.job.endedAtMs !== null) return missing(`job ${mutation.job}`);
  const { job } = live;
  const { priority, by } = mutation;
  const { priority: before } = job.spec;
  if (before === priority) return DONE;
  // Specs are shared by jobs that ask for the same, so this one gets its own.
  job.spec = { ...job.spec, priority };
  job.newPriority = priority;
  live.classKey = classKeyOf(job);
  state.touchJob(job);
  // A new version: what was planned or nominated for it as it was is void.
  for (const task of live.tasks) if (task.state === 'PENDING') state.touchTask(task);
  for (const attempt of live.attempts.values()) state.deltas.claims.add(attempt.uid);
  const data = { from: before, to: priority, by };
  state.note(nowMs, { kind: 'job.priority', tenant: job.tenant, job: job.id, data });
  return DONE;
}
