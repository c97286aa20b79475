/** Nominations that come true, that have found something better, or that have become void. */
import type { Claim } from '../../model/claim.ts';
import { taskOf } from '../../model/ids.ts';
import type { FleetWorker } from '../placement/fleet.ts';
import { conflicts } from './ends.ts';
import type { Nomination } from './nominations.ts';
import type { Planning } from './planning.ts';
import type { Booked, PendingTask } from './view.ts';

export function settleNominations(planning: Planning): void {
  const { view } = planning;
  if (view.nominations.size === 0) return;
  // What is kept for others lies on top of what runs, and would look as if it were still in use.
  const kept = [...view.reservations.values()].filter((each) => view.reservations.isLaid(each));
  for (const reservation of kept) view.reservations.lift(reservation);
  for (const nomination of [...view.nominations.values()]) {
    const members = membersOf(planning, nomination);
    const closed = closedOn(planning, nomination);
    if (!members) withdraw(planning, nomination, 'what it was for waits no more');
    else if (closed) withdraw(planning, nomination, closed);
    else if ([...nomination.claims.values()].every(({ claim }) => isClear(planning, claim))) {
      planning.fulfil(nomination.of, members);
    } else if (view.freed.size > 0) {
      for (const reservation of kept) view.reservations.lay(reservation);
      moveElsewhere(planning, nomination, members);
      for (const reservation of kept) view.reservations.lift(reservation);
    }
  }
  for (const reservation of kept) {
    if (view.reservations.has(reservation)) view.reservations.lay(reservation);
  }
}

/** In the order of their indices; null: not all of them wait, or not in one round. */
function membersOf(
  { view }: Planning,
  { of, claims }: Nomination,
): { task: PendingTask; booked: Booked }[] | null {
  const members: { task: PendingTask; booked: Booked }[] = [];
  for (const [uid, booked] of claims) {
    const task = view.classes.task(taskOf(uid));
    if (!task || task.round !== (members[0]?.task ?? task).round) return null;
    members.push({ task, booked });
  }
  if (members.length !== of.request.gangSize) return null;
  return members.toSorted((a, b) => a.task.index - b.task.index);
}

function closedOn({ view }: Planning, { of, claims }: Nomination): string | null {
  for (const { claim } of claims.values()) {
    const worker = view.fleet.worker(claim.worker);
    if (!worker || !view.fleet.accepts(worker, of.request)) {
      return `worker ${worker?.info.name ?? claim.worker} does not take it any more`;
    }
  }
  return null;
}

function withdraw({ view, made }: Planning, { claims }: Nomination, reason: string): void {
  for (const owner of [...claims.keys()]) {
    made.withdrawals.push({ owner, reason });
    view.unbook(owner);
  }
}

/** Whether nothing that it uses is held by anybody else any more. */
function isClear({ view }: Planning, claim: Claim): boolean {
  const worker = view.fleet.worker(claim.worker) as FleetWorker;
  const { capacity } = worker;
  if (claim.cpuMillis > 0 && capacity.cpuFree < 0) return false;
  if (claim.memoryBytes > 0 && capacity.memoryFree < 0) return false;
  for (const [at, { index }] of capacity.resources.devices.entries()) {
    if (claim.devices.includes(index) && (capacity.deviceFree[at] ?? 0) < 0) return false;
  }
  const { request } = (view.claims.get(claim.owner) as Booked).of;
  const ports = new Set(claim.ports);
  for (const other of worker.claims.values()) {
    if (other.owner === claim.owner) continue;
    if (other.ports.some((port) => ports.has(port)) || conflicts(view, other, request)) {
      return false;
    }
  }
  return true;
}

/** It starts at once where there is room by now, and its prospect is free for others. */
function moveElsewhere(
  planning: Planning,
  { of, claims }: Nomination,
  members: { task: PendingTask; booked: Booked }[],
): void {
  const { view } = planning;
  for (const owner of claims.keys()) view.fleet.give(owner);
  const tasks = members.map(({ task }) => task);
  const spots = planning.fit(of.request, tasks);
  for (const { claim } of claims.values()) view.fleet.take(claim, of.request);
  if (!spots) return;
  withdraw(planning, { job: tasks[0]!.job, of, claims }, 'there is room elsewhere by now');
  for (const task of tasks) of.queue.takeOut(task);
  planning.place(of, tasks, spots);
}
