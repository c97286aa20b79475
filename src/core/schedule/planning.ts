/** A plan in the making: what every rule needs, and the few things that rules do. */
import { attemptUid } from '../../model/ids.ts';
import { claimOf } from '../placement/capacity.ts';
import type { Spot } from '../placement/fleet.ts';
import type { PendingClass } from './classes.ts';
import type { Placement, Plan, SchedulePolicy } from './plan.ts';
import { Reserving } from './reserving.ts';
import { Telling } from './telling.ts';
import type { Booked, PendingTask, PlannerView } from './view.ts';

export class Planning {
  readonly view: PlannerView;
  readonly nowMs: number;
  readonly policy: SchedulePolicy;
  readonly made: Plan = {
    withdrawals: [],
    placements: [],
    preemptions: [],
    cleared: [],
    waiting: [],
    nextAtMs: null,
    more: false,
  };
  readonly reserving: Reserving;
  readonly telling: Telling;
  readonly #randomHex: () => string;
  /** Tasks placed. */
  placed = 0;
  /** Classes whose turn comes in the next plan, at once. */
  readonly again = new Set<PendingClass>();
  /** How often victims were looked for. */
  searches = 0;

  constructor(view: PlannerView, nowMs: number, randomHex: () => string, policy: SchedulePolicy) {
    this.view = view;
    this.nowMs = nowMs;
    this.policy = policy;
    this.#randomHex = randomHex;
    this.reserving = new Reserving(this);
    this.telling = new Telling(this);
  }

  tryAgain(pending: PendingClass): void {
    this.again.add(pending);
    this.view.classes.open.add(pending);
    this.made.more = true;
  }

  nextAt(ms: number | null): void {
    if (ms === null) return;
    const { nextAtMs } = this.made;
    this.made.nextAtMs = nextAtMs === null ? ms : Math.min(nextAtMs, ms);
  }

  /** Where it fits now; nothing is booked. */
  fit(request: PendingClass['request'], members: readonly PendingTask[]): Spot[] | null {
    const size = members.length;
    const { fleet } = this.view;
    const inputs = members[0]?.inputs;
    // Members on one worker have consecutive ranks: what torchrun assumes of its nodes.
    if (size > 1) return fleet.placeGang(request, size, inputs)?.toSorted(byWorker) ?? null;
    const spot = fleet.place(request, inputs);
    return spot && [spot];
  }

  place(pending: PendingClass, members: PendingTask[], spots: Spot[]): void {
    this.#placed(pending, this.#book(pending, members, spots, 'HELD'));
  }

  /** A nomination has come true. */
  fulfil(of: PendingClass, members: { task: PendingTask; booked: Booked }[]): void {
    const { job, round } = (members[0] as { task: PendingTask }).task;
    const tasks = members.map(({ task, booked }) => {
      const claim = { ...booked.claim, state: 'HELD' as const };
      this.view.book({ claim, job, classKey: of.request.key, sinceMs: this.nowMs });
      return { task: task.task, version: task.version, claim };
    });
    this.#placed(of, { job, round, tasks });
    // Others of the class wait, and are told why.
    if (of.queue.peek()) this.view.classes.open.add(of);
  }

  nominate(pending: PendingClass, members: PendingTask[], spots: Spot[]): Placement {
    return this.#book(pending, members, spots, 'NOMINATED');
  }

  #placed(pending: PendingClass, placement: Placement): void {
    this.made.placements.push(placement);
    this.placed += placement.tasks.length;
    this.telling.clear(pending);
    this.reserving.noticePlaced(pending, placement);
  }

  #book(
    pending: PendingClass,
    members: PendingTask[],
    spots: Spot[],
    state: 'HELD' | 'NOMINATED',
  ): Placement {
    const { view, nowMs } = this;
    const { request } = pending;
    const { job, round } = members[0] as PendingTask;
    const limited = pending.owner.tenant.row !== null || pending.owner.user.row !== null;
    const tasks = members.map((task, at) => {
      const spot = spots[at] as Spot;
      const uid = attemptUid(task.task, task.attempts + 1, this.#randomHex());
      const claim = claimOf(uid, spot.worker, request.resources, spot);
      claim.state = state;
      view.book({ claim, job, classKey: request.key, sinceMs: nowMs });
      if (limited) view.setAside(claim, pending);
      return { task: task.task, version: task.version, claim };
    });
    return { job, round, tasks };
  }
}

function byWorker(a: Spot, b: Spot): number {
  if (a.worker === b.worker) return 0;
  return a.worker < b.worker ? -1 : 1;
}
