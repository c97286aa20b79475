/** Workers join, are suspected, lost, drained. */
import { moveWorker } from '../core/lifecycle/worker.ts';
import { Capacity } from '../core/placement/capacity.ts';
import type { WorkerId } from '../model/ids.ts';
import { BEGUN, type Worker } from '../model/worker.ts';
import { endAttempt, lostEnding } from './endings.ts';
import { faultHost } from './hosts.ts';
import { instanceOfHandle, joinInstance, refuseJoin } from './instanceJoins.ts';
import { dropNominationsOf } from './nominations.ts';
import { DONE, missing, stale } from './mutations.ts';
import type { Drain, Join, MoveWorker, Result, RevokeWorker } from './mutations.ts';
import type { LiveWorker } from './live.ts';
import type { State } from './state.ts';

/** Workers belong to the installation, not to a tenant. */
const SYSTEM_TENANT = '';

/**
 * A machine that joins again keeps its worker, with a new token: whoever holds the old one is
 * fenced.
 */
export function join(state: State, mutation: Join, nowMs: number): Result {
  const earlier = state.workersByMachine.get(mutation.worker.machine);
  const refused = refuseJoin(state, mutation, earlier?.worker.id ?? null);
  if (refused) return refused;
  const limit = mutation.maxLiveWorkers;
  const counted = earlier?.worker.joinToken === mutation.worker.joinToken;
  if (limit > 0 && !counted && countLive(state, mutation.worker.joinToken) >= limit) {
    return { kind: 'too-many', limit };
  }
  if (earlier) return supersede(state, earlier, mutation, nowMs);
  const worker: Worker = {
    ...mutation.worker,
    id: state.mint('w') as WorkerId,
    state: 'ONLINE',
    draining: false,
    instance: null,
    endsAtMs: null,
    problems: [],
    joinedAtMs: nowMs,
    endedAtMs: null,
    version: 1,
  };
  state.addWorker(worker);
  state.changes.workers.set(worker, 'insert');
  noteWorker(state, 'worker.joined', worker, nowMs, { name: worker.name, pool: worker.pool });
  linkInstance(state, mutation, worker, nowMs);
  return { kind: 'joined', worker: worker.id, superseded: false };
}

function linkInstance(state: State, mutation: Join, worker: Worker, nowMs: number): void {
  const { instance, handle, randomHex = [] } = mutation;
  const { instances } = state.machines;
  const live = handle
    ? instanceOfHandle(state, worker.pool, handle)
    : instance && instances.get(instance);
  if (live) joinInstance(state, live, worker, randomHex, nowMs);
}

function supersede(state: State, live: LiveWorker, mutation: Join, nowMs: number): Result {
  const { worker } = live;
  state.workersByToken.delete(worker.tokenHash);
  const begun = mutation.worker.attributes[BEGUN];
  const beganAgain = begun !== undefined && begun !== worker.attributes[BEGUN];
  Object.assign(worker, mutation.worker, { problems: [] });
  state.workersByToken.set(worker.tokenHash, live);
  if (worker.state === 'SUSPECT') worker.state = moveWorker('recover', worker.state);
  // What ran there before is settled by its next syncs, which list it or do not. A new boot id is
  // no proof: a join may come late, and a machine that restarted need not have joined again since.
  // An instance with an empty disk is: its provider has started it anew.
  if (beganAgain && worker.instance !== null) {
    loseAll(state, live, 'its machine was started anew by the provider', nowMs);
  }
  live.capacity = new Capacity(worker.resources);
  for (const uid of live.attempts.keys()) {
    const claim = state.claims.get(uid);
    if (claim) live.capacity.take(claim);
  }
  for (const { claim } of state.nominations.values()) {
    if (claim.worker === worker.id) live.capacity.take(claim);
  }
  if (mutation.instance !== worker.instance) state.machines.unlink(worker.instance, worker.id);
  linkInstance(state, mutation, worker, nowMs);
  state.touchWorker(worker);
  state.wake.add(worker.id);
  noteWorker(state, 'worker.joined', worker, nowMs, { name: worker.name, again: true });
  return { kind: 'joined', worker: worker.id, superseded: true };
}

