/**
 * What is measured of a job: JSON lines, flat, `{"atMs": …, "step": …, NAME: number | null, …}`.
 * Jobs write theirs to `$DROVER_METRICS_FILE`, agents write what they see of an attempt.
 */

/** Below an attempt's own directory. */
export const METRICS_FILE = 'metrics.jsonl';
export const SYSTEM_METRICS_FILE = 'system-metrics.jsonl';

/** Names that begin so are the agent's: a job's own under such a name are dropped. */
export const SYSTEM_PREFIX = 'system.';
export const SYSTEM = {
  /** 100 is one core. */
  cpuPercent: 'system.cpuPercent',
  memoryBytes: 'system.memoryBytes',
  /** Over all its devices: the mean of their use, the sum of their memory. */
  devicePercent: 'system.devicePercent',
  deviceMemoryBytes: 'system.deviceMemoryBytes',
} as const;

/** What an attempt used, kept with its facts at its end. */
export const USED_PREFIX = 'used.';
export const USED = {
  peakMemoryBytes: 'used.peakMemoryBytes',
  meanDevicePercent: 'used.meanDevicePercent',
  /** How many bytes of either file there are: a reader knows when he has all. */
  metricsFileBytes: 'used.metricsFileBytes',
  systemFileBytes: 'used.systemFileBytes',
} as const;

/** A longer line is no measurement. */
export const METRIC_LINE_BYTES = 16 * 1024;
const NAME_LENGTH = 200;

export interface MetricLine {
  /** Undefined: it did not say. */
  atMs: number | undefined;
  step: number | undefined;
  /** Null: not a number (NaN) when it was written. */
  values: Record<string, number | null>;
}

/** Null for what is no line of metrics: not JSON, not flat, or without a number. */
export function parseMetricLine(text: string): MetricLine | null {
  if (text.length > METRIC_LINE_BYTES) return null;
  let found: unknown;
  try {
    found = JSON.parse(text);
  } catch {
    // A line that was torn, or never was JSON: the caller counts it.
    return null;
  }
  if (typeof found !== 'object' || found === null || Array.isArray(found)) return null;
  const { atMs, step, ...rest } = found as Record<string, unknown>;
  const values: [string, number | null][] = [];
  for (const [name, value] of Object.entries(rest)) {
    if (value !== null && typeof value !== 'number') continue;
    if (name !== '' && name.length <= NAME_LENGTH) values.push([name, value]);
  }
  if (values.length === 0) return null;
  return { atMs: finite(atMs), step: finite(step), values: Object.fromEntries(values) };
}

function finite(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : undefined;
}
