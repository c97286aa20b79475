/**
 * The placement policy: bands in order, oldest job first, each task on the first worker with room;
 * a gang on one network, all members or none. A class whose head does not fit waits without holding
 * up others.
 */
import { claimOf, type Capacity, type Misfit } from '../placement/capacity.ts';
import type { Claim } from '../../model/claim.ts';
import { attemptUid, type JobId, type TaskId } from '../../model/ids.ts';
import type { PlacementRequest } from '../placement/request.ts';
import type { PendingClass, PendingTask, PlannerView, ViewWorker } from './view.ts';

interface Placement {
  job: JobId;
  round: number;
  tasks: { task: TaskId; version: number; claim: Claim }[];
}

export interface Plan {
  placements: Placement[];
  /** Why the head of each waiting class waits. */
  waiting: { classKey: string; reason: string }[];
  /** Classes that wait no longer: placed, or left by all. */
  cleared: string[];
  /** When something that waits for a time becomes ready; null: nothing does. */
  nextAtMs: number | null;
  /** The limit of one plan was reached and there is more to place. */
  more: boolean;
}

/** A plan stays short so that its mutations are applied while they are fresh. */
export const PLACEMENTS_PER_PLAN = 2000;

export function planFirstFit(view: PlannerView, nowMs: number, randomHex: () => string): Plan {
  const plan: Plan = { placements: [], waiting: [], cleared: [], nextAtMs: null, more: false };
  plan.cleared.push(...view.emptied.splice(0));
  const open: PendingClass[] = [];
  for (const pending of view.classes.values()) {
    const next = pending.queue.mature(nowMs);
    if (next !== null && (plan.nextAtMs === null || next < plan.nextAtMs)) plan.nextAtMs = next;
    if (pending.blockedAt !== view.freed && pending.queue.peek()) open.push(pending);
  }
  const cursors = new Map<PendingClass, number>();
  const workers = [...view.workers.values()].filter((worker) => worker.info.open);
  while (open.length > 0) {
    if (plan.placements.length >= PLACEMENTS_PER_PLAN) {
      plan.more = true;
      break;
    }
    const pending = pickClass(open);
    const members = pending.queue.peek();
    if (!members) {
      open.splice(open.indexOf(pending), 1);
      continue;
    }
    const claims =
      members.length === 1
        ? placeOne(pending, members, workers, cursors, randomHex)
        : placeGang(pending, members, workers, randomHex);
    if (!claims) {
      pending.blockedAt = view.freed;
      pending.reason = explain(pending.request, view);
      plan.waiting.push({ classKey: pending.request.key, reason: pending.reason });
      open.splice(open.indexOf(pending), 1);
      continue;
    }
    for (const claim of claims) view.hold(claim);
    pending.queue.skip();
    if (pending.reason !== '') plan.cleared.push(pending.request.key);
    pending.reason = '';
    plan.placements.push(placementOf(members, claims));
  }
  return plan;
}

/** Few classes are open at a time, so a scan is as good as a heap. */
function pickClass(open: PendingClass[]): PendingClass {
  let best = open[0] as PendingClass;
  for (const pending of open) {
    const a = pending.queue.peek()?.[0];
    const b = best.queue.peek()?.[0];
    if (!a || !b) continue;
    const bands = pending.request.band - best.request.band;
    if (bands < 0 || (bands === 0 && a.job < b.job)) best = pending;
  }
  return best;
}

/** Within one plan capacity only shrinks, so workers passed over once need not be tried again. */
function placeOne(
  pending: PendingClass,
  members: PendingTask[],
  workers: ViewWorker[],
  cursors: Map<PendingClass, number>,
  randomHex: () => string,
): Claim[] | null {
  const { request } = pending;
  const task = members[0] as PendingTask;
  for (let at = cursors.get(pending) ?? 0; at < workers.length; at++) {
    const worker = workers[at] as ViewWorker;
    if (!inPool(worker, request)) continue;
    const fit = worker.capacity.fit(request.resources);
    if (!fit.fits) continue;
    cursors.set(pending, at);
    const uid = attemptUid(task.task, task.attempts + 1, randomHex());
    return [claimOf(uid, worker.info.id, request.resources, fit)];
  }
  cursors.set(pending, workers.length);
  return null;
}

function placeGang(
  pending: PendingClass,
  members: PendingTask[],
  workers: ViewWorker[],
  randomHex: () => string,
): Claim[] | null {
  const networks = new Set(workers.map((worker) => worker.info.network));
  for (const network of networks) {
    const usable = workers.filter(
      (worker) => worker.info.network === network && inPool(worker, pending.request),
    );
    const claims = tryGang(pending.request, members, usable, randomHex);
    if (claims) return claims;
  }
  return null;
}

/** Books the members one by one, then gives everything back: the caller books what it keeps. */
function tryGang(
  request: PlacementRequest,
  members: PendingTask[],
  workers: ViewWorker[],
  randomHex: () => string,
): Claim[] | null {
  const held: { capacity: Capacity; claim: Claim }[] = [];
  let at = 0;
  for (const task of members) {
    for (; at < workers.length; at++) {
      const { capacity, info } = workers[at] as ViewWorker;
      const fit = capacity.fit(request.resources);
      if (!fit.fits) continue;
      const uid = attemptUid(task.task, task.attempts + 1, randomHex());
      const claim = claimOf(uid, info.id, request.resources, fit);
      capacity.take(claim);
      held.push({ capacity, claim });
      break;
    }
    if (at === workers.length) break;
  }
  for (const { capacity, claim } of held) capacity.give(claim);
  return held.length === members.length ? held.map(({ claim }) => claim) : null;
}

function inPool(worker: ViewWorker, request: PlacementRequest): boolean {
  return request.pool === '' || worker.info.pool === request.pool;
}

function placementOf(members: PendingTask[], claims: Claim[]): Placement {
  const first = members[0] as PendingTask;
  return {
    job: first.job,
    round: first.round,
    tasks: members.map((task, at) => ({
      task: task.task,
      version: task.version,
      claim: claims[at] as Claim,
    })),
  };
}

/** Counts workers by why they were passed over, from the same data the decision used. */
export function explain(request: PlacementRequest, view: PlannerView): string {
  if (view.workers.size === 0) return 'no worker has joined yet';
  const short = new Map<Misfit | 'pool' | 'closed' | 'gang', number>();
  const count = (why: Misfit | 'pool' | 'closed' | 'gang'): void =>
    void short.set(why, (short.get(why) ?? 0) + 1);
  for (const worker of view.workers.values()) {
    if (!inPool(worker, request)) count('pool');
    else if (!worker.info.open) count('closed');
    else {
      const fit = worker.capacity.fit(request.resources);
      count(fit.fits ? 'gang' : fit.short);
    }
  }
  const words: Record<Misfit | 'pool' | 'closed' | 'gang', string> = {
    devices: 'with too few free devices that match',
    cpus: 'with too few free CPUs',
    memory: 'with too little free memory',
    ports: 'with too few free ports',
    pool: `not in pool ${request.pool}`,
    closed: 'draining or out of contact',
    gang: `with room for a member, but all ${request.gangSize} do not fit on one network`,
  };
  const parts = [...short].map(([why, workers]) => `${workers} ${words[why]}`);
  const { size } = view.workers;
  return `no room on ${size} worker${size === 1 ? '' : 's'}: ${parts.join(', ')}`;
}
