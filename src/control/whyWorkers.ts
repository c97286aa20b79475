/** Why no worker takes a job: each one's reason, counted, and what would change it. */
import type { Misfit } from '../core/placement/capacity.ts';
import type { PlacementRequest } from '../core/placement/request.ts';
import type { WhyView } from '../protocol/why.ts';
import type { LiveJob, LiveWorker } from '../state/live.ts';
import { requestOf } from '../state/requests.ts';
import type { State } from '../state/state.ts';
import type { Hold } from './why.ts';

type Rejection = Misfit | 'pool' | 'closed';

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
    const reason = rejection(worker, request);
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

function rejection({ worker, capacity }: LiveWorker, request: PlacementRequest): Rejection | null {
  if (request.pool !== '' && worker.pool !== request.pool) return 'pool';
  if (worker.state !== 'ONLINE' || worker.draining) return 'closed';
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
  };
  return [...counts.keys()].map((reason) => words[reason]);
}
