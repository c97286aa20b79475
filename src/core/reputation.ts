/**
 * What a host's past says about its future: faults add to a penalty that halves with time, and good
 * work takes some of it off. From a penalty on it is avoided; an operator's word stands over both.
 */
import type { Host, HostVerdict } from '../model/host.ts';

/** What can be held against a machine. */
export const HOST_FAULTS = {
  /** Its instance failed and the provider or a probe says the machine was at fault. */
  'infra-fatal': { points: 1, words: 'its instance failed' },
  /** Its instance never became a worker: as often the network's or the provider's doing. */
  stalled: { points: 0.5, words: 'its instance never joined' },
  /** Its agent found it unfit for work, and said why. */
  'health-drain': { points: 1, words: 'found unfit for work' },
  /** An attempt failed there and its agent blames the machine. */
  'attempt-fault': { points: 1, words: 'an attempt failed by its fault' },
  /** It went silent with work on it: as often the network's doing, or somebody's who pulled it. */
  'silent-loss': { points: 0.5, words: 'it went silent with work on it' },
} as const;
export type HostFault = keyof typeof HOST_FAULTS;

/** After this long without news half of a penalty is left. */
export const PENALTY_HALF_LIFE_MS = 24 * 3_600_000;
/** One bad day is borne, a second fault in the same day is not. */
export const AVOIDED_FROM = 1.5;
/** However bad it was, after about two days and a half it may try again. */
export const PENALTY_MAX = 8;
/** What breaks shows several times, as a drain and in every attempt that was on it. */
export const SAME_FAULT_MS = 5 * 60_000;
/** What one that follows so soon adds, of its points. */
const SAME_FAULT_SHARE = 0.1;
/** So much good work takes off one point. */
export const GOOD_MS_PER_POINT = 12 * 3_600_000;
/** Less than this is nothing: a row of the store need not change for it. */
const LEAST_PENALTY = 0.01;
const EVIDENCE_LENGTH = 1000;

export function newHost(at: Pick<Host, 'id' | 'pool' | 'name'>, nowMs: number): Host {
  return {
    ...at,
    verdict: 'none',
    penalty: 0,
    penaltyAtMs: nowMs,
    faults: 0,
    good: 0,
    evidence: '',
    lastFaultAtMs: null,
    lastSeenAtMs: nowMs,
    version: 0,
  };
}

/** Its penalty now. A clock that went backwards changes nothing. */
export function penaltyAt({ penalty, penaltyAtMs }: Host, nowMs: number): number {
  const elapsedMs = Math.max(0, nowMs - penaltyAtMs);
  const left = penalty * 0.5 ** (elapsedMs / PENALTY_HALF_LIFE_MS);
  return left < LEAST_PENALTY ? 0 : left;
}

export function chargeHost(host: Host, fault: HostFault, evidence: string, nowMs: number): Host {
  const { points, words } = HOST_FAULTS[fault];
  const sinceMs = nowMs - (host.lastFaultAtMs ?? -Infinity);
  const share = sinceMs < SAME_FAULT_MS ? SAME_FAULT_SHARE : 1;
  const text = evidence === '' ? words : `${words}: ${evidence}`;
  return {
    ...host,
    penalty: Math.min(PENALTY_MAX, penaltyAt(host, nowMs) + points * share),
    penaltyAtMs: Math.max(nowMs, host.penaltyAtMs),
    faults: host.faults + 1,
    evidence: text.slice(0, EVIDENCE_LENGTH),
    lastFaultAtMs: nowMs,
    lastSeenAtMs: Math.max(nowMs, host.lastSeenAtMs),
  };
}

/**
 * An attempt ran there for so long and ended without a fault of the machine. However many run side
 * by side and however short they are, an hour takes off what an hour may.
 */
export function creditHost(host: Host, ranMs: number, nowMs: number): Host {
  const countedMs = Math.max(0, Math.min(ranMs, nowMs - host.penaltyAtMs));
  const left = penaltyAt(host, nowMs) - countedMs / GOOD_MS_PER_POINT;
  return {
    ...host,
    penalty: left < LEAST_PENALTY ? 0 : left,
    penaltyAtMs: Math.max(nowMs, host.penaltyAtMs),
    good: host.good + 1,
    lastSeenAtMs: Math.max(nowMs, host.lastSeenAtMs),
  };
}

/** `clear` forgets what was held against it, and what an operator said; its counts stay. */
export function judgeHost(
  host: Host,
  word: Exclude<HostVerdict, 'none'> | 'clear',
  nowMs: number,
): Host {
  if (word !== 'clear') return { ...host, verdict: word };
  const cleared = { penalty: 0, penaltyAtMs: nowMs, evidence: '', lastFaultAtMs: null };
  return { ...host, verdict: 'none', ...cleared };
}

/** Why nothing is to be started there, for a person; null: nothing speaks against it. */
export function whyAvoided(host: Host, nowMs: number): string | null {
  if (host.verdict === 'allowed') return null;
  if (host.verdict === 'blocked') return `host ${host.name} is blocked by an operator`;
  const penalty = penaltyAt(host, nowMs);
  if (penalty < AVOIDED_FROM) return null;
  const times = host.faults === 1 ? '1 fault' : `${host.faults} faults`;
  const hours = (PENALTY_HALF_LIFE_MS / 3_600_000) * Math.log2(penalty / AVOIDED_FROM);
  return (
    `host ${host.name} is avoided for another ${Math.max(1, Math.ceil(hours))} h ` +
    `after ${times}; the last: ${host.evidence}`
  );
}

export function isAvoided(host: Host, nowMs: number): boolean {
  return whyAvoided(host, nowMs) !== null;
}
