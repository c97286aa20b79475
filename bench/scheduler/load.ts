/** A planner under load: tenants, users and their kinds of tasks, and a state's answers. */
import { plan, type Plan, type SchedulePolicy } from '../../src/core/schedule/plan.ts';
import type { PlacementRequest } from '../../src/core/placement/request.ts';
import { PlannerView, type PendingTask, type PlannerDeltas } from '../../src/core/schedule/view.ts';
import type { Random } from '../../src/lib/random.ts';
import { taskId, type AttemptUid, type JobId } from '../../src/model/ids.ts';
import { PLAIN_PLACEMENT } from '../../src/model/placement.ts';
import type { ResourceRequest } from '../../src/model/resources.ts';
import { workersOf, type Mix } from './mix.ts';

const USERS_PER_TENANT = 10;
const KINDS_PER_USER = 5;
const BANDS = [0, 1, 1, 2, 2, 2, 2, 2, 2, 2];

export interface LoadOptions {
  mix: Mix;
  random: Random;
  workers: number;
  tenants: number;
  policy: SchedulePolicy;
}

export class Load {
  readonly view = new PlannerView();
  readonly #options: LoadOptions;
  readonly #kinds: PlacementRequest[] = [];
  /** Claims that are held, in no order, and where each stands. */
  readonly #held: AttemptUid[] = [];
  #jobs = 0;
  nowMs = 0;
  /** Time spent in update and plan since it was last set, and in the last plan alone. */
  spentMs = 0;
  planMs = 0;

  constructor(options: LoadOptions) {
    this.#options = options;
    const { mix, random, tenants } = options;
    for (let tenant = 0; tenant < tenants; tenant++) {
      for (let user = 0; user < USERS_PER_TENANT; user++) {
        for (let kind = 0; kind < KINDS_PER_USER; kind++) {
          const resources = any(mix.tasks, random);
          const band = any(BANDS, random);
          this.#kinds.push(kindOf(`t${tenant}`, `u${user}`, band, resources));
        }
      }
    }
    this.#update({ workers: workersOf(mix, options.workers) });
  }

  get held(): number {
    return this.#held.length;
  }

  get devicesHeld(): number {
    let millis = 0;
    for (const { claim } of this.view.claims.values()) millis += claim.devices.length * claim.share;
    return millis / this.view.fleet.totals().deviceMillis;
  }

  /** So many new tasks wait; so many that run end; one plan is made and taken as applied. */
  tick(arriving: number, ending: number): Plan {
    const { random, policy } = this.#options;
    this.nowMs += 100;
    const { requests, pending } = this.#arrivals(arriving);
    this.#update({ requests, pending, claimsGone: this.#endings(ending) });
    const began = performance.now();
    const made = plan(this.view, this.nowMs, () => random.hex(12), policy);
    this.planMs = performance.now() - began;
    this.spentMs += this.planMs;
    const placed = made.placements.flatMap(({ tasks }) => tasks);
    // As the state answers: the tasks wait no more, the claims are as planned.
    this.#update({
      notPending: placed.map(({ task }) => task),
      requests: [...new Set(placed.map(({ task }) => this.#requestOf(task)))],
      claims: made.placements.flatMap(({ job, tasks }) =>
        tasks.map(({ claim, task }) => ({
          claim,
          job,
          classKey: this.#requestOf(task).key,
          sinceMs: this.nowMs,
        })),
      ),
    });
    for (const { claim } of placed) this.#held.push(claim.owner);
    return made;
  }

  #requestOf(task: string): PlacementRequest {
    const [job = ''] = task.split('.');
    return this.#kinds[Number(job.slice(1)) % this.#kinds.length] as PlacementRequest;
  }

  #arrivals(count: number): { requests: PlacementRequest[]; pending: PendingTask[] } {
    const requests = new Set<PlacementRequest>();
    const pending: PendingTask[] = [];
    for (let at = 0; at < count; at++) {
      // The job's number tells its kind; numbers of equal length sort as they were given.
      const kinds = this.#kinds.length;
      const number = 1e9 + this.#jobs++ * kinds + Math.floor(this.#options.random.next() * kinds);
      const job = `j${number}` as JobId;
      const request = this.#requestOf(job);
      requests.add(request);
      const task = taskId(job, 0);
      pending.push({
        task,
        job,
        index: 0,
        version: 1,
        classKey: request.key,
        round: 0,
        attempts: 0,
        notBeforeMs: 0,
        sinceMs: this.nowMs,
      });
    }
    return { requests: [...requests], pending };
  }

  #endings(count: number): AttemptUid[] {
    const gone: AttemptUid[] = [];
    for (let at = 0; at < count && this.#held.length > 0; at++) {
      const which = Math.floor(this.#options.random.next() * this.#held.length);
      gone.push(this.#held[which] as AttemptUid);
      this.#held[which] = this.#held.at(-1) as AttemptUid;
      this.#held.pop();
    }
    return gone;
  }

  #update(deltas: Partial<PlannerDeltas>): void {
    const began = performance.now();
    this.view.update({ ...NOTHING, ...deltas });
    this.spentMs += performance.now() - began;
  }
}

const NOTHING: PlannerDeltas = {
  requests: [],
  pending: [],
  notPending: [],
  workers: [],
  workersGone: [],
  claims: [],
  claimsGone: [],
  accounts: [],
};

function kindOf(
  tenant: string,
  user: string,
  band: number,
  resources: ResourceRequest,
): PlacementRequest {
  return {
    key: JSON.stringify([tenant, user, band, resources]),
    tenant,
    user,
    resources,
    placement: PLAIN_PLACEMENT,
    pool: '',
    band,
    gangSize: 1,
    arrayLimit: 0,
    timeLimitMs: 0,
    graceMs: 10_000,
    neededMs: 0,
  };
}

function any<Item>(items: Item[], random: Random): Item {
  return items[Math.floor(random.next() * items.length)] as Item;
}
