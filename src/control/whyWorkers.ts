/** Why no worker takes a job: each one's reason, counted, and what would change it. */
import type { Misfit } from '../core/placement/capacity.ts';
import { unsuitable, type Unsuitable } from '../core/placement/constraints.ts';
import type { PlacementRequest } from '../core/placement/request.ts';
import type { WhyView } from '../protocol/why.ts';
import type { LiveJob, LiveWorker } from '../state/live.ts';
import { plannerWorker } from '../state/deltas.ts';
import { requestOf } from '../state/requests.ts';
import type { State } from '../state/state.ts';
import type { Hold } from './why.ts';

type Rejection = Misfit | Unsuitable;

export function noRoom(state: State, live: LiveJob, planned: string | undefined): Hold {
  if (state.workers.size === 0) {
    return {
      code: 'NO_WORKER',
      sentence: 'no worker has joined yet',
      suggestions: ['join one: drover tokens create --kind join, drover agent --join URL TOKEN'],
    };
  }
  const request = requestOf(live.job);
  const counts = new Map<Rejection, number>();
  for (const worker of state.workers.values()) {
    const reason = rejection(state, worker, request);
    if (reason) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  }
  return {
    code: planned === undefined ? 'QUEUED' : 'NO_ROOM',
    sentence: planned ?? 'it is next to be looked at',
    workers: [...counts].map(([reason, count]) => ({
      reason,
      count,
      text: describe(reason, request),
    })),
    suggestions: planned === undefined ? [] : suggestions(counts, request),
  };
}

/** What keeps a worker from taking such work now; null: nothing. */
export function rejection(
  state: State,
  { worker, capacity }: LiveWorker,
  request: PlacementRequest,
): Rejection | null {
  const reason = unsuitable(plannerWorker(worker, state.poolPolicies.get(worker.pool)), request);
  if (reason) return reason;
  const fit = capacity.fit(request.resources);
  return fit.fits ? null : fit.short;
}

function describe(reason: Rejection, request: PlacementRequest): string {
  const words: Record<Rejection, string> = {
    devices: 'too few free devices that match',
    cpus: 'too few free CPUs',
    memory: 'too little free memory',
    ports: 'too few free ports',
    pool: `not in pool ${request.pool}`,
    closed: 'draining or out of contact',
    terms: 'they do not take such work',
    constraint: 'without the attributes asked for',
  };
  return words[reason];
}

function suggestions(
  counts: ReadonlyMap<Rejection, number>,
  request: PlacementRequest,
): WhyView['suggestions'] {
  const words: Record<Rejection, string> = {
    devices: request.resources.device?.models.length
      ? 'ask for fewer devices, or for any model'
      : 'ask for fewer devices',
    cpus: 'ask for less: --cpus',
    memory: 'ask for less: --mem',
    ports: 'ask for less: --ports',
    pool: 'leave --pool out',
    closed: 'put workers back to work: drover workers undrain ID',
    terms: 'see what the pools demand, or allow more: --spot',
    constraint: 'make a --constraint a --prefer',
  };
  return [...counts.keys()].map((reason) => words[reason]);
}
