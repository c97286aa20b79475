/** Durations as people write them (90m, 1h30m) and as Slurm does (1-00:00:00). */

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

/** A bare number is minutes, as in Slurm. Undefined: it is no duration. */
export function readDuration(text: string): number | undefined {
  const trimmed = text.trim().toLowerCase();
  return slurmMs(trimmed) ?? unitsMs(trimmed);
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
