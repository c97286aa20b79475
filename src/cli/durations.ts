/** Durations as people write them (90m, 1h30m) and as Slurm does (1-00:00:00), and back to text. */
import { shortDuration } from '../lib/show.ts';
import { UsageError } from './args.ts';

export { shortDuration } from '../lib/show.ts';

const UNIT_MS: Record<string, number> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 7 * 86_400_000,
};
const UNITS = /(\d+(?:\.\d+)?)(ms|[smhdw])/g;
const SLURM = /^(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?$/;
/** The server's limit too: ten years. */
const LONGEST_MS = 3650 * 86_400_000;

/** A bare number is minutes, as in Slurm; 0 is no limit. */
export function parseDuration(text: string, what: string): number {
  const trimmed = text.trim().toLowerCase();
  const value = slurmMs(trimmed) ?? unitsMs(trimmed);
  if (value === undefined) {
    throw new UsageError(
      `${what} ${JSON.stringify(text)} is not a duration`,
      'write 90s, 45m, 2h, 1h30m or Slurm-like 1-00:00:00 (a bare number is minutes)',
    );
  }
  if (value > LONGEST_MS) throw new UsageError(`${what} ${text} is longer than ten years`);
  return value;
}

/** minutes, minutes:seconds, hours:minutes:seconds, days-hours[:minutes[:seconds]]. */
function slurmMs(text: string): number | undefined {
  const match = SLURM.exec(text);
  if (!match) return undefined;
  const [, days, first, second, third] = match.map((part) => (part ? Number(part) : undefined));
  if (days !== undefined) return clock(days, first!, second ?? 0, third ?? 0);
  if (third !== undefined) return clock(0, first!, second!, third);
  return clock(0, 0, first!, second ?? 0);
}

function clock(days: number, hours: number, minutes: number, seconds: number): number {
  return days * UNIT_MS['d']! + hours * UNIT_MS['h']! + minutes * UNIT_MS['m']! + seconds * 1000;
}

function unitsMs(text: string): number | undefined {
  if (text === '' || text.replace(UNITS, '') !== '') return undefined;
  let sum = 0;
  for (const [, amount, unit] of text.matchAll(UNITS)) sum += Number(amount) * UNIT_MS[unit!]!;
  return Math.round(sum);
}

export function ago(atMs: number, nowMs: number): string {
  return `${shortDuration(nowMs - atMs)} ago`;
}
