/** A host's reputation: what is added, what goes away by itself, and who has the last word. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Host } from '../model/host.ts';
import {
  AVOIDED_FROM,
  chargeHost,
  creditHost,
  GOOD_MS_PER_POINT,
  HOST_FAULTS,
  isAvoided,
  judgeHost,
  newHost,
  PENALTY_HALF_LIFE_MS,
  PENALTY_MAX,
  penaltyAt,
  SAME_FAULT_MS,
  whyAvoided,
  type HostFault,
} from './reputation.ts';

const HOUR_MS = 3_600_000;
const fresh = newHost({ id: 'default/n1', pool: 'default', name: 'n1' }, 0);
const charged = (host: Host, atMs: number, fault: HostFault = 'health-drain'): Host =>
  chargeHost(host, fault, 'Xid 79', atMs);

test('one fault is borne, a second within the day is not, and time heals', () => {
  const once = charged(fresh, 0);
  expect(isAvoided(once, 0)).toBe(false);
  const twice = charged(once, HOUR_MS);
  expect(whyAvoided(twice, HOUR_MS)).toBe(
    'host n1 is avoided for another 10 h after 2 faults; the last: found unfit for work: Xid 79',
  );
  expect(isAvoided(twice, 12 * HOUR_MS)).toBe(false);
  expect(twice).toMatchObject({ faults: 2, lastFaultAtMs: HOUR_MS, lastSeenAtMs: HOUR_MS });
});

test('two faults a week apart are not one bad host', () => {
  expect(isAvoided(charged(charged(fresh, 0), 168 * HOUR_MS), 168 * HOUR_MS)).toBe(false);
});

test('one thing that breaks shows often and counts about once', () => {
  let host = charged(fresh, 0);
  for (let n = 0; n < 4; n++) host = charged(host, 1000 + n, 'attempt-fault');
  expect(isAvoided(host, 2000)).toBe(false);
  expect(host.faults).toBe(5);
  expect(isAvoided(charged(host, SAME_FAULT_MS + 2000), SAME_FAULT_MS + 2000)).toBe(true);
});

test('faults without a pause are no way around it', () => {
  let host = fresh;
  for (let ms = 0; ms < HOUR_MS; ms += SAME_FAULT_MS - 1000) host = charged(host, ms);
  expect(isAvoided(host, HOUR_MS)).toBe(true);
});

test('good work takes off what its time allows, however much of it runs side by side', () => {
  const bad = charged(charged(fresh, 0), HOUR_MS);
  let host = bad;
  for (let n = 0; n < 5000; n++) host = creditHost(host, HOUR_MS, 2 * HOUR_MS);
  expect(host.good).toBe(5000);
  const taken = penaltyAt(bad, 2 * HOUR_MS) - host.penalty;
  expect(taken).toBeCloseTo(HOUR_MS / GOOD_MS_PER_POINT, 6);
  for (let h = 3; h < 24; h++) host = creditHost(host, HOUR_MS, h * HOUR_MS);
  expect(host.penalty).toBe(0);
});

describe("an operator's word", () => {
  test('stands over penalties until it is cleared', () => {
    const bad = charged(charged(charged(fresh, 0), HOUR_MS), 2 * HOUR_MS);
    expect(isAvoided(judgeHost(bad, 'allowed', 0), 2 * HOUR_MS)).toBe(false);
    const blocked = judgeHost(fresh, 'blocked', 0);
    expect(whyAvoided(blocked, 1000 * HOUR_MS)).toBe('host n1 is blocked by an operator');
    expect(isAvoided(creditHost(blocked, HOUR_MS, HOUR_MS), HOUR_MS)).toBe(true);
    const cleared = judgeHost(judgeHost(bad, 'blocked', 0), 'clear', 2 * HOUR_MS);
    expect(isAvoided(cleared, 2 * HOUR_MS)).toBe(false);
    expect(cleared).toMatchObject({ verdict: 'none', penalty: 0, faults: 3 });
  });
});

interface Happening {
  afterMs: number;
  fault: HostFault | null;
  ranMs: number;
}
const happenings = fc.array(
  fc.record<Happening>({
    afterMs: fc.nat({ max: 30 * HOUR_MS }),
    fault: fc.option(fc.constantFrom(...(Object.keys(HOST_FAULTS) as HostFault[]))),
    ranMs: fc.nat({ max: 48 * HOUR_MS }),
  }),
  { maxLength: 60 },
);

function live(events: Happening[], onStep: (before: Host, after: Host, nowMs: number) => void) {
  let [host, nowMs] = [fresh, 0];
  for (const { afterMs, fault, ranMs } of events) {
    nowMs += afterMs;
    const before = host;
    host = fault ? charged(host, nowMs, fault) : creditHost(host, ranMs, nowMs);
    onStep(before, host, nowMs);
  }
  return { host, nowMs };
}

test('whatever happens: bounded, never negative, and forgiven in the end', () => {
  fc.assert(
    fc.property(happenings, (events) => {
      const { host, nowMs } = live(events, (before, after, atMs) => {
        expect(after.penalty).toBeGreaterThanOrEqual(0);
        expect(after.penalty).toBeLessThanOrEqual(PENALTY_MAX);
        const untouched = penaltyAt(before, atMs);
        if (after.faults > before.faults) {
          expect(after.penalty).toBeGreaterThan(Math.min(untouched, PENALTY_MAX - 1e-9));
        } else expect(after.penalty).toBeLessThanOrEqual(untouched);
        expect(after.faults + after.good).toBe(before.faults + before.good + 1);
      });
      const longMs = PENALTY_HALF_LIFE_MS * Math.log2(PENALTY_MAX / AVOIDED_FROM) + 1;
      expect(isAvoided(host, nowMs + longMs)).toBe(false);
    }),
  );
});

test('asking in between changes nothing, and a clock that goes back gives nothing away', () => {
  const ms = fc.nat({ max: 100 * HOUR_MS });
  fc.assert(
    fc.property(happenings, ms, ms, (events, firstMs, thenMs) => {
      const { host, nowMs } = live(events, () => undefined);
      const middle = { ...host, penalty: penaltyAt(host, nowMs + firstMs) };
      middle.penaltyAtMs = nowMs + firstMs;
      const apart = penaltyAt(middle, nowMs + firstMs + thenMs);
      expect(Math.abs(apart - penaltyAt(host, nowMs + firstMs + thenMs))).toBeLessThan(0.011);
      expect(penaltyAt(host, nowMs - 1)).toBeCloseTo(penaltyAt(host, nowMs), 9);
      expect(creditHost(host, HOUR_MS, nowMs - HOUR_MS).penalty).toBeCloseTo(
        penaltyAt(host, nowMs),
        9,
      );
    }),
  );
});
