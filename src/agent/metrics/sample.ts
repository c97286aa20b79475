/** One measurement of an attempt, as a line of metrics. */
import { SYSTEM } from '../../model/metric.ts';
import type { AttemptOrder } from '../../protocol/agent.ts';
import type { Use } from '../runtimes/use.ts';
import type { DeviceUse, DeviceUses } from './devices.ts';

export interface Before {
  atMs: number;
  cpuMs: number;
}

export interface Measured {
  atMs: number;
  use: Use;
  before: Before;
  order: Pick<AttemptOrder, 'devices' | 'share'>;
  /** Of the machine; undefined: the attempt has none. */
  devices: DeviceUses | undefined;
  pids: () => readonly number[];
}

/** Shares are in thousandths: less than this of a device is shared with others. */
const WHOLE = 1000;

export type SystemLine = { atMs: number } & Record<string, number>;

export function sampleLine(measured: Measured): SystemLine {
  const { atMs, use, before, devices } = measured;
  const wallMs = Math.max(1, atMs - before.atMs);
  const cpuMs = Math.max(0, use.cpuMs - before.cpuMs);
  return {
    atMs,
    [SYSTEM.cpuPercent]: round((cpuMs / wallMs) * 100),
    [SYSTEM.memoryBytes]: use.memoryBytes,
    ...(devices && deviceValues(measured, devices)),
  };
}

function deviceValues({ order, pids }: Measured, uses: DeviceUses): Record<string, number> {
  const own = order.devices.flatMap(({ index }): [number, DeviceUse][] => {
    const use = uses.devices.get(index);
    return use ? [[index, use]] : [];
  });
  const percents = own.flatMap(([, { percent }]) => (percent === undefined ? [] : [percent]));
  const isShared = order.share > 0 && order.share < WHOLE;
  const bytes = isShared
    ? pids().map((pid) => uses.memoryOf.get(pid) ?? 0)
    : own.flatMap(([, { memoryBytes }]) => (memoryBytes === undefined ? [] : [memoryBytes]));
  const values: Record<string, number> = {};
  if (percents.length > 0) values[SYSTEM.devicePercent] = round(sum(percents) / percents.length);
  if (bytes.length > 0) values[SYSTEM.deviceMemoryBytes] = sum(bytes);
  // With one device these would only say the same again.
  if (own.length < 2) return values;
  for (const [index, { percent, memoryBytes }] of own) {
    if (percent !== undefined) values[`system.device.${index}.percent`] = percent;
    if (memoryBytes !== undefined) values[`system.device.${index}.memoryBytes`] = memoryBytes;
  }
  return values;
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, n) => total + n, 0);
const round = (number: number): number => Math.round(number * 10) / 10;
