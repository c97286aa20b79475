/**
 * How fast the planner plans: `make bench-scheduler [TRACES=DIR]`. Prints a table and writes
 * bench/results/scheduler.json. The planner alone: no state, no store, no agents.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { parseArgs } from 'node:util';
import { DEFAULT_POLICY, type SchedulePolicy } from '../../src/core/schedule/plan.ts';
import { seededRandom } from '../../src/lib/random.ts';
import { Load } from './load.ts';
import { likeMix, tracedMix, type Mix } from './mix.ts';

interface Row {
  scenario: string;
  mix: string;
  workers: number;
  pending: number;
  tenants: number;
  value: number;
  unit: string;
  target: number | null;
  met: boolean | null;
  note: string;
}

const { values } = parseArgs({
  options: {
    traces: { type: 'string' },
    seconds: { type: 'string', default: '3' },
    out: { type: 'string', default: 'bench/results/scheduler.json' },
    quick: { type: 'boolean', default: false },
    only: { type: 'string' },
  },
});
const seconds = values.quick ? 0.5 : Number(values.seconds);
const mix: Mix = values.traces ? tracedMix(values.traces) : likeMix(seededRandom(1));
const rows: Row[] = [];
/** Ended and placed per tick in the sustained runs. */
const BATCH = 500;
const WAITING = 2000;
const QUANTILES: readonly [name: string, at: number][] = [
  ['p50', 0.5],
  ['p90', 0.9],
  ['p99', 0.99],
  ['slowest', 1],
];
const policy = (placementsPerPlan: number): SchedulePolicy => ({
  ...DEFAULT_POLICY,
  preemption: false,
  placementsPerPlan,
});

// First, while the process is cold.
if (wanted('tick')) ticks(10_000, 100_000, 100);
if (wanted('sustained')) sustained('sustained', 1213, 20_000);
for (const workers of [100, 1000, 10_000]) {
  if (wanted('curve')) sustained('curve', workers, null);
}
if (rows.every(({ workers }) => workers === 0)) process.exitCode = 1;
console.table(rows.map(({ mix: _mix, ...row }) => row));
console.log(`mix: ${mix.name}`);
if (!values.quick && !values.only) {
  mkdirSync(dirname(values.out), { recursive: true });
  writeFileSync(values.out, `${JSON.stringify(rows, null, 2)}\n`);
}

function wanted(scenario: string): boolean {
  return values.only === undefined || values.only.split(',').includes(scenario);
}

/** So much ends and comes in each tick that the fleet stays full for most. */
function sustained(scenario: string, workers: number, target: number | null): void {
  const tenants = 20;
  const load = filled(workers, tenants, BATCH);
  load.spentMs = 0;
  let placed = 0;
  let slowest = 0;
  while (load.spentMs < seconds * 1000) {
    const before = load.spentMs;
    const made = load.tick(Math.max(0, WAITING - load.view.pendingCount()), BATCH);
    placed += made.placements.length;
    slowest = Math.max(slowest, load.spentMs - before);
  }
  const pending = load.view.pendingCount();
  const held = `${(load.devicesHeld * 100).toFixed(1)} % of devices held`;
  const note = `${held}, slowest tick ${slowest.toFixed(1)} ms`;
  const rate = Math.round((placed / load.spentMs) * 1000);
  add({ scenario, workers, pending, tenants, value: rate, unit: 'placements/s', target, note });
}

/** Fills the fleet until little of what waits fits. */
function filled(workers: number, tenants: number, placementsPerPlan: number): Load {
  const random = seededRandom(7);
  const load = new Load({ mix, random, workers, tenants, policy: policy(placementsPerPlan) });
  for (let more = true; more;) {
    const made = load.tick(Math.max(0, WAITING - load.view.pendingCount()), 0);
    more = made.placements.length > workers / 100;
  }
  return load;
}

function ticks(workers: number, pending: number, tenants: number): void {
  const random = seededRandom(9);
  const load = new Load({ mix, random, workers, tenants, policy: policy(1000) });
  load.spentMs = 0;
  load.tick(pending, 0);
  const first = { workers, pending: pending - 1000, tenants };
  const cold = 'the first plan of the process, of an empty fleet';
  const target = { unit: 'ms', target: 100 };
  add({ scenario: 'first plan of 1,000', ...first, value: ms(load.planMs), ...target, note: cold });
  const taking = { unit: 'ms', target: null, note: 'all at once, beside the first plan' };
  const takenMs = ms(load.spentMs - load.planMs);
  add({ scenario: `taking in ${pending} tasks`, ...first, value: takenMs, ...taking });
  // Half full, so that every plan is as long as it may be.
  while (load.devicesHeld < 0.5) load.tick(1000, 0);
  const full: number[] = [];
  for (let round = 0; round < (values.quick ? 5 : 60); round++) {
    load.spentMs = 0;
    const made = load.tick(1000, 1000);
    if (made.placements.length === 1000) full.push(load.spentMs);
  }
  const waits = load.view.pendingCount();
  const base = { workers, pending: waits, tenants };
  const note = `${full.length} ticks of 1,000 placements, ${load.held} claims held`;
  for (const [name, at] of QUANTILES) {
    const value = quantile(full, at);
    add({ scenario: `tick of 1,000, ${name}`, ...base, value, ...target, note });
  }
  // Until nothing more fits, then nothing happens.
  for (let more = true; more;) more = load.tick(0, 0).more;
  load.tick(Math.max(0, pending - load.view.pendingCount()), 0);
  for (let more = true; more;) more = load.tick(0, 0).more;
  const idle: number[] = [];
  for (let round = 0; round < 200; round++) {
    load.spentMs = 0;
    load.tick(0, 0);
    idle.push(load.spentMs);
  }
  const still = { workers, pending: load.view.pendingCount(), tenants };
  const none = { unit: 'ms', target: 2, note: `${load.held} claims held, all blocked` };
  add({ scenario: 'idle tick, p99', ...still, value: quantile(idle, 0.99), ...none });
}

function add(row: Omit<Row, 'mix' | 'met'>): void {
  const { target, value, unit } = row;
  const better = unit === 'ms' ? value <= (target ?? 0) : value >= (target ?? 0);
  rows.push({ ...row, mix: mix.name, met: target === null || values.quick ? null : better });
  process.stderr.write(
    `  ${row.scenario}, ${row.workers} workers: ${value} ${unit}; ${row.note}\n`,
  );
}

function quantile(samples: number[], at: number): number {
  const sorted = samples.toSorted((a, b) => a - b);
  const value = sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * at))] ?? Number.NaN;
  return ms(value);
}

function ms(value: number): number {
  return Number(value.toFixed(2));
}