export function moveLiveWorker(state: State, mutation: MoveWorker, nowMs: number): Result {
  const live = state.workers.get(mutation.worker);
  if (!live) return missing(`worker ${mutation.worker}`);
  const { worker } = live;
  const expected = mutation.move === 'recover' ? 'SUSPECT' : 'ONLINE';
  if (mutation.move !== 'lose' && worker.state !== expected) return stale(`it is ${worker.state}`);
  if (mutation.move === 'lose') {
    const at = { pool: worker.pool, name: worker.host };
    if (live.attempts.size > 0) faultHost(state, at, 'silent-loss', mutation.reason, nowMs);
    loseWorker(state, live, mutation.reason, nowMs);
    return DONE;
  }
  worker.state = moveWorker(mutation.move, worker.state);
  state.touchWorker(worker);
  const kinds = { suspect: 'worker.suspect', recover: 'worker.online' } as const;
  noteWorker(state, kinds[mutation.move], worker, nowMs, { reason: mutation.reason });
  return DONE;
}

/** It is gone for good, by its silence or because its provider says so. */
export function loseWorker(state: State, live: LiveWorker, reason: string, nowMs: number): void {
  const { worker } = live;
  worker.state = moveWorker('lose', worker.state);
  loseAll(state, live, reason, nowMs);
  for (const nomination of [...state.nominations.values()]) {
    if (nomination.claim.worker !== worker.id) continue;
    dropNominationsOf(state, nomination.live, reason, nowMs);
  }
  worker.endedAtMs = nowMs;
  state.machines.unlink(worker.instance, worker.id);
  state.dropWorker(live);
  state.touchWorker(worker);
  noteWorker(state, 'worker.lost', worker, nowMs, { reason });
}

export function drain(state: State, mutation: Drain, nowMs: number): Result {
  const live = state.workers.get(mutation.worker);
  if (!live) return missing(`worker ${mutation.worker}`);
  if (live.worker.draining === mutation.draining) return DONE;
  live.worker.draining = mutation.draining;
  state.touchWorker(live.worker);
  const kind = mutation.draining ? 'worker.draining' : 'worker.undrained';
  const { by, tenant } = mutation;
  state.note(nowMs, { kind, tenant, worker: live.worker.id, data: { by } });
  return DONE;
}

/** Its claims stay held: only its silence for a whole lease proves that nothing runs there. */
export function revokeWorker(state: State, mutation: RevokeWorker, nowMs: number): Result {
  const live = state.workers.get(mutation.worker);
  if (!live) return missing(`worker ${mutation.worker}`);
  const { worker } = live;
  if (worker.tokenHash === '') return DONE;
  state.workersByToken.delete(worker.tokenHash);
  worker.tokenHash = '';
  worker.draining = true;
  state.touchWorker(worker);
  const { by, tenant } = mutation;
  state.note(nowMs, { kind: 'worker.revoked', tenant, worker: worker.id, data: { by } });
  return DONE;
}

function loseAll(state: State, live: LiveWorker, reason: string, nowMs: number): void {
  for (const attempt of [...live.attempts.values()]) {
    endAttempt(state, attempt, lostEnding(reason), nowMs);
  }
}

function countLive(state: State, joinToken: string): number {
  let count = 0;
  for (const { worker } of state.workers.values()) if (worker.joinToken === joinToken) count++;
  return count;
}

function noteWorker(
  state: State,
  kind: 'worker.joined' | 'worker.suspect' | 'worker.online' | 'worker.lost',
  worker: Worker,
  nowMs: number,
  data: Record<string, string | boolean>,
): void {
  state.note(nowMs, { kind, tenant: SYSTEM_TENANT, worker: worker.id, data });
}
