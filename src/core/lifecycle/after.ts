/** How another job must have ended for one that waits for it to go on. */
import type { After, JobState } from '../../model/job.ts';

export const AFTER_MEANINGS: Record<After['when'], (state: JobState) => boolean> = {
  ok: (state) => state === 'SUCCEEDED',
  failed: (state) => state !== 'SUCCEEDED',
  any: () => true,
};

/** The first circle found, as positions in the order of waiting; null: there is none. */
export function findCycle(links: readonly { waits: number; after: number }[]): number[] | null {
  const next = new Map<number, number[]>();
  for (const { waits, after } of links) next.set(waits, [...(next.get(waits) ?? []), after]);
  const done = new Set<number>();
  for (const start of next.keys()) {
    const cycle = walk(start, [], next, done);
    if (cycle) return cycle;
  }
  return null;
}

function walk(
  at: number,
  path: number[],
  next: ReadonlyMap<number, number[]>,
  done: Set<number>,
): number[] | null {
  const seen = path.indexOf(at);
  if (seen >= 0) return [...path.slice(seen), at];
  if (done.has(at)) return null;
  for (const other of next.get(at) ?? []) {
    const cycle = walk(other, [...path, at], next, done);
    if (cycle) return cycle;
  }
  done.add(at);
  return null;
}
