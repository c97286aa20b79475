/**
 * A cluster in a few lines, as far as a planner can tell: tasks wait, run for as long as they take
 * and end; plans are applied whole, or refused and corrected as the schedule loop does.
 */
import type { PlacementRequest, PlannerWorker } from '../../src/core/placement/request.ts';
import {
  DEFAULT_POLICY,
  plan,
  type Plan,
  type SchedulePolicy,
} from '../../src/core/schedule/plan.ts';
import {
  PlannerView,
  type PendingTask,
  type PlannerAccount,
  type PlannerClaim,
} from '../../src/core/schedule/view.ts';
import { Capacity } from '../../src/core/placement/capacity.ts';
import { taskOf, type AttemptUid, type TaskId } from '../../src/model/ids.ts';
import { NOTHING, waiting } from './planning.ts';

interface WorldTask {
  request: PlacementRequest;
  pending: PendingTask;
  durationMs: number;
  submittedMs: number;
  startedMs: number | null;
}

interface Running {
  held: PlannerClaim;
  endMs: number;
}

export interface WorldOptions {
  workers: PlannerWorker[];
  accounts?: PlannerAccount[];
  policy?: Partial<SchedulePolicy>;
  /** Whether a mutation is refused. */
  refuses?: () => boolean;
}

export class PlannerWorld {
  readonly view = new PlannerView();
  readonly tasks = new Map<TaskId, WorldTask>();
  readonly claims = new Map<AttemptUid, Running>();
  nowMs = 0;
  /** Called with each plan before it is applied. */
  onPlan: (made: Plan) => void = () => undefined;
  readonly #workers: PlannerWorker[];
  readonly #policy: SchedulePolicy;
  readonly #refuses: () => boolean;
  readonly #dirty = { tasks: new Set<TaskId>(), claims: new Set<AttemptUid>() };
  #uids = 0;
  #jobs = 0;

  constructor({ workers, accounts = [], policy = {}, refuses = () => false }: WorldOptions) {
    this.#workers = workers;
    this.#policy = { ...DEFAULT_POLICY, ...policy };
    this.#refuses = refuses;
    this.view.update({ ...NOTHING, workers, accounts });
  }

  submit(request: PlacementRequest, count: number, durationMs: number): TaskId[] {
    const job = `j${String(this.#jobs++).padStart(5, '0')}`;
    return Array.from({ length: count }, (_, index) => {
      const pending = waiting(request, job, index, { sinceMs: this.nowMs });
      const { nowMs: submittedMs } = this;
      this.tasks.set(pending.task, {
        request,
        pending,
        durationMs,
        submittedMs,
        startedMs: null,
      });
      this.#dirty.tasks.add(pending.task);
      return pending.task;
    });
  }

  /** Time passes, what is over ends, and plans are made until there is no more to plan. */
  step(ms: number): void {
    this.nowMs += ms;
    for (const [uid, { endMs }] of this.claims) if (endMs <= this.nowMs) this.#end(uid);
    for (let plans = 0; plans < 50; plans++) {
      this.#tell();
      const made = plan(this.view, this.nowMs, () => `ab${this.#uids++}`, this.#policy);
      this.onPlan(made);
      const refused = this.#apply(made);
      if (!made.more && !refused) return;
    }
    throw new Error('plans without end');
  }

  isWaiting(id: TaskId): boolean {
    const task = this.tasks.get(id);
    return task !== undefined && task.startedMs === null;
  }

  /** Free on a worker without what is only in prospect; no dimension may ever be negative. */
  freeOf(worker: PlannerWorker): Capacity {
    const capacity = new Capacity(worker.resources);
    for (const { held } of this.claims.values()) {
      if (held.claim.worker === worker.id && held.claim.state !== 'NOMINATED') {
        capacity.take(held.claim);
      }
    }
    return capacity;
  }

  get workers(): readonly PlannerWorker[] {
    return this.#workers;
  }

  #end(uid: AttemptUid): void {
    const running = this.claims.get(uid);
    if (!running) return;
    this.claims.delete(uid);
    this.#dirty.claims.add(uid);
    const id = taskOf(uid);
    const task = this.tasks.get(id);
    if (!task || running.held.claim.state === 'NOMINATED') return;
    if (running.held.claim.state === 'HELD') this.tasks.delete(id);
    else {
      // Interrupted: it waits again.
      task.startedMs = null;
      task.pending = { ...task.pending, attempts: task.pending.attempts + 1, version: 99 };
    }
    this.#dirty.tasks.add(id);
  }

