/** The figures of a run in one line. */
import type { Summary } from './parallel.ts';

export function describe(summary: Summary): string {
  const outcome = summary.found.length === 0 ? 'no violation' : 'VIOLATION';
  const { seeds, events, boots, virtualMs, seconds } = summary;
  return (
    `${seeds} seeds, ${events} events, ${boots} controller starts, ` +
    `${(virtualMs / 3_600_000).toFixed(1)} hours of virtual time in ${seconds.toFixed(1)} s ` +
    `(${(seeds / seconds).toFixed(1)} seeds/s): ${outcome}`
  );
}
