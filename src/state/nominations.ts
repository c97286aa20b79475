/**
 * Preemption in two steps. First the victims are asked to stop and the preemptor is nominated: it
 * has a claim on what they will leave, so nobody else is promised it. When they are gone it is
 * assigned like anything else, under the same uid.
 */
import type { Attempt } from '../model/attempt.ts';
import type { Claim } from '../model/claim.ts';
import { stopAttempt } from './endings.ts';
import { addNomination, dropNomination as dropClaim, priceOfClaim } from './holdings.ts';
import type { LiveJob, Nomination } from './live.ts';
import { DONE, missing, stale } from './mutations.ts';
import type { Preempt, Result, Withdraw } from './mutations.ts';
import { checkMembers } from './assign.ts';
import { taskOf } from '../model/ids.ts';
import type { State } from './state.ts';

export function preempt(state: State, mutation: Preempt, nowMs: number): Result {
  const checked = checkMembers(state, mutation, nowMs);
  if ('result' in checked) return checked.result;
  const { live, members } = checked;
  if (members.some(({ task }) => state.nominations.has(task.id))) {
    return stale('it is nominated already');
  }
  const victims: Attempt[] = [];
  for (const { uid } of mutation.victims) {
    const attempt = state.attempts.get(uid);
    if (!attempt) return stale(`attempt ${uid} has ended`);
    victims.push(attempt);
  }
  const problem = willFit(state, members, victims);
  if (problem) return stale(problem);
  for (const { task, claim } of members) {
    addNomination(state, { claim, priceMicros: priceOfClaim(state, claim), live, task });
    state.note(nowMs, {
      kind: 'task.nominated',
      tenant: task.tenant,
      job: task.job,
      task: task.id,
      attempt: claim.owner,
      worker: claim.worker,
      data: { reason: mutation.reason },
    });
  }
  for (const victim of victims) {
    stopAttempt(state, victim, 'preempted', mutation.reason, nowMs);
  }
  return DONE;
}

export function withdraw(state: State, mutation: Withdraw, nowMs: number): Result {
  const nomination = state.nominations.get(taskOf(mutation.owner));
  if (nomination?.claim.owner !== mutation.owner) return missing(`nomination ${mutation.owner}`);
  // A gang is nominated whole or not at all.
  dropNominationsOf(state, nomination.live, mutation.reason, nowMs);
  return DONE;
}

function dropNomination(
  state: State,
  { claim, task }: Nomination,
  reason: string,
  nowMs: number,
): void {
  dropClaim(state, task.id);
  state.note(nowMs, {
    kind: 'task.withdrawn',
    tenant: task.tenant,
    job: task.job,
    task: task.id,
    attempt: claim.owner,
    worker: claim.worker,
    data: { reason },
  });
}

export function dropNominationsOf(
  state: State,
  live: LiveJob,
  reason: string,
  nowMs: number,
): void {
  if (state.nominations.size === 0) return;
  for (const task of live.tasks) {
    const nomination = state.nominations.get(task.id);
    if (nomination) dropNomination(state, nomination, reason, nowMs);
  }
}

/** Whether the nominated fit once everything that is being stopped has gone. */
function willFit(
  state: State,
  members: readonly { claim: Claim }[],
  victims: readonly Attempt[],
): string | null {
  // A port is one or another's: unlike room it is not shared on the way from victim to heir.
  for (const { claim } of members) {
    const taken = state.workers.get(claim.worker)?.capacity.portsTaken;
    if (claim.ports.some((port) => taken?.has(port))) return 'a port is taken';
  }
  const workers = new Set(members.map(({ claim }) => claim.worker));
  const leaving = new Set<Claim>();
  for (const { uid, worker } of victims) {
    const claim = state.claims.get(uid);
    if (claim && workers.has(worker)) leaving.add(claim);
  }
  for (const id of workers) {
    for (const uid of state.workers.get(id)?.attempts.keys() ?? []) {
      const claim = state.claims.get(uid);
      if (claim?.state === 'RELEASING') leaving.add(claim);
    }
  }
  const capacityOf = ({ worker }: Claim) => state.workers.get(worker)?.capacity;
  for (const claim of leaving) capacityOf(claim)?.give(claim);
  const held: Claim[] = [];
  let problem: string | null = null;
  for (const { claim } of members) {
    const capacity = capacityOf(claim);
    if (!capacity?.admits(claim)) {
      problem = `worker ${claim.worker} would not have room`;
      break;
    }
    capacity.take(claim);
    held.push(claim);
  }
  for (const claim of held) capacityOf(claim)?.give(claim);
  for (const claim of leaving) capacityOf(claim)?.take(claim);
  return problem;
}
