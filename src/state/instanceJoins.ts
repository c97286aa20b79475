/**
 * A worker joins for an instance. What the instance was sized for is nominated for it in the same
 * mutation, so that nobody else is promised the machine.
 */
import { isComing } from '../core/lifecycle/instance.ts';
import { Capacity, claimOf } from '../core/placement/capacity.ts';
import { attemptUid, type WorkerId } from '../model/ids.ts';
import type { Worker } from '../model/worker.ts';
import { move } from './instanceMoves.ts';
import type { LiveInstance } from './live.ts';
import type { Join, Preempt, Result } from './mutations.ts';
import { preempt } from './nominations.ts';
import { requestOf } from './requests.ts';
import type { State } from './state.ts';

/** Why a worker may not join for the instance; null: it may. */
export function refuseJoin(state: State, mutation: Join, again: WorkerId | null): Result | null {
  if (mutation.instance === undefined) return null;
  const live = state.machines.instances.get(mutation.instance);
  const at = live?.instance.state ?? 'DESTROYED';
  const others = again !== null && live?.workers.has(again) ? 1 : 0;
  // One that is being emptied may still lose and find its agent.
  const open = isComing(at) || at === 'JOINED' || (at === 'DRAINING' && others === 1);
  if (!live || !open) {
    return { kind: 'instance-ended', reason: `instance ${mutation.instance} is ${at}` };
  }
  if (live.workers.size - others < live.instance.workers) return null;
  return { kind: 'too-many', limit: live.instance.workers };
}

/** Of a worker that comes with a pool's token: the instance that is that machine. */
export function instanceOfHandle(
  state: State,
  pool: string,
  handle: string,
): LiveInstance | undefined {
  for (const live of state.machines.instances.values()) {
    if (live.instance.pool === pool && live.instance.handle === handle) return live;
  }
  return undefined;
}

export function joinInstance(
  state: State,
  live: LiveInstance,
  worker: Worker,
  randomHex: readonly string[],
  nowMs: number,
): void {
  const { instance } = live;
  live.workers.add(worker.id);
  worker.instance = instance.id;
  worker.endsAtMs = instance.endsAtMs;
  if (instance.runAs !== '') worker.terms = { ...worker.terms, users: [instance.runAs] };
  if (instance.host === '') instance.host = worker.host;
  if (!isComing(instance.state) || live.workers.size < instance.workers) return;
  instance.reason = '';
  move(state, instance, 'join', nowMs);
  // Until now none of them took work.
  for (const id of live.workers) state.deltas.workers.add(id);
  const nomination = nominate(state, live, randomHex);
  const result = nomination && preempt(state, nomination, nowMs);
  if (result && result.kind !== 'done') instance.reason = `joined, but ${wordsOf(result)}`;
}

/** Its tasks that still wait, one for each worker; null: none does. */
function nominate(
  state: State,
  { instance, workers }: LiveInstance,
  randomHex: readonly string[],
): Preempt | null {
  const places = [...workers].map((id) => ({ id, room: roomOn(state, id) }));
  const tasks: Preempt['tasks'] = [];
  let job: Pick<Preempt, 'job' | 'round'> | null = null;
  for (const [at, id] of instance.tasks.entries()) {
    const found = state.task(id);
    const hex = randomHex[at];
    if (!found || !hex || found.task.state !== 'PENDING') continue;
    const request = requestOf(found.live.job).resources;
    for (const { id: worker, room } of places) {
      const fit = room.fit(request);
      if (!fit.fits) continue;
      const owner = attemptUid(id, found.task.attempts + 1, hex);
      const claim = { ...claimOf(owner, worker, request, fit), state: 'NOMINATED' as const };
      room.take(claim);
      tasks.push({ task: id, version: found.task.version, claim });
      job = { job: found.live.job.id, round: found.live.job.round };
      break;
    }
  }
  // A gang starts whole or not at all.
  if (!job || tasks.length < instance.tasks.length) return null;
  const reason = `instance ${instance.id} has come for it`;
  return { kind: 'preempt', ...job, tasks, victims: [], reason };
}

function roomOn(state: State, id: WorkerId): Capacity {
  const live = state.workers.get(id);
  return new Capacity(live?.worker.resources ?? NOTHING);
}

const NOTHING = {
  cpuMillis: 0,
  memoryBytes: 0,
  devices: [],
  portRange: [1, 0] as [number, number],
};

function wordsOf(result: Result): string {
  return result.kind === 'stale' ? result.reason : result.kind;
}
