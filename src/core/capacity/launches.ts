/** The calls that a plan consists of: machines that are alike are asked for together. */
import type { TaskId } from '../../model/ids.ts';
import type { WorkerResources } from '../../model/resources.ts';
import { count } from '../explain/words.ts';
import type { CapacityPool, Demand, Launch } from './capacity.ts';

/** Instances in one call at most: a Slurm array has 1,001 places where nobody configured more. */
export const LAUNCH_BATCH = 1000;
/** For the start of the agent and of the task, beyond the time that the task may take. */
export const STARTING_MS = 5 * 60_000;

export class Launches {
  readonly all: Launch[] = [];
  /** For any work: only the last may grow, else the next plan would find another order. */
  #last: Launch | null = null;
  /** Sized for the demand that is served just now, by pool. */
  readonly #sized = new Map<string, Launch>();
  #demand: Demand | null = null;

  addAgent(pool: CapacityPool, brings: WorkerResources, demand: Demand | null): void {
    const runAs = demand && pool.perUser ? ownerOf(demand) : null;
    const last = this.#last;
    const alike =
      last?.pool === pool.name &&
      last.brings === brings &&
      last.runAs?.tenant === runAs?.tenant &&
      last.runAs?.user === runAs?.user;
    const reason = demand ? reasonOf(demand) : `at least ${count(pool.min, 'instance')}`;
    if (alike && pool.batches && last.count < LAUNCH_BATCH) {
      last.count++;
      if (last.reason !== reason && !last.reason.endsWith(OTHERS)) last.reason += OTHERS;
      return;
    }
    this.#last = {
      pool: pool.name,
      count: 1,
      workers: 1,
      resources: pool.size || !demand ? null : demand.request.resources,
      brings,
      tasks: [],
      classKey: '',
      runAs,
      timeLimitMs: 0,
      noticeMs: 0,
      name: pool.name,
      reason,
    };
    this.all.push(this.#last);
  }

  addSized(pool: CapacityPool, brings: WorkerResources, demand: Demand, tasks: TaskId[]): void {
    if (this.#demand !== demand) this.#sized.clear();
    this.#demand = demand;
    const open = this.#sized.get(pool.name);
    if (open && pool.batches && open.count < LAUNCH_BATCH) {
      open.count++;
      open.tasks.push(tasks);
      return;
    }
    const { request } = demand;
    const launch: Launch = {
      pool: pool.name,
      count: 1,
      workers: request.gangSize,
      resources: request.resources,
      brings,
      tasks: [tasks],
      classKey: request.key,
      runAs: pool.perUser ? ownerOf(demand) : null,
      timeLimitMs: sizedMs(pool, demand),
      noticeMs: request.graceMs,
      name: demand.name,
      reason: reasonOf(demand),
    };
    this.#sized.set(pool.name, launch);
    this.all.push(launch);
  }
}

const OTHERS = ', and others';

/** How long an instance for this work is wanted; 0: as long as the pool gives. */
export function sizedMs({ longestMs }: CapacityPool, { request }: Demand): number {
  const { timeLimitMs, graceMs } = request;
  if (timeLimitMs === 0) return 0;
  const wanted = timeLimitMs + graceMs + STARTING_MS;
  return longestMs > 0 ? Math.min(wanted, longestMs) : wanted;
}

function ownerOf({ request: { tenant, user } }: Demand): { tenant: string; user: string } {
  return { tenant, user };
}

/** Without names: it is shown with the instance, which is no tenant's alone. */
function reasonOf({ waiting }: Demand): string {
  return `${count(waiting, 'task')} ${waiting === 1 ? 'waits' : 'wait'}`;
}
