/** What a pool remembers goes with the wall clock when that is set anew. */
import { expect, test } from 'vitest';
import { ManualClock } from '../../../test/support/manualClock.ts';
import { failed, FRESH_BACKOFF } from '../../core/capacity/backoff.ts';
import type { InstanceId } from '../../model/ids.ts';
import { Ages } from './ages.ts';
import { PoolStatus } from './pool.ts';

const HOUR = 3_600_000;

test.each([HOUR, -HOUR])('a step by %i ms delays nothing and hurries nothing', async (byMs) => {
  const clock = new ManualClock();
  const status = new PoolStatus();
  const instance = 'i1' as InstanceId;
  status.follow(clock);
  const failure = { nowMs: clock.now(), error: '', configuration: false, retryAfterMs: 0 };
  const limits = { cooldownMs: 10_000, maxPending: 5 };
  status.backoff = failed(FRESH_BACKOFF, failure, limits);
  status.nextLookAtMs = clock.now() + 5000;
  status.strangers.set('4000', clock.now());
  status.destroyAsked.set('4001', clock.now());
  status.idleSince.set(instance, clock.now());
  await clock.advance(1000);
  clock.step(byMs);
  status.follow(clock);
  expect(status.backoff.notBeforeMs - clock.now()).toBe(9000);
  expect(status.nextLookAtMs - clock.now()).toBe(4000);
  expect(clock.now() - status.strangers.get('4000')!).toBe(1000);
  expect(clock.now() - status.destroyAsked.get('4001')!).toBe(1000);
  expect(clock.now() - status.idleSince.get(instance)!).toBe(1000);
});

test('an age counts on while the wall clock steps, and begins anew with another time', async () => {
  const clock = new ManualClock();
  const ages = new Ages();
  const sinceMs = clock.now() - 2000;
  expect(ages.of('i1', sinceMs, clock)).toBe(2000);
  clock.step(-HOUR);
  await clock.advance(1000);
  expect(ages.of('i1', sinceMs, clock)).toBe(3000);
  expect(ages.of('i1', clock.now() + HOUR, clock)).toBe(0);
  ages.keep(() => false);
  expect(ages.of('i1', clock.now() - 5000, clock)).toBe(5000);
});
