/**
 * Which machines to ask for and which to give back. Demands are served in the order in which their
 * work would start: each first by what is on its way, then by new machines of the cheapest pool.
 *
 * Machines are filled in the order in which they were asked for, the new ones last. So a plan that
 * has been carried out finds, planned again, every task on the very machine that was launched for
 * it, and launches nothing more.
 */
import type { TaskId } from '../../model/ids.ts';
import type { WorkerResources } from '../../model/resources.ts';
import { Asks, type Ask } from './asks.ts';
import { Bin, takeBack, type Put } from './bins.ts';
import { Budget, type Verdict } from './budget.ts';
import type { CapacityPlan, CapacityPool, Demand } from './capacity.ts';
import { Earliest } from './earliest.ts';
import { Expected, fill } from './expected.ts';
import { Launches, sizedMs } from './launches.ts';
import { allNamedCome, quotaReached, type PoolReason } from './reasons.ts';
import { releasesOf } from './releases.ts';
import { Served, type Sized } from './served.ts';
import type { Standing } from './suits.ts';

export function planCapacity(
  pools: readonly CapacityPool[],
  demands: readonly Demand[],
  nowMs: number,
): CapacityPlan {
  const planning = new Planning(pools, nowMs);
  planning.keepMin();
  for (const demand of demands) planning.serve(demand);
  return planning.plan();
}

class Planning {
  readonly #pools: readonly CapacityPool[];
  readonly #nowMs: number;
  readonly #asks: Asks;
  readonly #expected: Expected;
  readonly #budgets: Budget[];
  readonly #launches = new Launches();
  readonly #next: Earliest;
  /** By class: what comes sized for tasks of it. */
  readonly #sized = new Map<string, Sized[number][]>();
  readonly #sizedTasks = new Set<TaskId>();
  readonly #coming: CapacityPlan['coming'] = [];
  readonly #unmet: CapacityPlan['unmet'] = [];

  constructor(pools: readonly CapacityPool[], nowMs: number) {
    this.#pools = pools.toSorted((a, b) => compare(a.name, b.name));
    this.#nowMs = nowMs;
    this.#asks = new Asks(this.#pools, nowMs);
    this.#expected = new Expected(this.#pools, this.#asks);
    this.#budgets = this.#pools.map((pool) => new Budget(pool, nowMs));
    this.#next = new Earliest(nowMs);
    this.#readInstances();
  }

  /** Machines that are kept whether somebody waits or not. */
  keepMin(): void {
    for (const [place, pool] of this.#pools.entries()) {
      // Nobody knows for whom, or what for, where machines are for one user or one job.
      if (pool.mode === 'job' || pool.perUser) continue;
      let there = pool.instances.filter(({ state }) => state !== 'leaving').length;
      for (; there < pool.min; there++) {
        const verdict = this.#budget(place).mayLaunch(1, 0);
        if (verdict.kind !== 'may') {
          this.#next.at(verdict.reason.untilMs);
          break;
        }
        this.#addAgent(place, pool.size ?? nothingKnown(), null);
      }
    }
  }

