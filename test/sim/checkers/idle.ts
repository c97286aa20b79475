/**
 * L2: when the faults are over, what could start does: nothing that fits waits long beside free
 * room. L3: and nobody passes older work of the same user and band that fits.
 */
import type { PoolPolicy } from '../../../src/core/placement/admission.ts';
import { LONGEST_DELAY_MS } from '../../../src/core/retry.ts';
import { PRIORITIES, type JobSpec } from '../../../src/model/job.ts';
import { specOf } from '../../../src/store/decode.ts';
import type { JobRow } from '../../../src/store/database.ts';
import { taskKey, type Commit, type Mirror } from './mirror.ts';
import { Rooms } from './room.ts';
import { must } from './violation.ts';

/** Agents come back, leases run on, a controller starts: then the planner has no excuse. */
const SETTLE_MS = 20_000;
/** A plan, its commit and the loops between: far more than they need. */
const LONGEST_IDLE_MS = 5000;
/** What has fitted for longer than this should have been in the same plan, or in one before. */
const PASSED_MS = 2000;

interface Waiting {
  job: JobRow;
  band: number;
  /** It has waited too long. */
  aged: boolean;
  fits: boolean;
}

export interface IdleOptions {
  mirror: Mirror;
  pools: readonly PoolPolicy[];
  /** Virtual time, and what the controller's clock says. */
  nowMs: () => number;
  controllerMs: () => number;
  /** What has waited so long is overtaken by nobody. */
  ageingMs: number;
}

export class IdleChecker {
  readonly #options: IdleOptions;
  #settledAtMs = Number.POSITIVE_INFINITY;
  /** By job: since when something of it fits and nothing stands before it. */
  #fitsSince = new Map<string, number>();
  readonly #live = new Set<string>();
  readonly #specs = new Map<string, JobSpec>();

  constructor(options: IdleOptions) {
    this.#options = options;
  }

  peace(): void {
    this.#settledAtMs = this.#options.nowMs() + SETTLE_MS;
  }

