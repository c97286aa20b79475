/** What fits no worker there is: the demand that pools with a provider grow by. */
import type { Demand } from '../capacity/capacity.ts';
import type { Price } from '../money.ts';
import type { PlacementRequest } from '../placement/request.ts';
import type { Account } from './accounts.ts';
import type { PendingClass } from './classes.ts';
import { holdOf } from './quota.ts';
import type { PlannerView } from './view.ts';

/** As many tasks of a class are named; the others are only counted. */
const TASKS_NAMED = 200;
/** So many classes are told of in one plan; the rest wait for the next. */
const CLASSES_TOLD = 2000;

/** In about the order in which they would be placed. */
export function demandOf(view: PlannerView, prices: ReadonlyMap<string, Price>): Demand[] {
  const demands: Demand[] = [];
  for (const shape of view.classes.shapes.blocked()) {
    for (const pending of shape.classes) {
      const demand = demandOfClass(pending, prices);
      if (demand) demands.push(demand);
    }
  }
  return demands
    .toSorted((a, b) => a.request.band - b.request.band || a.sinceMs - b.sinceMs)
    .slice(0, CLASSES_TOLD);
}

function demandOfClass(pending: PendingClass, prices: ReadonlyMap<string, Price>): Demand | null {
  const { queue, request } = pending;
  const first = queue.first(TASKS_NAMED);
  const [oldest] = first;
  if (!oldest) return null;
  const affordable = new Map<string, number>();
  for (const [pool, price] of prices) {
    const most = affordableIn(pending, price);
    if (Number.isFinite(most)) affordable.set(pool, most);
  }
  return {
    request,
    waiting: queue.ready,
    tasks: first.map(({ task, job }) => ({ task, job })),
    // Planners know no names: whoever asks fills it in.
    name: '',
    sinceMs: oldest.sinceMs,
    affordable,
  };
}

/** How many tasks the hard limits of its tenant and user leave room for, at this price. */
function affordableIn({ owner, request }: PendingClass, price: Price): number {
  const most = leftFor(owner.tenant, request, price);
  return owner.user === owner.tenant ? most : Math.min(most, leftFor(owner.user, request, price));
}

function leftFor(account: Account, request: PlacementRequest, price: Price): number {
  if (account.row?.mode !== 'hard') return Number.POSITIVE_INFINITY;
  const { device } = request.resources;
  const { micros, deviceMs } = holdOf(request, price);
  const devices = device ? device.count * device.share : 0;
  const times = (left: number, each: number): number =>
    each > 0 ? Math.max(0, Math.floor(left / each)) : Number.POSITIVE_INFINITY;
  return Math.min(
    times(account.devicesLeft, devices),
    times(account.deviceMsLeft, deviceMs),
    times(account.microsLeft, micros),
  );
}
