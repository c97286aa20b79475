/** Assignment: attempts and claims appear together, for one task or a whole gang. */
import type { Attempt } from '../model/attempt.ts';
import type { Claim } from '../model/claim.ts';
import type { Task } from '../model/task.ts';
import type { Assign, Result } from './mutations.ts';
import { DONE, missing, stale } from './mutations.ts';
import type { LiveJob } from './live.ts';
import type { State } from './state.ts';

export function assign(state: State, mutation: Assign, nowMs: number): Result {
  const live = state.jobs.get(mutation.job);
  if (!live) return missing(`job ${mutation.job}`);
  if (live.job.cancelRequestedAtMs !== null) return stale('the job was cancelled');
  if (live.job.round !== mutation.round) return stale('the gang is in another round');
  const members: { task: Task; claim: Claim }[] = [];
  for (const { task: id, version, claim } of mutation.tasks) {
    const task = state.task(id)?.task;
    if (!task) return missing(`task ${id}`);
    if (task.state !== 'PENDING' || task.version !== version)
      return stale(`task ${id} has changed`);
    members.push({ task, claim });
  }
  const full = holdAll(state, members);
  if (full) return stale(full);
  for (const { task, claim } of members) assignOne(state, live, task, claim, nowMs);
  return DONE;
}

/** Checks the claims of a gang against each other too, then leaves the capacity as it was. */
function holdAll(state: State, members: { claim: Claim }[]): string | null {
  const held: Claim[] = [];
  let problem: string | null = null;
  for (const { claim } of members) {
    const worker = state.workers.get(claim.worker);
    if (!worker || worker.worker.state !== 'ONLINE' || worker.worker.draining) {
      problem = `worker ${claim.worker} takes no work`;
    } else if (!worker.capacity.admits(claim)) {
      problem = `worker ${claim.worker} has no room any more`;
    } else {
      worker.capacity.take(claim);
      held.push(claim);
      continue;
    }
    break;
  }
  for (const claim of held) state.workers.get(claim.worker)?.capacity.give(claim);
  return problem;
}

function assignOne(state: State, live: LiveJob, task: Task, claim: Claim, nowMs: number): void {
  task.attempts++;
  const attempt: Attempt = {
    uid: claim.owner,
    task: task.id,
    job: task.job,
    tenant: task.tenant,
    n: task.attempts,
    round: live.job.round,
    worker: claim.worker,
    state: 'ASSIGNED',
    stopCause: null,
    cause: null,
    exitCode: null,
    signal: null,
    message: '',
    assignedAtMs: nowMs,
    startedAtMs: null,
    endedAtMs: null,
    stdoutBytes: null,
    stderrBytes: null,
    version: 1,
  };
  state.addAttempt(attempt, claim);
  state.moveTask(live, task, 'assign', '');
  state.note(nowMs, {
    kind: 'task.assigned',
    tenant: task.tenant,
    job: task.job,
    task: task.id,
    attempt: attempt.uid,
    worker: claim.worker,
  });
}
