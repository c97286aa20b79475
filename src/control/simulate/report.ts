/** From what was measured to what a person is told. */
import type { PoolRow, RunReport, TenantRow } from '../../protocol/simulation.ts';
import type { Fleet } from './fleet.ts';
import { shareOf, type PoolUse } from './measures.ts';
import type { Outcome } from './run.ts';

const HOUR_MS = 3_600_000;
const WHOLE = 1000;

export function reportOf(name: string, fleet: Fleet, outcome: Outcome): RunReport {
  const { measures, machines } = outcome;
  const series = measures.finish();
  const pools = fleet.pools.map(({ policy }) =>
    poolRow(policy.name, measures.pools.get(policy.name) as PoolUse, fleet),
  );
  const sum = (value: (pool: PoolUse) => number): number =>
    [...measures.pools.values()].reduce((total, pool) => total + value(pool), 0);
  const left = leftOver(outcome);
  return {
    name,
    fleet: {
      workers: total(pools, 'workers'),
      cpus: total(pools, 'cpus'),
      devices: total(pools, 'devices'),
    },
    makespanMs: outcome.elapsedMs,
    jobs: {
      submitted: outcome.submitted,
      succeeded: outcome.endings.get('SUCCEEDED') ?? 0,
      failed: outcome.endings.get('FAILED') ?? 0,
      unschedulable: (outcome.endings.get('UNSCHEDULABLE') ?? 0) + left.stuck,
      refused: [...outcome.refused.values()].reduce((all, jobs) => all + jobs, 0),
      running: left.running,
      waiting: left.waiting,
    },
    wait: measures.waits.rows(),
    utilisation: {
      cpu: shareOf(
        sum((pool) => pool.cpuUsedMs),
        sum((pool) => pool.cpuHadMs),
      ),
      devices: shareOf(
        sum((pool) => pool.deviceUsedMs),
        sum((pool) => pool.deviceHadMs),
      ),
    },
    cost: {
      usedMicros: total(pools, 'usedMicros'),
      standingMicros: total(pools, 'standingMicros'),
    },
    pools,
    tenants: tenantRows(outcome),
    fairness: measures.fairness(),
    preemptions: machines.preemptions,
    lost: machines.lost,
    retried: machines.retried,
    unschedulable: left.reasons,
    series,
    speed: speedOf(outcome),
  };
}

function poolRow(name: string, pool: PoolUse, fleet: Fleet): PoolRow {
  const groups = fleet.pools.find(({ policy }) => policy.name === name)?.groups ?? [];
  const each = (value: (group: (typeof groups)[number]) => number): number =>
    groups.reduce((all, group) => all + group.count * value(group), 0);
  const hourMicros = (cpuMs: number, deviceMs: number): number =>
    (pool.cpuHourMicros * cpuMs + pool.deviceHourMicros * deviceMs) / WHOLE / HOUR_MS;
  return {
    pool: name,
    workers: each(() => 1),
    cpus: each((group) => group.resources.cpuMillis) / WHOLE,
    devices: each((group) => group.resources.devices.length),
    cpu: shareOf(pool.cpuUsedMs, pool.cpuHadMs),
    deviceShare: shareOf(pool.deviceUsedMs, pool.deviceHadMs),
    deviceHours: pool.deviceUsedMs / WHOLE / HOUR_MS,
    usedMicros: pool.usedMicros,
    standingMicros: Math.round(hourMicros(pool.cpuHadMs, pool.deviceHadMs)),
  };
}

function tenantRows({ measures }: Outcome): TenantRow[] {
  const rows = [...measures.tenants].map(([tenant, use]) => ({
    tenant,
    jobs: use.jobs,
    deviceHours: use.deviceUsedMs / WHOLE / HOUR_MS,
    cpuHours: use.cpuUsedMs / WHOLE / HOUR_MS,
    usedMicros: use.usedMicros,
  }));
  return rows.toSorted((a, b) => b.deviceHours - a.deviceHours || b.cpuHours - a.cpuHours);
}

/** What is not over: cut off by the horizon, or waiting for what will never come. */
function leftOver({ state, reasons, refused, cut, endings }: Outcome) {
  const told = new Map(refused);
  let running = 0;
  let waiting = 0;
  for (const live of state.jobs.values()) {
    if (live.attempts.size > 0) running++;
    else {
      waiting++;
      if (cut) continue;
      const reason = reasons.get(live.classKey)?.sentence ?? 'it was never placed';
      told.set(reason, (told.get(reason) ?? 0) + 1);
    }
  }
  const late = endings.get('UNSCHEDULABLE') ?? 0;
  if (late > 0) told.set('it was not started within its time', late);
  const rows = [...told].map(([reason, jobs]) => ({ reason, jobs }));
  return {
    running,
    waiting: cut ? waiting : 0,
    stuck: cut ? 0 : waiting,
    reasons: rows.toSorted((a, b) => b.jobs - a.jobs),
  };
}

function speedOf({ wallMs, planMs, plans, placements }: Outcome): RunReport['speed'] {
  const placementsPerSecond = Math.round(placements / Math.max(0.001, wallMs / 1000));
  return { wallMs, planMs, plans, placements, placementsPerSecond };
}

function total<Row>(rows: readonly Row[], name: keyof Row): number {
  return rows.reduce((all, row) => all + Number(row[name]), 0);
}
