/**
 * Fills a request fairly: first all of those that have a few lines, which somebody may be waiting
 * for, then a piece of each that has more, in turn.
 */
import type { Log } from '../../lib/log.ts';
import { sendableLength, type SpooledAttempt, type SpoolStream } from './attempt.ts';
import { hide, uncutLength } from '../secrets/masks.ts';
import type { SpoolBatch } from './batch.ts';
import type { SpoolLimits } from './limits.ts';

/** An attempt may be this far ahead of its rate: output comes in bursts. */
const RATE_BURST_MS = 1000;

export interface FillOptions {
  attempts: Map<string, SpooledAttempt>;
  batch: SpoolBatch;
  limits: SpoolLimits;
  nowMs: number;
  wallMs: number;
  log: Log;
  grew(attempt: SpooledAttempt): void;
  finish(attempt: SpooledAttempt): void;
}

/** True when it is full: there may be more. */
export function fillBatch(options: FillOptions): boolean {
  const { attempts, batch, limits, nowMs } = options;
  batch.clear();
  const short: SpooledAttempt[] = [];
  const bulk: SpooledAttempt[] = [];
  for (const attempt of attempts.values()) {
    if (!isDue(attempt, nowMs)) continue;
    if (hasMuch(attempt, limits.shortBytes)) bulk.push(attempt);
    else short.push(attempt);
  }
  return fillInTurn(options, short) || fillInTurn(options, bulk);
}

function fillInTurn(options: FillOptions, attempts: SpooledAttempt[]): boolean {
  let turn = attempts;
  while (turn.length > 0) {
    const again: SpooledAttempt[] = [];
    for (const attempt of turn) {
      const got = takeFrom(options, attempt);
      if (got === 'no room') {
        startWith(options.attempts, attempt);
        return true;
      }
      if (got === 'more') again.push(attempt);
    }
    turn = again;
  }
  return false;
}

function isDue(attempt: SpooledAttempt, nowMs: number): boolean {
  if (attempt.phase === 'drained' || attempt.allowedAtMs > nowMs + RATE_BURST_MS) return false;
  return attempt.phase === 'growing' || attempt.dueAtMs <= nowMs;
}

/** What cannot be looked at counts as short: its turn finds out why. */
function hasMuch(attempt: SpooledAttempt, shortBytes: number): boolean {
  try {
    return attempt.streams.some((stream) => stream.waitingBytes() > shortBytes);
  } catch {
    return false;
  }
}

/** The next request begins with the attempt for which this one had no room. */
function startWith(attempts: Map<string, SpooledAttempt>, next: SpooledAttempt): void {
  for (const [uid, attempt] of attempts) {
    if (attempt === next) return;
    attempts.delete(uid);
    attempts.set(uid, attempt);
  }
}

type Got = 'all' | 'more' | 'no room';

function takeFrom(options: FillOptions, attempt: SpooledAttempt): Got {
  const { nowMs } = options;
  // Before its files are read: what ends while we read may still have grown.
  const isEnded = attempt.ended;
  let got: Got = 'all';
  let isEmpty = true;
  let found = false;
  for (const stream of attempt.streams) {
    const taken = takeStream(options, attempt, stream, isEnded);
    if (taken === 'no room') return 'no room';
    if (taken === 'more') got = 'more';
    if (taken !== 'nothing') isEmpty = false;
    if (taken === 'more' || taken === 'some') found = true;
  }
  const isSent = attempt.streams.every((stream) => stream.readAt === stream.acked);
  if (isEnded && isEmpty && isSent) options.finish(attempt);
  else decideWhenNext(options, attempt, found);
  return attempt.allowedAtMs > nowMs + RATE_BURST_MS ? 'all' : got;
}

/** nothing: at its end. unknown: could not be looked at. some: to its end. more: there is more. */
function takeStream(
  options: FillOptions,
  attempt: SpooledAttempt,
  stream: SpoolStream,
  isEnded: boolean,
): 'nothing' | 'unknown' | 'some' | 'more' | 'no room' {
  const { batch, limits, nowMs, wallMs, log } = options;
  if (stream.pausedUntilMs > nowMs) return 'unknown';
  const target = batch.room(attempt.uid, limits.chunkBytes);
  if (target.length === 0) return 'no room';
  let count: number;
  try {
    count = stream.read(target);
  } catch (error) {
    // One unreadable file must not hold up the others; it is tried again.
    log.warn({ uid: attempt.uid, path: stream.path, err: error }, 'cannot read log output');
    stream.pausedUntilMs = nowMs + limits.longestRetryMs;
    return 'unknown';
  }
  if (count === 0) return 'nothing';
  const isAll = count < target.length;
  const isEnd = isEnded && isAll;
  // A line that fills all there is room for will not come whole.
  const waits = attempt.wholeLines && isAll;
  let length = sendableLength(target.subarray(0, count), isEnd, waits);
  const masks = attempt.masks();
  if (masks.length > 0) {
    if (!isEnd) length = uncutLength(target.subarray(0, length), masks);
    hide(target.subarray(0, length), masks);
  }
  if (length === 0) return 'unknown';
  batch.add(attempt, stream, target.subarray(0, length), wallMs);
  const costMs = (length / limits.attemptBytesPerSecond) * 1000;
  attempt.allowedAtMs = Math.max(attempt.allowedAtMs, nowMs) + costMs;
  return isAll ? 'some' : 'more';
}

function decideWhenNext(options: FillOptions, attempt: SpooledAttempt, found: boolean): void {
  const { limits, nowMs } = options;
  if (found) {
    attempt.grewAtMs = nowMs;
    options.grew(attempt);
  } else if (attempt.phase === 'watched') {
    attempt.closeFiles();
    attempt.dueAtMs = nowMs + (attempt.isWatched ? limits.recheckMs : limits.unwatchedMs);
  } else if (nowMs - attempt.grewAtMs >= limits.quietMs) {
    attempt.watchFiles(() => options.grew(attempt));
    // Once more at once: it may have grown after it was read and before it was watched.
    attempt.dueAtMs = nowMs;
  }
}
