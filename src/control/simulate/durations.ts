/** How long tasks run: fixed, or drawn from a distribution. */
import { z } from 'zod';
import type { Random } from '../../lib/random.ts';
import { readAt } from './checked.ts';
import type { Readers } from './readers.ts';

const written = z.union([z.string(), z.number()]).transform(String);

/** One kind each; a bare value is fixed. */
export const durationSchema = z.union(
  [
    written,
    z.strictObject({ fixed: written }),
    z.strictObject({ uniform: z.tuple([written, written]) }),
    z.strictObject({ exponential: written }),
    z.strictObject({
      lognormal: z.strictObject({ median: written, sigma: z.number().min(0).max(5) }),
    }),
  ],
  {
    error:
      'expected 2h, {uniform: [1h, 3h]}, {exponential: 2h} ' +
      'or {lognormal: {median: 1h, sigma: 1.5}}',
  },
);

export type DrawDuration = (random: Random) => number;

/** A tail that nobody would wait for is cut here. */
const LONGEST_MS = 365 * 86_400_000;

export function durationReader(
  given: z.output<typeof durationSchema>,
  where: string,
  readers: Readers,
): DrawDuration {
  const ms = (text: string): number => readAt(where, () => readers.durationMs(text, 'duration'));
  const draw = drawOf(given, ms);
  return (random) => Math.min(LONGEST_MS, Math.max(1, Math.round(draw(random))));
}

function drawOf(
  given: z.output<typeof durationSchema>,
  ms: (text: string) => number,
): DrawDuration {
  if (typeof given === 'string' || 'fixed' in given) {
    const fixed = ms(typeof given === 'string' ? given : given.fixed);
    return () => fixed;
  }
  if ('uniform' in given) {
    const [least, most] = [ms(given.uniform[0]), ms(given.uniform[1])];
    return (random) => least + (most - least) * random.next();
  }
  if ('exponential' in given) {
    const mean = ms(given.exponential);
    return (random) => exponential(random, mean);
  }
  const median = ms(given.lognormal.median);
  const { sigma } = given.lognormal;
  return (random) => median * Math.exp(sigma * normal(random));
}

export function exponential(random: Random, mean: number): number {
  return -Math.log(1 - random.next()) * mean;
}

/** Box and Muller. */
function normal(random: Random): number {
  const radius = Math.sqrt(-2 * Math.log(1 - random.next()));
  return radius * Math.cos(2 * Math.PI * random.next());
}
