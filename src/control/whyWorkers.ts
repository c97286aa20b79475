/** What the planner said of a job's class, with the workers counted and what would change it. */
import type { Explanation } from '../core/explain.ts';
import type { Rejection } from '../core/placement/fleet.ts';
import type { PlacementRequest } from '../core/placement/request.ts';
import type { LiveJob } from '../state/live.ts';
import { requestOf } from '../state/requests.ts';
import type { State } from '../state/state.ts';
import type { Hold } from './why.ts';
import { quotaView } from './whyQuota.ts';

type Counted = Explanation['workers'];

export function asPlanned(
  state: State,
  live: LiveJob,
  why: Explanation | undefined,
  nowMs: number,
): Hold {
  if (!why) return notPlannedYet(state);
  const request = requestOf(live.job);
  const { workers } = why;
  const advice = why.suggestions.length > 0 ? why.suggestions : suggestions(workers, request);
  return {
    code: why.code,
    sentence: why.sentence,
    workers: workers.map(({ reason, count }) => ({
      reason,
      count,
      text: describe(reason, request),
    })),
    quota: why.quota && quotaView(state, why.quota, nowMs),
    suggestions: advice,
  };
}

function notPlannedYet({ workers }: State): Hold {
  if (workers.size > 0) {
    return { code: 'QUEUED', sentence: 'it is about to be looked at', suggestions: [] };
  }
  return {
    code: 'NO_WORKER',
    sentence: 'no worker has joined yet',
    suggestions: ['join one: drover tokens create --kind join, drover agent --join URL TOKEN'],
  };
}

function describe(reason: Rejection, request: PlacementRequest): string {
  const words: Record<Rejection, string> = {
    pool: `not in pool ${request.pool}`,
    closed: 'draining or out of contact',
    terms: 'do not take such work',
    constraint: 'without the attributes asked for',
    ends: 'end before it would',
    'anti-affinity': `have another of ${request.placement.antiAffinity}`,
    exclusive: 'would have to be shared',
    devices: 'too few free devices that match',
    cpus: 'too few free CPUs',
    memory: 'too little free memory',
    ports: 'too few free ports',
    gang: `room for a member, but all ${request.gangSize} do not fit on one network`,
  };
  return words[reason];
}

function suggestions(workers: Counted, request: PlacementRequest): string[] {
  const words: Record<Rejection, string> = {
    devices: request.resources.device?.models.length
      ? 'ask for fewer devices, or for any model'
      : 'ask for fewer devices',
    cpus: 'ask for less: --cpus',
    memory: 'ask for less: --mem',
    ports: 'ask for less: --ports',
    pool: 'leave --pool out',
    closed: 'put workers back to work: drover workers undrain ID',
    terms: 'allow more: --spot, or another --trust',
    constraint: 'make a --constraint a --prefer',
    ends: 'ask for less time (--time), or let it be cut: --checkpoint',
    'anti-affinity': 'leave --anti-affinity out',
    exclusive: 'leave --exclusive out',
    gang: 'ask for a smaller gang, or leave --locality out',
  };
  return workers.toSorted((a, b) => b.count - a.count).map(({ reason }) => words[reason]);
}