  #apply({ withdrawals, placements, preemptions }: Plan): boolean {
    let refused = false;
    for (const { owner } of withdrawals) this.#end(owner);
    for (const placement of placements) {
      if (this.#refuses()) {
        this.#correct(placement.tasks);
        refused = true;
        continue;
      }
      for (const { task, claim } of placement.tasks) this.#start(task, claim);
    }
    for (const { tasks, victims } of preemptions) {
      // As the state does: another one, on whose victims this one counts, may have been refused.
      if (this.#refuses() || !this.#willFit(tasks, victims)) {
        this.#correct(tasks);
        for (const { uid } of victims) this.#dirty.claims.add(uid);
        refused = true;
        continue;
      }
      for (const { uid } of victims) this.#stop(uid);
      for (const { task, claim } of tasks) this.#book(task, claim, Number.POSITIVE_INFINITY);
    }
    return refused;
  }

  /** Whether they fit when everything that is being stopped has gone. */
  #willFit(
    tasks: Plan['placements'][number]['tasks'],
    victims: Plan['preemptions'][number]['victims'],
  ): boolean {
    const leaving = new Set(victims.map(({ uid }) => uid));
    const capacities = new Map(
      this.#workers.map(({ id, resources }) => [id, new Capacity(resources)]),
    );
    for (const [uid, { held }] of this.claims) {
      if (held.claim.state === 'RELEASING' || leaving.has(uid)) continue;
      capacities.get(held.claim.worker)?.take(held.claim);
    }
    return tasks.every(({ claim }) => {
      const capacity = capacities.get(claim.worker);
      const fits = capacity?.admits(claim) ?? false;
      capacity?.take(claim);
      return fits;
    });
  }

  #correct(tasks: Plan['placements'][number]['tasks']): void {
    for (const { task, claim } of tasks) {
      this.#dirty.tasks.add(task);
      this.#dirty.claims.add(claim.owner);
    }
  }

  #start(id: TaskId, claim: PlannerClaim['claim']): void {
    const task = this.tasks.get(id) as WorldTask;
    if (task.startedMs !== null) throw new Error(`task ${id} is started twice`);
    task.startedMs = this.nowMs;
    this.#book(id, claim, this.nowMs + task.durationMs);
    this.#dirty.tasks.add(id);
  }

  #book(id: TaskId, claim: PlannerClaim['claim'], endMs: number): void {
    const { request, pending } = this.tasks.get(id) as WorldTask;
    const held = { claim, job: pending.job, classKey: request.key, sinceMs: this.nowMs };
    this.claims.set(claim.owner, { held, endMs });
    this.#dirty.claims.add(claim.owner);
  }

  #stop(uid: AttemptUid): void {
    const running = this.claims.get(uid);
    if (!running) throw new Error(`victim ${uid} does not run`);
    const { held } = running;
    if (held.claim.state !== 'HELD') throw new Error(`victim ${uid} is ${held.claim.state}`);
    running.held = { ...held, claim: { ...held.claim, state: 'RELEASING' } };
    running.endMs = this.nowMs + (this.tasks.get(taskOf(uid))?.request.graceMs ?? 0);
    this.#dirty.claims.add(uid);
  }

  #tell(): void {
    const deltas = { ...NOTHING, requests: [], pending: [], notPending: [] } as typeof NOTHING;
    const requests = new Map<string, PlacementRequest>();
    deltas.claims = [];
    deltas.claimsGone = [];
    for (const id of this.#dirty.tasks) {
      const task = this.tasks.get(id);
      if (task?.startedMs !== null || !task) {
        deltas.notPending.push(id);
        continue;
      }
      requests.set(task.request.key, task.request);
      deltas.pending.push(task.pending);
    }
    for (const uid of this.#dirty.claims) {
      const running = this.claims.get(uid);
      if (!running) {
        deltas.claimsGone.push(uid);
        continue;
      }
      const { request } = this.tasks.get(taskOf(uid)) as WorldTask;
      requests.set(request.key, request);
      deltas.claims.push(running.held);
    }
    this.#dirty.tasks.clear();
    this.#dirty.claims.clear();
    this.view.update(structuredClone({ ...deltas, requests: [...requests.values()] }));
  }
}
