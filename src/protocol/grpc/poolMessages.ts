/** Pools, instances and hosts on the wire. */
import type { MessageInitShape } from '@bufbuild/protobuf';
import type * as wire from '../gen/drover/v1/pool_pb.ts';
import type { HostView, InstanceView, PoolView } from '../pools.ts';
import * as w from './wire.ts';

export function poolToWire(view: PoolView): MessageInitShape<typeof wire.PoolSchema> {
  const { spent, spendLimits } = view;
  return {
    ...view,
    notBeforeMs: w.toBigintOrNone(view.notBeforeMs),
    listedAtMs: w.toBigintOrNone(view.listedAtMs),
    deviceHourMicros: w.toBigint(view.deviceHourMicros),
    cpuHourMicros: w.toBigint(view.cpuHourMicros),
    instanceHourMicros: w.toBigint(view.instanceHourMicros),
    spent: { ...moneyToWire(spent), totalMicros: w.toBigint(spent.total) },
    spendLimits: moneyToWire(spendLimits),
  };
}

export function poolFromWire(sent: wire.Pool | undefined): PoolView {
  const message = w.need(sent, 'pool');
  const { name, provider, mode, min, max, workers, coming, joined, leaving } = message;
  const { error, listError, notice } = message;
  const spent = w.need(message.spent, 'spent');
  return {
    ...{ name, provider, min, max, workers, coming, joined, leaving, error, listError, notice },
    mode: mode as PoolView['mode'],
    notBeforeMs: w.toNumberOrNull(message.notBeforeMs),
    listedAtMs: w.toNumberOrNull(message.listedAtMs),
    deviceHourMicros: w.toNumber(message.deviceHourMicros),
    cpuHourMicros: w.toNumber(message.cpuHourMicros),
    instanceHourMicros: w.toNumber(message.instanceHourMicros),
    spent: { ...moneyFromWire(spent), total: w.toNumber(spent.totalMicros ?? 0n) },
    spendLimits: moneyFromWire(w.need(message.spendLimits, 'spend limits')),
    others: message.others.map(({ handle, name: called, user, state, reason, where }) => {
      return { handle, name: called, user, state, reason, where };
    }),
  };
}

type Money = PoolView['spendLimits'];

function moneyToWire({ hour, day, month }: Money): MessageInitShape<typeof wire.PoolMoneySchema> {
  return {
    hourMicros: w.toBigint(hour),
    dayMicros: w.toBigint(day),
    monthMicros: w.toBigint(month),
  };
}

function moneyFromWire({ hourMicros, dayMicros, monthMicros }: wire.PoolMoney): Money {
  return {
    hour: w.toNumber(hourMicros),
    day: w.toNumber(dayMicros),
    month: w.toNumber(monthMicros),
  };
}

export function instanceToWire(view: InstanceView): MessageInitShape<typeof wire.InstanceSchema> {
  return {
    ...view,
    failure: view.failure ?? undefined,
    priceHourMicros: w.toBigint(view.priceHourMicros),
    spentMicros: w.toBigint(view.spentMicros),
    startsAtMs: w.toBigintOrNone(view.startsAtMs),
    endsAtMs: w.toBigintOrNone(view.endsAtMs),
    createdAtMs: w.toBigint(view.createdAtMs),
    requestedAtMs: w.toBigintOrNone(view.requestedAtMs),
    runningAtMs: w.toBigintOrNone(view.runningAtMs),
    joinedAtMs: w.toBigintOrNone(view.joinedAtMs),
    destroyAtMs: w.toBigintOrNone(view.destroyAtMs),
    endedAtMs: w.toBigintOrNone(view.endedAtMs),
  };
}

export function instanceFromWire(sent: wire.Instance | undefined): InstanceView {
  const message = w.need(sent, 'instance');
  const { id, pool, provider, reason, handle, host, size, workers, tasks, runAs } = message;
  return {
    ...{ id, pool, provider, reason, handle, host, size, workers, tasks, runAs },
    state: message.state as InstanceView['state'],
    failure: (message.failure ?? null) as InstanceView['failure'],
    priceHourMicros: w.toNumber(message.priceHourMicros),
    spentMicros: w.toNumber(message.spentMicros),
    startsAtMs: w.toNumberOrNull(message.startsAtMs),
    endsAtMs: w.toNumberOrNull(message.endsAtMs),
    restarts: message.restarts,
    createdAtMs: w.toNumber(message.createdAtMs),
    requestedAtMs: w.toNumberOrNull(message.requestedAtMs),
    runningAtMs: w.toNumberOrNull(message.runningAtMs),
    joinedAtMs: w.toNumberOrNull(message.joinedAtMs),
    destroyAtMs: w.toNumberOrNull(message.destroyAtMs),
    endedAtMs: w.toNumberOrNull(message.endedAtMs),
    ...(message.script !== undefined && { script: message.script }),
  };
}

export function hostToWire(view: HostView): MessageInitShape<typeof wire.HostSchema> {
  return {
    ...view,
    lastFaultAtMs: w.toBigintOrNone(view.lastFaultAtMs),
    lastSeenAtMs: w.toBigint(view.lastSeenAtMs),
  };
}

export function hostFromWire(sent: wire.Host | undefined): HostView {
  const message = w.need(sent, 'host');
  const { id, pool, name, avoided, penalty, faults, good, evidence, workers } = message;
  return {
    ...{ id, pool, name, avoided, penalty, faults, good, evidence, workers },
    verdict: message.verdict as HostView['verdict'],
    lastFaultAtMs: w.toNumberOrNull(message.lastFaultAtMs),
    lastSeenAtMs: w.toNumber(message.lastSeenAtMs),
  };
}
