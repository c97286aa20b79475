/** Round numbers for the axes of a drawing. */

export interface Ticks {
  /** The end of the axis; it begins at 0. */
  top: number;
  at: { value: number; label: string }[];
}

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const TIME_STEPS = [
  ...[1, 2, 5, 10, 15, 30].map((seconds) => seconds * 1000),
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * MINUTE),
  ...[1, 2, 3, 6, 12].map((hours) => hours * HOUR),
  ...[1, 2, 7, 14, 30, 90, 365].map((days) => days * DAY),
];
const MOST_TIMES = 12;
const MOST_COUNTS = 5;

/** The axis ends where the time does: a tick need not lie there. */
export function timeTicks(untilMs: number): Ticks {
  const step = TIME_STEPS.find((ms) => untilMs / ms <= MOST_TIMES) ?? 365 * DAY;
  const at = [];
  for (let value = 0; value <= untilMs; value += step) at.push({ value, label: timeLabel(value) });
  return { top: untilMs, at };
}

function timeLabel(ms: number): string {
  if (ms === 0) return '0';
  if (ms % DAY === 0) return `${ms / DAY} d`;
  if (ms >= DAY) return `${Math.floor(ms / DAY)} d ${(ms % DAY) / HOUR} h`;
  if (ms % HOUR === 0) return `${ms / HOUR} h`;
  if (ms >= HOUR) return `${Math.floor(ms / HOUR)} h ${(ms % HOUR) / MINUTE} m`;
  return ms % MINUTE === 0 ? `${ms / MINUTE} m` : `${ms / 1000} s`;
}

/** Up to a round number that is not below the highest value. */
export function countTicks(highest: number): Ticks {
  const rough = highest / MOST_COUNTS;
  const power = 10 ** Math.floor(Math.log10(rough));
  const factor = [1, 2, 5, 10].find((one) => one * power >= rough) ?? 10;
  const step = Math.max(1, factor * power);
  const count = Math.ceil(highest / step);
  const at = Array.from({ length: count + 1 }, (_, i) => ({
    value: i * step,
    label: (i * step).toLocaleString('en-GB').replaceAll(',', ' '),
  }));
  return { top: count * step, at };
}
