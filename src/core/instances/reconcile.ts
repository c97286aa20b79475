/**
 * What a look at a provider means for our instances. The listing is whole: what it lacks is gone,
 * except what was asked for so lately that the provider may not show it yet.
 */
import { isComing } from '../lifecycle/instance.ts';
import type { InstanceId } from '../../model/ids.ts';
import type { FailureClass, Instance } from '../../model/instance.ts';

/** A machine as its provider lists it: see providers/contract.ts. */
export interface Sight {
  label: string;
  handle: string;
  phase: 'queued' | 'booting' | 'running' | 'ending' | 'gone';
  reason: string;
  failure: FailureClass | null;
  host: string;
  startsAtMs: number | null;
  leftMs: number | null;
  restarts: number;
  billed: boolean;
  priceHourMicros: number | null;
}

export interface Rules {
  bootTimeoutMs: number;
  /** A machine may wait at its provider's for any time before it starts. */
  queues: boolean;
  quantumMs: number;
}

/** An instance, what its provider shows of it, and what goes on with it here. */
export interface Look {
  instance: Instance;
  sight: Sight | undefined;
  /** A call that asks for it is under way. */
  launching: boolean;
  /** Workers of it that have joined and are not lost. */
  workers: number;
  /** They joined so long before it was first seen to start again that no listing is older. */
  settled: boolean;
  /** One of them has not been heard of for its lease. */
  silent: boolean;
  /** How long it has been seen to have started again, or to wait for that. */
  againForMs: number;
  /** How long it has been seen to be over, and whether one of its workers was heard since. */
  goneForMs: number;
  heardSince: boolean;
  /** Nothing runs on it and nothing is promised there. */
  empty: boolean;
  /** How long ago its provider was asked for it, and since when a look has shown it started. */
  askedForMs: number;
  runningForMs: number | null;
}

/** Fields that are news; see state/instanceMutations.ts. */
interface News {
  instance: InstanceId;
  move?: 'request' | 'boot' | 'restart';
  reason?: string;
  handle?: string;
  host?: string;
  startsAtMs?: number | null;
  endsAtMs?: number | null;
  restarts?: number;
  priceHourMicros?: number;
  paid?: { untilMs: number; micros: number };
}

export type Verdict =
  | { kind: 'as-is' }
  | { kind: 'news'; news: News }
  /** It is to be gone; `news` may still be told of it. */
  | { kind: 'destroy'; failure: FailureClass | null; reason: string; news?: News; stops?: boolean }
  | { kind: 'gone'; failure: FailureClass | null; reason: string };

/** Who lives says so within this time: a sync is held for ten seconds at most. */
const HEARD_WITHIN_MS = 12_000;
/** What is stopped has ended by then, or its agent does not do what it is told. */
const STOPPED_WITHIN_MS = 10 * 60_000;
/** Workers that are still heard of then came after the start that was seen. */
const ALIVE_AFTER_MS = 45_000;
/** A provider may take so long to show what it has just taken, or what has just changed. */
export const LISTING_LAG_MS = 60_000;
/** Ends and starts are told anew only when they move by more: each telling is a row. */
const END_MOVED_MS = 5000;
const START_MOVED_MS = 60_000;
const HOUR_MS = 3_600_000;

export function judge(look: Look, rules: Rules, nowMs: number): Verdict {
  const { instance, sight } = look;
  if (!sight) return judgeAbsent(look);
  if (sight.phase === 'gone') {
    const reason = sight.reason || 'its provider has ended it';
    return over(look, sight.failure, reason);
  }
  const news = newsOf(look, sight, rules, nowMs);
  const late = instance.state === 'DESTROYING' ? null : whyDestroy(look, sight, rules);
  if (late) return { kind: 'destroy', ...late, ...(news && { news }) };
  return news ? { kind: 'news', news } : { kind: 'as-is' };
}

/**
 * Its provider says that it is over. A worker that is heard of after that lives all the same, as
 * where only the provider's own daemon died: what it runs is stopped before it may run elsewhere.
 */
function over(look: Look, failure: FailureClass | null, reason: string): Verdict {
  const { instance, workers, empty, silent, goneForMs, heardSince } = look;
  const gone: Verdict = { kind: 'gone', failure, reason };
  if (workers === 0 || empty || silent || goneForMs > STOPPED_WITHIN_MS) return gone;
  if (!heardSince) return goneForMs < HEARD_WITHIN_MS ? { kind: 'as-is' } : gone;
  if (instance.state === 'DESTROYING') return { kind: 'as-is' };
  return { kind: 'destroy', failure, reason, stops: true };
}

function judgeAbsent(look: Look): Verdict {
  const { instance, launching, workers, askedForMs } = look;
  const { state } = instance;
  if (launching) return { kind: 'as-is' };
  // One that is to go may appear yet: then nobody wants it, and it is ended as a stranger.
  const awaited = state !== 'DESTROYING' || workers > 0;
  // No look has shown it yet: its agent may have been quicker than the listing.
  const fresh = awaited && instance.runningAtMs === null;
  if (fresh && askedForMs < LISTING_LAG_MS) return { kind: 'as-is' };
  const reason =
    state === 'INTENDED'
      ? 'its launch was interrupted, and the provider has no such machine'
      : 'the provider does not have it any more';
  return over(look, null, reason);
}