  serve(demand: Demand): void {
    const { request, waiting } = demand;
    const ask = this.#asks.of(request);
    const served = new Served(demand, this.#sized.get(request.key) ?? [], this.#nowMs);
    let reasons: PoolReason[] = [];
    while (waiting - served.tasks >= request.gangSize) {
      const puts = this.#expected.cover(ask, served);
      if (puts) {
        this.#count(served, puts);
        continue;
      }
      const refused = this.#open(ask, served);
      if (!refused) continue;
      // What is left of all limits only shrinks: no other task of it would fare better.
      reasons = refused;
      break;
    }
    this.#tell(served, reasons);
  }

  plan(): CapacityPlan {
    const wanted = this.#expected.wanted();
    const { releases, unwanted } = releasesOf(this.#pools, wanted, this.#nowMs, this.#next);
    return {
      launches: this.#launches.all,
      releases,
      coming: this.#coming,
      unmet: this.#unmet,
      unwanted,
      nextAtMs: this.#next.ms,
    };
  }

  /** In the order in which they were asked for: ids rise. */
  #readInstances(): void {
    const all = this.#pools
      .flatMap(({ instances }, place) => instances.map((instance) => ({ instance, place })))
      .toSorted((a, b) => compare(a.instance.id, b.instance.id));
    for (const { instance, place } of all) {
      const { id, state, tasks, waiting, classKey } = instance;
      if (tasks.length === 0) this.#expected.addInstance(place, instance);
      if (state !== 'coming' || tasks.length === 0) continue;
      for (const task of tasks) this.#sizedTasks.add(task);
      let sized = this.#sized.get(classKey);
      if (!sized) this.#sized.set(classKey, (sized = []));
      if (waiting > 0) sized.push({ id, pool: this.#pool(place).name, waiting });
    }
  }

  /** Launches for one more task, or gang; else why no pool did. */
  #open(ask: Ask, served: Served): PoolReason[] | null {
    const reasons: PoolReason[] = [];
    let awaited: Standing | null = null;
    for (const place of ask.order) {
      const standing = ask.standings[place] as Standing;
      // A pool that will have room soon is waited for, unless another costs no more.
      if (awaited && !costsTheSame(standing, awaited)) break;
      const verdict = this.#openIn(place, standing, ask, served);
      if (verdict.kind === 'may') return null;
      reasons.push(verdict.reason);
      if (verdict.kind === 'later') awaited ??= standing;
    }
    return reasons;
  }

  #openIn(place: number, standing: Standing, ask: Ask, served: Served): Verdict {
    const pool = this.#pool(place);
    if (standing.refusal) return { kind: 'full', reason: standing.refusal };
    if (!served.mayAfford(pool.name)) {
      const affordable = served.demand.affordable.get(pool.name) ?? 0;
      return { kind: 'full', reason: quotaReached(pool, affordable) };
    }
    if (pool.mode === 'job') return this.#openSized(place, standing, served);
    return this.#openAgents(place, standing, ask, served);
  }

  #openSized(place: number, { brings }: Standing, served: Served): Verdict {
    const pool = this.#pool(place);
    const { demand } = served;
    const { gangSize } = demand.request;
    const timeLimitMs = sizedMs(pool, demand);
    const verdict = this.#budget(place).mayLaunch(1, timeLimitMs);
    if (verdict.kind !== 'may') return verdict;
    const tasks = served.nameTasks(gangSize, (task) => this.#sizedTasks.has(task));
    if (!tasks) return { kind: 'later', reason: allNamedCome(pool, demand.tasks.length) };
    for (const task of tasks) this.#sizedTasks.add(task);
    this.#budget(place).launched(1, timeLimitMs);
    this.#launches.addSized(pool, brings, demand, tasks);
    served.count(pool.name, gangSize);
    return verdict;
  }

  /** One machine for a task; for a gang, as many as its members need beside what is expected. */
  #openAgents(place: number, { brings }: Standing, ask: Ask, served: Served): Verdict {
    const { gangSize } = ask.request;
    const one = this.#budget(place).mayLaunch(1, 0);
    if (one.kind !== 'may') return one;
    const puts = gangSize > 1 ? this.#expected.part(ask, served, place) : [];
    const bins: Bin[] = [];
    const runAs = this.#pool(place).perUser ? ask.runAs : '';
    while (puts.length < gangSize) {
      const bin = new Bin(place, brings, { runAs });
      fill(ask, bin, puts, gangSize);
      if (!bin.isWanted) throw new Error(`pool ${this.#pool(place).name}: it was said to fit`);
      bins.push(bin);
    }
    const verdict = this.#budget(place).mayLaunch(bins.length, 0);
    if (verdict.kind !== 'may') {
      takeBack(ask, puts);
      return verdict;
    }
    for (const bin of bins) this.#addAgent(place, brings, served.demand, bin);
    this.#count(served, puts);
    return verdict;
  }

  #addAgent(
    place: number,
    brings: WorkerResources,
    demand: Demand | null,
    bin = new Bin(place, brings, { runAs: '' }),
  ): void {
    this.#budget(place).launched(1, 0);
    this.#launches.addAgent(this.#pool(place), brings, demand);
    this.#expected.add(bin);
  }

  #count(served: Served, puts: readonly Put[]): void {
    for (const { bin } of puts) served.countOn(bin, this.#pool(bin.pool));
  }

  #tell(served: Served, reasons: PoolReason[]): void {
    const { demand, tasks, instances, pools, idleUntilMs } = served;
    const classKey = demand.request.key;
    this.#next.at(idleUntilMs);
    if (tasks > 0) this.#coming.push({ classKey, tasks, instances: [...instances], pools });
    if (tasks >= demand.waiting) return;
    for (const { untilMs } of reasons) this.#next.at(untilMs);
    this.#unmet.push({ classKey, tasks: demand.waiting - tasks, reasons });
  }

  #pool(place: number): CapacityPool {
    return this.#pools[place] as CapacityPool;
  }

  #budget(place: number): Budget {
    return this.#budgets[place] as Budget;
  }
}

function costsTheSame(a: Standing, b: Standing): boolean {
  return a.preference === b.preference && a.priceMicros === b.priceMicros;
}

/** Such a machine is taken to serve nobody until it has joined. */
function nothingKnown(): WorkerResources {
  return { cpuMillis: 0, memoryBytes: 0, devices: [], portRange: [1, 0] };
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}
