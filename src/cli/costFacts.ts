/** What a job has cost, and what those of its attempts cost that are kept after a failure. */
import type { AttemptView } from '../protocol/jobs.ts';
import type { Fact } from './facts.ts';
import { showMoney } from './money.ts';

const HOUR_MS = 3_600_000;
/** As the agent says it. */
const KEPT = /; kept until /;

/** Nothing for what costs nothing. */
export function costFacts(attempts: AttemptView[], nowMs: number): Fact[] {
  const all = attempts.reduce((sum, attempt) => sum + costOf(attempt, nowMs), 0);
  const kept = attempts.filter(
    ({ endedAtMs, message }) => endedAtMs === null && KEPT.test(message),
  );
  return [
    ['cost', all > 0 ? `${showMoney(all)} so far` : ''],
    ...kept.map((attempt): Fact => ['kept', `${attempt.task} ${attempt.message}`]),
    ...kept
      .filter(({ priceMicros }) => priceMicros > 0)
      .map((attempt): Fact => {
        const hourly = `${showMoney(attempt.priceMicros)} an hour while it is kept`;
        return ['kept at', `${hourly}, ${showMoney(costOf(attempt, nowMs))} so far`];
      }),
  ];
}

/** Charges come by the hour and at the end; between them it is price by time. */
function costOf(attempt: AttemptView, nowMs: number): number {
  const { startedAtMs, endedAtMs, priceMicros, chargedMicros } = attempt;
  if (endedAtMs !== null || startedAtMs === null) return chargedMicros;
  const micros = Math.round((priceMicros / HOUR_MS) * Math.max(0, nowMs - startedAtMs));
  return Math.max(chargedMicros, micros);
}
