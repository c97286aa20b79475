/** Pools, instances and hosts as callers see them. */
import { isComing } from '../../core/lifecycle/instance.ts';
import { penaltyAt, whyAvoided } from '../../core/reputation.ts';
import type { PoolPolicy } from '../../core/placement/admission.ts';
import type { Host } from '../../model/host.ts';
import { jobOfTask, type JobId } from '../../model/ids.ts';
import type { Instance } from '../../model/instance.ts';
import type { Principal } from '../../model/token.ts';
import type { HostView, InstanceView, PoolView } from '../../protocol/pools.ts';
import { instancesOf } from '../../state/instances.ts';
import { spendingNow } from '../../state/poolSpending.ts';
import type { State } from '../../state/state.ts';
import type { ManagedPool, PoolStatus } from './pool.ts';

const MICROS = 1_000_000;

export function poolViewOf(
  state: State,
  policy: PoolPolicy,
  managed: { pool: ManagedPool; status: PoolStatus } | undefined,
  nowMs: number,
): PoolView {
  const { name, deviceHourMicros, cpuHourMicros } = policy;
  const counts = { coming: 0, joined: 0, leaving: 0 };
  for (const { instance } of instancesOf(state, name)) {
    if (isComing(instance.state)) counts.coming++;
    else if (instance.state === 'JOINED') counts.joined++;
    else counts.leaving++;
  }
  let workers = 0;
  for (const { worker } of state.workers.values()) if (worker.pool === name) workers++;
  const sums = spendingNow(state.machines.spending.get(name), nowMs);
  const { hourMicros, dayMicros, monthMicros, totalMicros } = sums;
  const settings = managed?.pool.settings;
  const status = managed?.status;
  const backoff = status?.backoff;
  const limit = (units: number | undefined): number => Math.round((units ?? 0) * MICROS);
  return {
    ...{ name, workers, ...counts, deviceHourMicros, cpuHourMicros },
    provider: managed?.pool.kind ?? '',
    mode: settings?.mode ?? 'agents',
    min: settings?.min ?? 0,
    max: settings?.max ?? 0,
    error: backoff?.error ?? '',
    notBeforeMs: backoff && backoff.notBeforeMs > nowMs ? backoff.notBeforeMs : null,
    listedAtMs: status?.listedAtMs ?? null,
    listError: status?.listError ?? '',
    notice: status?.notice ?? '',
    instanceHourMicros: limit(settings?.pricePerInstanceHour),
    spent: { hour: hourMicros, day: dayMicros, month: monthMicros, total: totalMicros },
    spendLimits: {
      hour: limit(settings?.spendPerHour),
      day: limit(settings?.spendPerDay),
      month: limit(settings?.spendPerMonth),
    },
    others: status?.others ?? [],
  };
}

/** Whose work it is for is nobody's business but his and the operators'. */
export function instanceViewOf(
  state: State,
  instance: Instance,
  provider: string,
  who: Principal,
): InstanceView {
  const { script: _script, resources: _resources, workers, version: _version, ...rest } = instance;
  const { timeLimitMs: _limit, paidUntilMs: _paid, tasks, runAs, ...shown } = rest;
  const all = who.scopes.includes('fleet:manage');
  const own = (job: JobId): boolean => state.jobs.get(job)?.job.tenant === who.tenant;
  const live = state.machines.instances.get(instance.id);
  return {
    ...shown,
    provider,
    size: workers,
    workers: [...(live?.workers ?? [])],
    tasks: tasks.filter((task) => all || own(jobOfTask(task))),
    runAs: all || runAs.startsWith(`${who.tenant}/`) ? runAs : '',
  };
}

export function hostViewOf(state: State, host: Host, nowMs: number): HostView {
  const { penaltyAtMs: _at, version: _version, ...shown } = host;
  let workers = 0;
  for (const { worker } of state.workers.values()) {
    if (worker.pool === host.pool && worker.host === host.name) workers++;
  }
  return {
    ...shown,
    avoided: whyAvoided(host, nowMs) ?? '',
    penalty: penaltyAt(host, nowMs),
    workers,
  };
}
