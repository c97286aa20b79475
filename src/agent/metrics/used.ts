/** What an attempt used in all, from the lines that were written while it ran. */
import { closeSync, lstatSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  METRICS_FILE,
  parseMetricLine,
  SYSTEM,
  SYSTEM_METRICS_FILE,
  USED,
  type MetricLine,
} from '../../model/metric.ts';
import { appendToPlainFile, openPlainFile } from '../plainFile.ts';

/** `repair`: ends a line that an agent left half written, so that the next is one of its own. */
export function readLines(path: string, repair = false): MetricLine[] {
  const fd = openPlainFile(path);
  if (fd === undefined) return [];
  let text: string;
  try {
    text = readFileSync(fd, 'utf8');
  } finally {
    closeSync(fd);
  }
  if (repair && text !== '' && !text.endsWith('\n')) appendToPlainFile(path, '\n');
  return text.split('\n').flatMap((line) => parseMetricLine(line) ?? []);
}

export function usedFacts(home: string): Record<string, string> {
  const lines = readLines(join(home, SYSTEM_METRICS_FILE));
  const peak = Math.max(...valuesOf(lines, SYSTEM.memoryBytes));
  const percents = valuesOf(lines, SYSTEM.devicePercent);
  const mean = percents.reduce((total, one) => total + one, 0) / percents.length;
  return {
    ...(Number.isFinite(peak) && { [USED.peakMemoryBytes]: String(peak) }),
    ...(Number.isFinite(mean) && { [USED.meanDevicePercent]: mean.toFixed(1) }),
    [USED.metricsFileBytes]: String(sizeOf(join(home, METRICS_FILE))),
    [USED.systemFileBytes]: String(sizeOf(join(home, SYSTEM_METRICS_FILE))),
  };
}

function valuesOf(lines: readonly MetricLine[], name: string): number[] {
  return lines.flatMap(({ values }) => values[name] ?? []);
}

function sizeOf(path: string): number {
  const found = lstatSync(path, { throwIfNoEntry: false });
  return found?.isFile() ? found.size : 0;
}