function whyDestroy(
  { instance, workers, empty, askedForMs, runningForMs }: Look,
  sight: Sight,
  { bootTimeoutMs, queues }: Rules,
): { failure: FailureClass | null; reason: string } | null {
  const { state } = instance;
  if (sight.failure) return { failure: sight.failure, reason: sight.reason };
  // One that its provider starts again by itself may end only to wait once more; its agent may have
  // joined again meanwhile. It is soon listed as over or as waiting.
  if (sight.phase === 'ending' && sight.restarts === 0) {
    return { failure: null, reason: `its provider ends it: ${sight.reason}` };
  }
  if (state === 'DRAINING' && empty) return { failure: null, reason: instance.reason };
  const there = sight.restarts <= instance.restarts && !comesAgain(sight);
  if (state === 'JOINED' && workers === 0 && there) {
    return { failure: 'INFRA_FATAL', reason: 'its worker was lost' };
  }
  const forMs = runningForMs ?? (queues ? null : askedForMs);
  if (isComing(state) && forMs !== null && forMs > bootTimeoutMs) {
    const seconds = Math.round(forMs / 1000);
    const reason = `it has not joined within ${seconds} s of its start: ${sight.reason}`;
    return { failure: 'STALLED', reason };
  }
  return null;
}

function newsOf(look: Look, sight: Sight, rules: Rules, nowMs: number): News | null {
  const { instance } = look;
  const news: News = { instance: instance.id };
  const { state } = instance;
  if (sight.handle !== '' && sight.handle !== instance.handle) news.handle = sight.handle;
  if (sight.host !== '' && sight.host !== instance.host) news.host = sight.host;
  // While it is looked at by us, what we saw says more.
  const told = isComing(state) && state !== 'PROBING';
  if (told && sight.reason !== instance.reason) news.reason = sight.reason;
  if (sight.priceHourMicros !== null && sight.priceHourMicros !== instance.priceHourMicros) {
    news.priceHourMicros = sight.priceHourMicros;
  }
  const endsAtMs = sight.leftMs === null ? null : nowMs + sight.leftMs;
  if (moved(instance.endsAtMs, endsAtMs, END_MOVED_MS)) news.endsAtMs = endsAtMs;
  if (moved(instance.startsAtMs, sight.startsAtMs, START_MOVED_MS)) {
    news.startsAtMs = sight.startsAtMs;
  }
  const move = moveOf(look, sight);
  if (move) news.move = move;
  if (sight.restarts > instance.restarts && isOver(look, move)) news.restarts = sight.restarts;
  const paid = sight.billed ? payment(instance, sight, rules, nowMs) : null;
  if (paid) news.paid = paid;
  return Object.keys(news).length > 1 ? news : null;
}

function moved(old: number | null, now: number | null, byMs: number): boolean {
  if (old === null || now === null) return old !== now;
  return Math.abs(old - now) > byMs;
}

function moveOf(look: Look, sight: Sight): News['move'] {
  const { state } = look.instance;
  if (hasRestarted(look, sight)) return 'restart';
  const waits = sight.phase === 'queued' || sight.phase === 'ending';
  if (waits) return state === 'INTENDED' ? 'request' : undefined;
  return state === 'INTENDED' || state === 'REQUESTED' ? 'boot' : undefined;
}

/** A start again is over with what it did to the instance, or with workers that outlived it. */
function isOver({ instance, againForMs, silent }: Look, move: News['move']): boolean {
  if (instance.state !== 'JOINED' || move === 'restart') return true;
  return !silent && againForMs >= ALIVE_AFTER_MS;
}

/**
 * Whoever waits again has left its machine, counted or not, and what ran there is lost. But workers
 * that came lately may have come since, while the look is older than they are: those say
 * themselves what goes on, or are silent until their leases are over.
 */
function hasRestarted({ instance, workers, settled }: Look, sight: Sight): boolean {
  const { state, restarts } = instance;
  const counted = sight.restarts > restarts;
  if (state === 'BOOTING' || state === 'PROBING') return counted || sight.phase === 'queued';
  if (state !== 'JOINED' || (workers > 0 && !settled)) return false;
  return counted || comesAgain(sight);
}

function comesAgain({ phase }: Sight): boolean {
  return phase === 'queued' || phase === 'booting';
}

/** Quanta are paid when they begin: what it may come to cost is known before it does. */
function payment(
  instance: Instance,
  { priceHourMicros }: Sight,
  { quantumMs }: Rules,
  nowMs: number,
): News['paid'] | null {
  const price = priceHourMicros ?? instance.priceHourMicros;
  if (price === 0) return null;
  const saidMs = instance.paidUntilMs ?? nowMs;
  // Paid further ahead than a quantum reaches: the clock was set back since.
  const paidUntilMs = saidMs > nowMs + quantumMs ? nowMs : saidMs;
  if (paidUntilMs > nowMs) return null;
  const quanta = Math.floor((nowMs - paidUntilMs) / quantumMs) + 1;
  return {
    untilMs: paidUntilMs + quanta * quantumMs,
    micros: Math.round((price * quanta * quantumMs) / HOUR_MS),
  };
}
