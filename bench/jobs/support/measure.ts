/** Small arithmetic of measuring: percentiles, rates, waiting and a fine wall clock. */
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';

export { sleep };

/** The smallest value that at least `fraction` of the samples do not exceed (nearest rank). */
export function percentile(samples: number[], fraction: number): number {
  if (samples.length === 0) throw new Error('a percentile of no samples');
  const sorted = Float64Array.from(samples).toSorted();
  const rank = Math.ceil(fraction * sorted.length) - 1;
  return sorted[Math.max(0, rank)]!;
}

/** Runs `work` once and says how many of its `count` units it did in a second. */
export async function perSecond(count: number, work: () => Promise<void>): Promise<number> {
  const began = performance.now();
  await work();
  return (count / (performance.now() - began)) * 1000;
}

/**
 * Keeps `width` calls of `call` in flight until `seconds` are over; calls per second and
 * latencies.
 */
export async function concurrently(
  width: number,
  seconds: number,
  call: (n: number) => Promise<void>,
): Promise<{ perSecond: number; latenciesMs: number[] }> {
  const latenciesMs: number[] = [];
  const began = performance.now();
  const until = began + seconds * 1000;
  let next = 0;
  const lane = async (): Promise<void> => {
    for (let sentAt = performance.now(); sentAt < until; sentAt = performance.now()) {
      await call(next++);
      latenciesMs.push(performance.now() - sentAt);
    }
  };
  await Promise.all(Array.from({ length: width }, lane));
  const elapsedMs = performance.now() - began;
  return { perSecond: (latenciesMs.length / elapsedMs) * 1000, latenciesMs };
}

/** Polls until `check` holds; an error that names what was waited for after `limitMs`. */
export async function until(
  what: string,
  limitMs: number,
  periodMs: number,
  check: () => Promise<boolean>,
): Promise<void> {
  const deadline = performance.now() + limitMs;
  while (!(await check())) {
    if (performance.now() > deadline) throw new Error(`${what}: not within ${limitMs} ms`);
    await sleep(periodMs);
  }
}

/**
 * The wall clock with microseconds, for comparison with times that other processes print.
 * Date.now() counts whole milliseconds, so its next tick is awaited once and performance.now()
 * counts on from there.
 */
export function fineWallClock(): () => number {
  const first = Date.now();
  let tick = Date.now();
  while (tick === first) tick = Date.now();
  const offset = tick - performance.now();
  return () => offset + performance.now();
}
