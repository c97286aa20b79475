/** One turn: the head of a class gets a place, a prospect of one, or a reason to wait. */
import type { Spot } from '../placement/fleet.ts';
import type { PlacementRequest } from '../placement/request.ts';
import { explainLimit, explainArrayLimit, explainUnaffordable } from '../explain.ts';
import type { PendingClass } from './classes.ts';
import type { Order } from './order.ts';
import type { Planning } from './planning.ts';
import { tryPreemption } from './preempting.ts';
import { within } from './prices.ts';
import { bindingLimit, type Binding } from './quota.ts';
import type { PendingTask } from './view.ts';

export function step(planning: Planning, order: Order, pending: PendingClass): void {
  const { view } = planning;
  const members = pending.queue.peek();
  if (!members) {
    order.drop();
    return;
  }
  if (setAside(planning, pending, members)) {
    order.advance();
    return;
  }
  const budget = budgetOf(planning, pending, members.length);
  if (budget.binding?.mode === 'hard') {
    holdBack(planning, pending, budget.binding);
    order.drop();
    return;
  }
  if (budget.binding && order.tier !== 'demoted') {
    order.demote();
    return;
  }
  const spots = findPlace(planning, pending, budget.request, members);
  if (spots) {
    planning.place(pending, members, spots);
    pending.queue.skip();
    order.advance();
    return;
  }
  if (order.tier !== 'demoted' && tryPreemption(planning, pending, budget.request, members)) {
    order.advance();
    return;
  }
  planning.reserving.consider(pending, members, order.tier);
  block(planning, pending, budget);
  view.classes.open.delete(pending);
  order.drop();
}

/** As many of the array's tasks hold something as may at once. */
function setAside({ view, telling }: Planning, pending: PendingClass, members: PendingTask[]) {
  const { arrayLimit } = pending.request;
  if (arrayLimit === 0) return false;
  const { job } = members[0] as PendingTask;
  if (view.claimsOf(job).size < arrayLimit) return false;
  pending.queue.setAside(job);
  if (!pending.queue.peek()) telling.tell(pending, explainArrayLimit(arrayLimit));
  return true;
}

interface Budgeted {
  binding: Binding | null;
  /** In pools only where the money suffices. */
  request: PlacementRequest;
}

function budgetOf({ view }: Planning, pending: PendingClass, count: number): Budgeted {
  const { request, owner } = pending;
  const { tenant, user } = owner;
  if (!tenant.row && !user.row) return { binding: null, request };
  if (tenant.microsLeft === Infinity && user.microsLeft === Infinity) {
    return { binding: bindingLimit(pending, count, 0), request };
  }
  const holds = view.prices.holds(request);
  const least = Math.min(...holds.map(({ micros }) => micros));
  const binding = bindingLimit(pending, count, Number.isFinite(least) ? least : 0);
  if (binding) return { binding, request };
  let left = Number.POSITIVE_INFINITY;
  for (const account of [tenant, user]) {
    if (account.row?.mode === 'hard') left = Math.min(left, account.microsLeft);
  }
  const affordable = holds.filter(({ micros }) => micros * count <= left);
  if (affordable.length === holds.length) return { binding, request };
  return {
    binding,
    request: within(
      request,
      affordable.map(({ pool }) => pool),
    ),
  };
}

function holdBack(planning: Planning, pending: PendingClass, binding: Binding): void {
  const { view, telling, reserving } = planning;
  // It could not use what is kept for it: others may.
  reserving.release(pending);
  binding.account.waiting.add(pending);
  view.classes.open.delete(pending);
  telling.tell(pending, explainLimit(binding, pending.request));
}

function findPlace(
  planning: Planning,
  pending: PendingClass,
  request: PlacementRequest,
  members: readonly PendingTask[],
): Spot[] | null {
  const { reservations } = planning.view;
  const own = reservations.of(pending);
  if (pending.shape.blocked && !own) return null;
  const yielding = own ? reservations.yielding(own) : [];
  if (own) for (const each of [own, ...yielding]) reservations.lift(each);
  const spots = planning.fit(request, members);
  for (const each of yielding) reservations.lay(each);
  if (spots) return spots;
  if (own) reservations.lay(own);
  return planning.reserving.backfill(request, members);
}

function block(planning: Planning, pending: PendingClass, { binding, request }: Budgeted): void {
  const { view, telling } = planning;
  if (request === pending.request) {
    view.classes.shapes.block(pending.shape);
    telling.misfit(pending, binding);
    return;
  }
  // It may fit where it is not affordable: so others like it are not blocked.
  view.frugal.add(pending);
  pending.owner.tenant.waiting.add(pending);
  pending.owner.user.waiting.add(pending);
  telling.tell(pending, explainUnaffordable(view, pending));
}