  committed({ jobs, attempts }: Commit): void {
    const { mirror, nowMs } = this.#options;
    for (const { row } of jobs) {
      if (row.ended_at_ms === null) this.#live.add(row.id);
      else this.#live.delete(row.id);
    }
    if (nowMs() < this.#settledAtMs) return;
    for (const { before, row } of attempts) {
      const job = before ? undefined : mirror.jobs.get(row.job);
      if (job) this.#checkPassed(job);
    }
    this.#look();
  }

  /** Between commits nothing changes but the time. */
  check(): void {
    const nowMs = this.#options.nowMs();
    if (nowMs < this.#settledAtMs) return;
    for (const [job, sinceMs] of this.#fitsSince) {
      const idle = nowMs - sinceMs > LONGEST_IDLE_MS;
      must(!idle, 'L2', () => `${job} fits since ${sinceMs / 1000} and is not placed`);
    }
  }

  #checkPassed(job: JobRow): void {
    for (const [id, sinceMs] of this.#fitsSince) {
      const other = this.#options.mirror.jobs.get(id);
      if (!other || id >= job.id || other.tenant !== job.tenant) continue;
      if (
        other.owner !== job.owner ||
        this.#specOf(other).priority !== this.#specOf(job).priority
      ) {
        continue;
      }
      const passed = this.#options.nowMs() - sinceMs > PASSED_MS;
      must(!passed, 'L3', () => `${job.id} passed ${id}, which fits since ${sinceMs / 1000}`);
    }
  }

  #look(): void {
    const { mirror, pools, nowMs } = this.#options;
    const rooms = new Rooms(mirror, pools);
    const waiting: Waiting[] = [];
    for (const id of this.#live) {
      const job = mirror.jobs.get(id) as JobRow;
      const spec = this.#specOf(job);
      if (!this.#isReady(job, spec)) continue;
      const aged = this.#isAged(job, spec);
      const band = PRIORITIES.indexOf(spec.priority);
      waiting.push({ job, band, aged, fits: rooms.fits(spec, job.tenant) });
    }
    const fitsSince = new Map<string, number>();
    for (const one of waiting) {
      // Room may be kept for others that come first, for others like it, and against all bands for
      // what has waited too long.
      const after = (other: Waiting): boolean => other.band > one.band && !other.aged;
      const first = waiting.every((other) => other === one || after(other));
      if (!one.fits || !first) continue;
      fitsSince.set(one.job.id, this.#fitsSince.get(one.job.id) ?? nowMs());
    }
    this.#fitsSince = fitsSince;
  }

  /** A little early is no harm here. */
  #isAged(job: JobRow, spec: JobSpec): boolean {
    const { controllerMs, ageingMs, mirror } = this.#options;
    let sinceMs = Number.POSITIVE_INFINITY;
    for (const index of indicesOf(job, spec)) {
      const task = mirror.tasks.get(taskKey({ job: job.id, task_index: index }));
      if (task && task.state !== 'PENDING') continue;
      // What is tried again waits anew from when it may be.
      sinceMs = Math.min(sinceMs, Math.max(job.created_at_ms, task?.not_before_ms ?? 0));
    }
    return controllerMs() - sinceMs > ageingMs - LONGEST_IDLE_MS;
  }

  #isReady(job: JobRow, spec: JobSpec): boolean {
    const { mirror } = this.#options;
    if (job.cancel_requested_at_ms !== null) return false;
    for (const { job: other } of spec.after) {
      if (mirror.jobs.get(other)?.ended_at_ms === null) return false;
    }
    const states = indicesOf(job, spec).map((index) => this.#taskState(job.id, index));
    if (spec.shape.kind === 'gang' && states.some((state) => state !== 'ready')) return false;
    if (!states.includes('ready')) return false;
    const limit = spec.shape.kind === 'array' ? spec.shape.limit : 0;
    const running = states.filter((state) => state === 'running').length;
    return (limit === 0 || running < limit) && this.#isAllowed(job, spec);
  }

  #taskState(job: string, index: number): 'ready' | 'waits' | 'running' | 'over' {
    const { mirror, controllerMs } = this.#options;
    const row = mirror.tasks.get(taskKey({ job, task_index: index }));
    if (row && row.state !== 'PENDING') {
      return row.state === 'ASSIGNED' || row.state === 'RUNNING' ? 'running' : 'over';
    }
    for (const owner of mirror.claims.keys()) {
      if (owner.startsWith(`${job}.${index}.`)) return 'waits';
    }
    const waitsMs = (row?.not_before_ms ?? 0) - controllerMs();
    return waitsMs > 0 && waitsMs <= LONGEST_DELAY_MS ? 'waits' : 'ready';
  }

  #isAllowed({ tenant, owner }: JobRow, { resources, shape }: JobSpec): boolean {
    const { mirror } = this.#options;
    const members = shape.kind === 'gang' ? shape.size : 1;
    const { device } = resources;
    const need = device ? device.count * device.share * members : 0;
    for (const user of [owner, '']) {
      const budget = mirror.budgets.get(`${tenant}/${user}`);
      if (!budget || budget.mode === 'soft') continue;
      const money = budget.micros_per_day ?? budget.micros_per_month;
      const time = budget.device_hours_per_day ?? budget.device_hours_per_month;
      if (money !== null || time !== null) return false;
      const left = (budget.device_millis ?? Number.POSITIVE_INFINITY) - this.#held(tenant, user);
      if (need > 0 && need > left) return false;
    }
    return true;
  }

  #held(tenant: string, user: string): number {
    const { mirror } = this.#options;
    let held = 0;
    for (const { owner, devices, share } of mirror.claims.values()) {
      const job = mirror.jobs.get(owner.slice(0, owner.indexOf('.')));
      if (job?.tenant !== tenant || (user !== '' && job.owner !== user)) continue;
      held += (JSON.parse(devices) as number[]).length * share;
    }
    return held;
  }

  #specOf(row: JobRow): JobSpec {
    const key = `${row.id} ${row.priority}`;
    const known = this.#specs.get(key);
    if (known) return known;
    const spec = specOf(row);
    this.#specs.set(key, spec);
    return spec;
  }
}

function indicesOf(job: JobRow, { shape }: JobSpec): number[] {
  return shape.kind === 'array' ? shape.indices : [...range(job.task_count)];
}

function* range(count: number): Generator<number> {
  for (let i = 0; i < count; i++) yield i;
}
