/** Assignment: attempts and claims appear together, for one task or a whole gang. */
import { NO_FACTS, type Attempt } from '../model/attempt.ts';
import type { Claim } from '../model/claim.ts';
import type { Task } from '../model/task.ts';
import { hold, overBudget } from './accounts.ts';
import { dropNomination, newHold, nominationHold, priceOfClaim, takeOver } from './holdings.ts';
import type { Assign, Preempt, Result } from './mutations.ts';
import { takesWork } from './health.ts';
import { DONE, missing, stale } from './mutations.ts';
import type { LiveJob } from './live.ts';
import type { State } from './state.ts';

interface Member {
  task: Task;
  claim: Claim;
}

export function assign(state: State, mutation: Assign, nowMs: number): Result {
  const checked = checkMembers(state, mutation, nowMs);
  if ('result' in checked) return checked.result;
  const { live, members } = checked;
  // Whoever was nominated gives that up for what it now gets: the same place, or a better one.
  const nominated = members.flatMap(({ task }) => state.nominations.get(task.id) ?? []);
  for (const member of members) {
    const claim = state.nominations.get(member.task.id)?.claim;
    if (claim?.owner === member.claim.owner) member.claim = claim;
  }
  for (const { claim } of nominated) state.workers.get(claim.worker)?.capacity.give(claim);
  const full = holdAll(state, members);
  for (const { claim } of nominated) state.workers.get(claim.worker)?.capacity.take(claim);
  if (full) return stale(full);
  for (const { task, claim } of members) {
    if (state.nominations.get(task.id)?.claim === claim) takeOver(state, task.id);
    else dropNomination(state, task.id);
  }
  for (const { task, claim } of members) assignOne(state, live, task, claim, nowMs);
  return DONE;
}

/** The guards that an assignment and a nomination share. */
export function checkMembers(
  state: State,
  mutation: Assign | Preempt,
  nowMs: number,
): { live: LiveJob; members: Member[] } | { result: Result } {
  const refuse = (result: Result) => ({ result });
  const live = state.jobs.get(mutation.job);
  if (!live) return refuse(missing(`job ${mutation.job}`));
  if (live.job.cancelRequestedAtMs !== null) return refuse(stale('the job was cancelled'));
  if (live.job.round !== mutation.round) return refuse(stale('the gang is in another round'));
  if (live.waitsFor) return refuse(stale('the job waits for another one'));
  const members: Member[] = [];
  for (const { task: id, version, claim } of mutation.tasks) {
    const task = state.task(id)?.task;
    if (!task) return refuse(missing(`task ${id}`));
    if (task.state !== 'PENDING' || task.version !== version) {
      return refuse(stale(`task ${id} has changed`));
    }
    members.push({ task, claim });
  }
  const limited = overLimit(live, members.length) ?? overQuota(state, live, members, nowMs);
  return limited === null ? { live, members } : refuse(stale(limited));
}

function overLimit({ job, attempts }: LiveJob, more: number): string | null {
  const { shape } = job.spec;
  if (shape.kind !== 'array' || shape.limit === 0) return null;
  return attempts.size + more > shape.limit ? `${shape.limit} of its tasks run already` : null;
}

/** Checked here and nowhere else for good: what a planner saw may have been spent since. */
function overQuota(state: State, live: LiveJob, members: Member[], nowMs: number): string | null {
  const accounts = state.accounts.both(live.job.tenant, live.job.owner);
  if (!accounts[0].budget && !accounts[1].budget) return null;
  const more = { deviceMillis: 0, deviceMs: 0, micros: 0 };
  for (const { task, claim } of members) {
    hold(more, newHold(state, live, claim), 1);
    // What it was nominated for is set aside already, but another place may cost more.
    const nomination = state.nominations.get(task.id);
    if (nomination) hold(more, nominationHold(nomination), -1);
  }
  return overBudget(accounts[0], more, nowMs) ?? overBudget(accounts[1], more, nowMs);
}

/** Checks the claims of a gang against each other too, then leaves the capacity as it was. */
function holdAll(state: State, members: { claim: Claim }[]): string | null {
  const held: Claim[] = [];
  let problem: string | null = null;
  for (const { claim } of members) {
    const worker = state.workers.get(claim.worker);
    if (!worker || !takesWork(state, worker.worker)) {
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
    priceMicros: priceOfClaim(state, claim),
    charges: 0,
    chargedMicros: 0,
    chargedDeviceMs: 0,
    facts: NO_FACTS,
    result: null,
    resultBytes: null,
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
