/** What is measured while a simulation runs: use by pool and tenant, fairness, levels over time. */
import type { Claim } from '../../model/claim.ts';
import type { Task } from '../../model/task.ts';
import type { ResourceRequest } from '../../model/resources.ts';
import type { Worker } from '../../model/worker.ts';
import { fairnessOf, type Holder } from './fairness.ts';
import { SeriesRecorder, type Level } from './series.ts';
import { Waits } from './waits.ts';
import type { Fleet } from './fleet.ts';

const HOUR_MS = 3_600_000;
/** How often the shares of tenants are compared. */
const FAIRNESS_PERIOD_MS = 60_000;

export interface PoolUse {
  workers: number;
  deviceHourMicros: number;
  cpuHourMicros: number;
  /** What its workers have now, and had so far in resource times milliseconds. */
  cpuMillis: number;
  deviceMillis: number;
  cpuHadMs: number;
  deviceHadMs: number;
  cpuUsedMs: number;
  deviceUsedMs: number;
  usedMicros: number;
  changedAtMs: number;
}

export interface TenantUse {
  weight: number;
  jobs: number;
  waiting: number;
  /** Held now. */
  cpuMillis: number;
  deviceMillis: number;
  memoryBytes: number;
  /** Waited for now. */
  wanted: Amounts;
  cpuUsedMs: number;
  deviceUsedMs: number;
  usedMicros: number;
}

interface Amounts {
  cpuMillis: number;
  deviceMillis: number;
  memoryBytes: number;
}

export class Measures {
  readonly waits = new Waits();
  readonly pools = new Map<string, PoolUse>();
  readonly tenants = new Map<string, TenantUse>();
  readonly #series = new SeriesRecorder();
  readonly #weights = new Map<string, number>();
  /** Tasks that wait for a worker now. */
  readonly #waiting = new Map<Task, ResourceRequest>();
  readonly #level: Level = { waiting: 0, running: 0, cpu: 0, devices: 0 };
  #nowMs: number;
  #nextLookMs: number;
  #fairSum = 0;
  #fairLooks = 0;
  #used = { cpuMillis: 0, deviceMillis: 0 };
  readonly #had: Amounts = { cpuMillis: 0, deviceMillis: 0, memoryBytes: 0 };

  constructor(fleet: Fleet, startMs: number) {
    this.#nowMs = startMs;
    this.#nextLookMs = startMs + FAIRNESS_PERIOD_MS;
    for (const { policy } of fleet.pools) {
      const { name, deviceHourMicros, cpuHourMicros } = policy;
      this.pools.set(name, newPool(deviceHourMicros, cpuHourMicros, startMs));
    }
    for (const { tenant, user, weight } of fleet.budgets) {
      if (user === '') this.#weights.set(tenant, weight);
    }
  }

