/** Workers that die and come back: silent first, then suspect, then lost, as leases have it. */
import { assert } from '../../lib/errors.ts';
import type { Random } from '../../lib/random.ts';
import type { WorkerId } from '../../model/ids.ts';
import type { Join, Mutation, Result } from '../../state/mutations.ts';
import type { State } from '../../state/state.ts';
import type { Agenda } from './agenda.ts';
import { joins, type Fleet, type FleetPool } from './fleet.ts';
import type { Machines } from './machines.ts';
import type { Measures } from './measures.ts';

/** The defaults of a controller. */
const WORKER_LEASE_MS = 30_000;
const ATTEMPT_LEASE_MS = 300_000;

export interface OutageOptions {
  state: State;
  agenda: Agenda;
  measures: Measures;
  machines: Machines;
  random: Random;
  mutate: (mutation: Mutation) => Result;
}

/** All workers join; those of pools that lose some will be lost. */
export function openFleet(fleet: Fleet, options: OutageOptions): void {
  for (const pool of fleet.pools) {
    for (const join of joins(pool)) joinWorker(pool, join, options);
  }
}

function joinWorker(pool: FleetPool, join: Join, options: OutageOptions): void {
  const { state, agenda, measures, random, mutate } = options;
  const result = mutate(join);
  assert(result.kind === 'joined', `a worker could not join: ${result.kind}`);
  const live = state.workers.get(result.worker);
  if (live) measures.joined(live.worker);
  if (pool.failEveryMs === 0) return;
  const afterMs = Math.ceil(-Math.log(1 - random.next()) * pool.failEveryMs);
  const fail = (): void => failWorker(pool, join, result.worker, options);
  agenda.at(agenda.now() + afterMs, fail, true);
}

function failWorker(pool: FleetPool, join: Join, worker: WorkerId, options: OutageOptions): void {
  const { state, agenda, measures, machines, mutate } = options;
  const reason = 'its worker was lost';
  machines.fail(worker);
  agenda.setTimer(WORKER_LEASE_MS, () => {
    mutate({ kind: 'move-worker', worker, move: 'suspect', reason });
  });
  agenda.setTimer(ATTEMPT_LEASE_MS, () => {
    const live = state.workers.get(worker);
    if (live) measures.left(live.worker);
    mutate({ kind: 'move-worker', worker, move: 'lose', reason });
  });
  agenda.setTimer(Math.max(pool.backAfterMs, ATTEMPT_LEASE_MS + 1), () => {
    machines.forget(worker);
    joinWorker(pool, join, options);
  });
}
