/** Past use, halved every half-life: what fair shares remember of a tenant and its users. */
import type { Usage } from '../model/account.ts';

export const DEFAULT_HALF_LIFE_MS = 7 * 24 * 3_600_000;

export interface Use {
  cpuMillis: number;
  memoryMiB: number;
  deviceMillis: number;
}

/** The same use as it weighs at a later time. */
function decayed(usage: Usage, nowMs: number, halfLifeMs: number): Usage {
  const factor = 2 ** (-Math.max(0, nowMs - usage.asOfMs) / halfLifeMs);
  return {
    cpuMillis: usage.cpuMillis * factor,
    memoryMiB: usage.memoryMiB * factor,
    deviceMillis: usage.deviceMillis * factor,
    asOfMs: Math.max(usage.asOfMs, nowMs),
  };
}

/** What was held on average over the time that counts. */
export function averageHeld(usage: Usage, nowMs: number, halfLifeMs: number): Use {
  const now = decayed(usage, nowMs, halfLifeMs);
  const overMs = windowMs(halfLifeMs);
  return {
    cpuMillis: now.cpuMillis / overMs,
    memoryMiB: now.memoryMiB / overMs,
    deviceMillis: now.deviceMillis / overMs,
  };
}

/** Adds what was held evenly for `ms` until now: its older part weighs less already. */
export function addUse(
  usage: Usage,
  use: Use,
  ms: number,
  nowMs: number,
  halfLifeMs: number,
): Usage {
  const now = decayed(usage, nowMs, halfLifeMs);
  const weighedMs = windowMs(halfLifeMs) * (1 - 2 ** (-Math.max(0, ms) / halfLifeMs));
  now.cpuMillis += use.cpuMillis * weighedMs;
  now.memoryMiB += use.memoryMiB * weighedMs;
  now.deviceMillis += use.deviceMillis * weighedMs;
  return now;
}

/** Usage divided by this is the average held over the time that counts. */
function windowMs(halfLifeMs: number): number {
  return halfLifeMs / Math.LN2;
}
