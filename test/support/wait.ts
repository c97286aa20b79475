/** Waiting in tests: until something holds, with a deadline that says what did not. */
import { setTimeout as delay } from 'node:timers/promises';

const POLL_MS = 25;
/** Several times what is usual: the machine may be busy with others' work. */
export const PATIENCE_MS = 30_000;

type Falsy = undefined | null | false | 0 | '';

/** The first value that is truthy; an error of `look` is "not yet", and named at the end. */
export async function until<Value>(
  what: string,
  look: () => Promise<Value> | Value,
  limitMs: number = PATIENCE_MS,
  pollMs: number = POLL_MS,
): Promise<Exclude<Value, Falsy>> {
  const giveUpAt = performance.now() + limitMs;
  let last: unknown = 'never looked';
  for (;;) {
    try {
      const value = await look();
      if (value) return value as Exclude<Value, Falsy>;
      last = value;
    } catch (error) {
      last = error;
    }
    if (performance.now() > giveUpAt) {
      const cause = last instanceof Error ? last : undefined;
      throw new Error(`not within ${limitMs} ms: ${what} (last: ${String(last)})`, { cause });
    }
    await delay(pollMs);
  }
}

/** p50, p99 and the most, for people. */
export function summary(values: readonly number[]): { p50: number; p99: number; max: number } {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (part: number): number =>
    Math.round(sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? 0);
  return { p50: at(0.5), p99: at(0.99), max: at(1) };
}
