/** Why a pool brings nothing for some work, in words and numbers that a person can act upon. */
import { count, duration, money } from '../explain/words.ts';
import type { Misfit } from '../placement/capacity.ts';
import type { CapacityPool, SpendLeft } from './capacity.ts';

const POOL_REASON_CODES = [
  /** It could never take such work, as it is configured. */
  'UNSUITABLE',
  /** It has as many machines as it may. */
  'MAX',
  /** As many are on their way as may be. */
  'PENDING',
  'COOLDOWN',
  /** It holds back after failures. */
  'BACKOFF',
  'SPEND',
  /** Of the tenant or the user. */
  'QUOTA',
] as const;
type PoolReasonCode = (typeof POOL_REASON_CODES)[number];

export interface PoolReason {
  pool: string;
  code: PoolReasonCode;
  /** A whole sentence but for the time, which is `untilMs`. */
  sentence: string;
  /** When it ends by itself; null: it does not, or nobody knows. */
  untilMs: number | null;
}

function reason(
  { name }: CapacityPool,
  code: PoolReasonCode,
  words: string,
  untilMs: number | null = null,
): PoolReason {
  return { pool: name, code, sentence: `pool ${name}: ${words}`, untilMs };
}

export function unsuited(pool: CapacityPool, words: string): PoolReason {
  return reason(pool, 'UNSUITABLE', words);
}

export function tooSmallWords(short: Misfit): string {
  const words: Record<Misfit, string> = {
    devices: 'too few devices that match',
    cpus: 'too few CPUs',
    memory: 'too little memory',
    ports: 'too few ports',
  };
  return `its machines have ${words[short]}`;
}

export function atMost(pool: CapacityPool, live: number, needed: number): PoolReason {
  const more = needed > 1 ? `; it needs ${needed} more at once` : '';
  return reason(pool, 'MAX', `${live} of at most ${pool.max} instances${more}`);
}

export function pendingMost(
  pool: CapacityPool,
  pending: number,
  most: number,
  needed: number,
): PoolReason {
  const more = needed > 1 ? `; it needs ${needed} more at once` : '';
  return reason(pool, 'PENDING', `${pending} of at most ${most} are on their way${more}`);
}

/** Fewer than it could have, as some have failed. */
export function windowMost(pool: CapacityPool, pending: number): PoolReason {
  const { window, error } = pool.backoff;
  const words = `${pending} are on their way, as many as it tries (${window}) after: ${error}`;
  return reason(pool, 'BACKOFF', words);
}

export function holdsBack(pool: CapacityPool): PoolReason {
  const { error, notBeforeMs } = pool.backoff;
  return reason(pool, 'BACKOFF', `holds back after: ${error}`, notBeforeMs);
}

export function coolsDown(pool: CapacityPool, untilMs: number): PoolReason {
  return reason(pool, 'COOLDOWN', 'launches again in a moment', untilMs);
}

export function quotaReached(pool: CapacityPool, affordable: number): PoolReason {
  const words = `the limits of its tenant or user allow ${count(affordable, 'more task')} there`;
  return reason(pool, 'QUOTA', words);
}

/** A demand names the first of its tasks: others are named when these have started. */
export function allNamedCome(pool: CapacityPool, named: number): PoolReason {
  return reason(pool, 'PENDING', `instances come for the first ${count(named, 'task')}`);
}

export function spent(
  pool: CapacityPool,
  { leftMicros, limitMicros, period, renewsAtMs }: SpendLeft,
  kept: { micros: number; neededMicros: number },
): PoolReason {
  const sum = money(limitMicros - Math.max(0, leftMicros));
  let words = `${sum} of ${money(limitMicros)} ${PERIODS[period]} are spent`;
  if (leftMicros > 0) {
    const others = kept.micros > 0 ? ` and ${money(kept.micros)} kept for those it has` : '';
    words += `${others}; it needs ${money(kept.neededMicros)} more`;
  }
  return reason(pool, 'SPEND', words, renewsAtMs);
}

export const PERIODS: Record<SpendLeft['period'], string> = {
  hour: 'an hour',
  day: 'a day',
  month: 'a month',
};

export function tooLong(pool: CapacityPool, neededMs: number): PoolReason {
  const words =
    `its machines live for ${duration(pool.longestMs)}, ` +
    `and it is taken to need ${duration(neededMs)}`;
  return unsuited(pool, words);
}
