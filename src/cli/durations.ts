/** Durations on the command line, and back to text. */
import { readDuration } from '../lib/durations.ts';
import { shortDuration } from '../lib/show.ts';
import { UsageError } from './args.ts';

export { shortDuration } from '../lib/show.ts';

/** The server's limit too: ten years. */
const LONGEST_MS = 3650 * 86_400_000;

/** A bare number is minutes, as in Slurm; 0 is no limit. */
export function parseDuration(text: string, what: string): number {
  const value = readDuration(text);
  if (value === undefined) {
    throw new UsageError(
      `${what} ${JSON.stringify(text)} is not a duration`,
      'write 90s, 45m, 2h, 1h30m or Slurm-like 1-00:00:00 (a bare number is minutes)',
    );
  }
  if (value > LONGEST_MS) throw new UsageError(`${what} ${text} is longer than ten years`);
  return value;
}

export function ago(atMs: number, nowMs: number): string {
  return `${shortDuration(nowMs - atMs)} ago`;
}
