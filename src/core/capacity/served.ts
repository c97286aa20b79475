/** What has been found for one demand so far. */
import type { InstanceId, TaskId } from '../../model/ids.ts';
import type { Bin } from './bins.ts';
import type { CapacityPool, Demand } from './capacity.ts';

/** Instances on their way that are sized for tasks of one class. */
export type Sized = readonly { id: InstanceId; pool: string; waiting: number }[];

export class Served {
  readonly demand: Demand;
  /** Tasks that something is on its way for. */
  tasks = 0;
  readonly instances = new Set<InstanceId>();
  readonly #perPool = new Map<string, number>();
  readonly #nowMs: number;
  /** The next of the demand's tasks that may be named. */
  #nextTask = 0;
  /** When an idle machine is no longer taken to be for it; null: none is. */
  idleUntilMs: number | null = null;

  constructor(demand: Demand, sized: Sized, nowMs: number) {
    this.demand = demand;
    this.#nowMs = nowMs;
    for (const { id, pool, waiting } of sized) {
      this.instances.add(id);
      this.count(pool, waiting);
    }
  }

  get pools(): string[] {
    return [...this.#perPool.keys()].toSorted();
  }

  count(pool: string, tasks: number): void {
    this.tasks += tasks;
    this.#perPool.set(pool, (this.#perPool.get(pool) ?? 0) + tasks);
  }

  countOn({ instance, idleSinceMs }: Bin, { name, idleTimeoutMs }: CapacityPool): void {
    if (instance !== null) this.instances.add(instance);
    this.count(name, 1);
    if (idleSinceMs === null || this.demand.request.gangSize > 1) return;
    const untilMs = Math.max(this.demand.sinceMs, idleSinceMs) + idleTimeoutMs;
    this.idleUntilMs = Math.min(this.idleUntilMs ?? untilMs, untilMs);
  }

  /** Whether the limits of its tenant and user allow one more task, or gang, in the pool. */
  mayAfford(pool: string): boolean {
    const { affordable, request } = this.demand;
    const most = affordable.get(pool);
    return most === undefined || (this.#perPool.get(pool) ?? 0) + request.gangSize <= most;
  }

  /**
   * A machine that idles beside work which seems to fit it will mostly get it with the next plan.
   * Where it has not for as long as the pool lets machines idle, the scheduler knows better.
   */
  trusts({ idleSinceMs }: Bin, { idleTimeoutMs }: CapacityPool): boolean {
    if (idleSinceMs === null) return true;
    return this.#nowMs - Math.max(this.demand.sinceMs, idleSinceMs) < idleTimeoutMs;
  }

  /** So many tasks that no instance is sized for yet; null: the demand names no more. */
  nameTasks(count: number, isSized: (task: TaskId) => boolean): TaskId[] | null {
    const { tasks } = this.demand;
    const named: TaskId[] = [];
    let at = this.#nextTask;
    for (; at < tasks.length && named.length < count; at++) {
      const { task } = tasks[at] as { task: TaskId };
      if (!isSized(task)) named.push(task);
    }
    if (named.length < count) return null;
    this.#nextTask = at;
    return named;
  }
}