  /** What is so now was so since the last call. */
  advance(nowMs: number): void {
    if (nowMs <= this.#nowMs) return;
    const { cpuMillis, deviceMillis } = this.#used;
    this.#level.waiting = this.#waiting.size;
    this.#level.cpu = shareOf(cpuMillis, this.#had.cpuMillis) ?? 0;
    this.#level.devices = shareOf(deviceMillis, this.#had.deviceMillis) ?? 0;
    this.#series.add(this.#level, nowMs - this.#nowMs);
    if (nowMs >= this.#nextLookMs) {
      const looks = Math.floor((nowMs - this.#nextLookMs) / FAIRNESS_PERIOD_MS) + 1;
      this.#nextLookMs += looks * FAIRNESS_PERIOD_MS;
      this.#look(looks);
    }
    this.#nowMs = nowMs;
  }

  tenant(name: string): TenantUse {
    let use = this.tenants.get(name);
    if (!use) {
      use = newTenant(this.#weights.get(name) ?? 1);
      this.tenants.set(name, use);
    }
    return use;
  }

  waitsFor(task: Task, resources: ResourceRequest): void {
    if (this.#waiting.has(task)) return;
    this.#waiting.set(task, resources);
    this.#changeWanted(task, resources, 1);
  }

  waitsNoMore(task: Task): void {
    const resources = this.#waiting.get(task);
    if (!resources) return;
    this.#waiting.delete(task);
    this.#changeWanted(task, resources, -1);
  }

  joined(worker: Worker): void {
    this.#changeFleet(worker, 1);
  }

  left(worker: Worker): void {
    this.#changeFleet(worker, -1);
  }

  held(claim: Claim, tenant: string): void {
    this.#level.running++;
    this.#changeUse(claim, tenant, 1);
  }

  /** The claim is free again after so long. */
  freed(claim: Claim, tenant: string, pool: string, heldMs: number): void {
    this.#level.running--;
    this.#changeUse(claim, tenant, -1);
    this.charge(claim, tenant, pool, heldMs);
  }

  charge(claim: Claim, tenant: string, pool: string, heldMs: number): void {
    const devices = claim.devices.length * claim.share;
    const use = this.tenant(tenant);
    const from = this.pools.get(pool);
    use.cpuUsedMs += claim.cpuMillis * heldMs;
    use.deviceUsedMs += devices * heldMs;
    if (!from) return;
    from.cpuUsedMs += claim.cpuMillis * heldMs;
    from.deviceUsedMs += devices * heldMs;
    const hourMicros =
      (from.deviceHourMicros * devices + from.cpuHourMicros * claim.cpuMillis) / 1000;
    const micros = Math.round((hourMicros * heldMs) / HOUR_MS);
    from.usedMicros += micros;
    use.usedMicros += micros;
  }

  /** Null when no two tenants waited at the same time. */
  fairness(): number | null {
    return this.#fairLooks === 0 ? null : this.#fairSum / this.#fairLooks;
  }

  finish() {
    for (const pool of this.pools.values()) settle(pool, this.#nowMs);
    return this.#series.finish();
  }

  #changeFleet({ pool, resources }: Worker, sign: 1 | -1): void {
    const { cpuMillis, memoryBytes, devices } = resources;
    const deviceMillis = devices.length * 1000;
    this.#had.cpuMillis += sign * cpuMillis;
    this.#had.deviceMillis += sign * deviceMillis;
    this.#had.memoryBytes += sign * memoryBytes;
    const use = this.pools.get(pool);
    if (!use) return;
    settle(use, this.#nowMs);
    use.workers += sign;
    use.cpuMillis += sign * cpuMillis;
    use.deviceMillis += sign * deviceMillis;
  }

  #changeUse(claim: Claim, tenant: string, sign: 1 | -1): void {
    const deviceMillis = claim.devices.length * claim.share;
    this.#used.cpuMillis += sign * claim.cpuMillis;
    this.#used.deviceMillis += sign * deviceMillis;
    const use = this.tenant(tenant);
    use.cpuMillis += sign * claim.cpuMillis;
    use.deviceMillis += sign * deviceMillis;
    use.memoryBytes += sign * claim.memoryBytes;
  }

  #changeWanted(task: Task, { cpuMillis, memoryBytes, device }: ResourceRequest, sign: 1 | -1) {
    const tenant = this.tenant(task.tenant);
    tenant.waiting += sign;
    tenant.wanted.cpuMillis += sign * cpuMillis;
    tenant.wanted.memoryBytes += sign * memoryBytes;
    if (device) tenant.wanted.deviceMillis += sign * device.count * device.share;
  }

  #look(looks: number): void {
    const holders: Holder[] = [];
    for (const use of this.tenants.values()) {
      if (use.waiting === 0) continue;
      const { weight, wanted } = use;
      const all = {
        cpuMillis: use.cpuMillis + wanted.cpuMillis,
        deviceMillis: use.deviceMillis + wanted.deviceMillis,
        memoryBytes: use.memoryBytes + wanted.memoryBytes,
      };
      holders.push({ weight, held: this.#dominant(use), wanted: this.#dominant(all) });
    }
    const fairness = fairnessOf(holders);
    if (fairness === null) return;
    this.#fairSum += looks * fairness;
    this.#fairLooks += looks;
  }

  #dominant({ cpuMillis, deviceMillis, memoryBytes }: Amounts): number {
    return Math.max(
      shareOf(cpuMillis, this.#had.cpuMillis) ?? 0,
      shareOf(deviceMillis, this.#had.deviceMillis) ?? 0,
      shareOf(memoryBytes, this.#had.memoryBytes) ?? 0,
    );
  }
}

/** Null where there is nothing to have a share of. */
export function shareOf(part: number, whole: number): number | null {
  return whole > 0 ? part / whole : null;
}

function settle(pool: PoolUse, nowMs: number): void {
  pool.cpuHadMs += pool.cpuMillis * (nowMs - pool.changedAtMs);
  pool.deviceHadMs += pool.deviceMillis * (nowMs - pool.changedAtMs);
  pool.changedAtMs = nowMs;
}

function newPool(deviceHourMicros: number, cpuHourMicros: number, startMs: number): PoolUse {
  return {
    workers: 0,
    deviceHourMicros,
    cpuHourMicros,
    cpuMillis: 0,
    deviceMillis: 0,
    cpuHadMs: 0,
    deviceHadMs: 0,
    cpuUsedMs: 0,
    deviceUsedMs: 0,
    usedMicros: 0,
    changedAtMs: startMs,
  };
}

function newTenant(weight: number): TenantUse {
  return {
    weight,
    jobs: 0,
    waiting: 0,
    cpuMillis: 0,
    deviceMillis: 0,
    memoryBytes: 0,
    wanted: { cpuMillis: 0, deviceMillis: 0, memoryBytes: 0 },
    cpuUsedMs: 0,
    deviceUsedMs: 0,
    usedMicros: 0,
  };
}
