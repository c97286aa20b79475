/** Why something waits, in words: from the data the decision used. */
import type { Rejection } from './placement/fleet.ts';
import type { PlacementRequest } from './placement/request.ts';
import type { PlannerView } from './schedule/view.ts';

export type WaitCode = 'NO_WORKER' | 'NO_ROOM';

export interface Explanation {
  code: WaitCode;
  sentence: string;
  workers: { reason: Rejection; count: number }[];
}

export function explainMisfit(view: PlannerView, request: PlacementRequest): Explanation {
  const { size } = view.fleet;
  if (size === 0) return { code: 'NO_WORKER', sentence: 'no worker has joined yet', workers: [] };
  const workers = [...view.fleet.rejections(request)].map(([reason, count]) => ({ reason, count }));
  const parts = workers.map(({ reason, count }) => `${count} ${wordsFor(reason, request)}`);
  const sentence = `no room on ${size} worker${size === 1 ? '' : 's'}: ${parts.join(', ')}`;
  return { code: 'NO_ROOM', sentence, workers };
}

/** Without saying why each worker was passed over. */
export function noRoom(view: PlannerView): Explanation {
  const { size } = view.fleet;
  return { code: 'NO_ROOM', sentence: `no room on ${size} workers now`, workers: [] };
}

function wordsFor(reason: Rejection, request: PlacementRequest): string {
  const words: Record<Rejection, string> = {
    pool: `not in pool ${request.pool}`,
    closed: 'draining or out of contact',
    terms: 'that do not take such work',
    constraint: 'without the attributes asked for',
    'anti-affinity': `with another of ${request.placement.antiAffinity}`,
    exclusive: 'that would have to be shared',
    devices: 'with too few free devices that match',
    cpus: 'with too few free CPUs',
    memory: 'with too little free memory',
    ports: 'with too few free ports',
    gang: `with room for a member, but all ${request.gangSize} do not fit on one network`,
  };
  return words[reason];
}
