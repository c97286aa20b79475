/** From stored records of metrics to samples, and from samples to series and tables. */
import { Buckets, merge, type Bucket } from '../lib/buckets.ts';
import { DroverError } from '../lib/errors.ts';
import { parseMetricLine, SYSTEM_PREFIX } from '../model/metric.ts';
import type { AnyRecordView } from '../protocol/jobs.ts';
import { METRIC_LIMITS, type MetricSample, type MetricSeries } from '../protocol/metrics.ts';

export interface SampleFilter {
  names: ReadonlySet<string> | undefined;
  sinceMs: number | undefined;
  untilMs: number | undefined;
}

/** `skipped`: lines that are no metrics. */
export interface Samples {
  samples: MetricSample[];
  skipped: number;
}

export function samplesOf(record: AnyRecordView, filter: SampleFilter): Samples {
  const samples: MetricSample[] = [];
  let skipped = 0;
  const { task, index, attempt } = record;
  for (const text of (record.text ?? '').split('\n')) {
    if (text.trim() === '') continue;
    const line = parseMetricLine(text);
    if (line === null) {
      skipped++;
      continue;
    }
    // A line that does not say when it was is of when the agent saw it.
    const { atMs = record.atMs, step = null } = line;
    if (filter.sinceMs !== undefined && atMs < filter.sinceMs) continue;
    if (filter.untilMs !== undefined && atMs >= filter.untilMs) continue;
    const values = Object.entries(line.values).filter(([name]) => isWanted(name, record, filter));
    if (values.length === 0) continue;
    samples.push({ task, index, attempt, atMs, step, values: Object.fromEntries(values) });
  }
  if (record.base64 !== undefined) skipped++;
  return { samples, skipped };
}

/** Only the agent tells of the system. */
function isWanted(name: string, { stream }: AnyRecordView, { names }: SampleFilter): boolean {
  if (stream === 'metrics' && name.startsWith(SYSTEM_PREFIX)) return false;
  return names === undefined || names.has(name);
}

interface Growing {
  task: string;
  index: number;
  name: string;
  buckets: Buckets;
}

/** One series for each task and name, over all its attempts. */
export class SeriesTable {
  readonly #maxPoints: number;
  readonly #series = new Map<string, Growing>();

  constructor(maxPoints: number) {
    this.#maxPoints = maxPoints;
  }

  add({ task, index, atMs, step, values }: MetricSample): void {
    for (const [name, value] of Object.entries(values)) {
      if (value === null) continue;
      const key = `${index} ${name}`;
      let one = this.#series.get(key);
      if (!one) {
        if (this.#series.size >= METRIC_LIMITS.series) throw tooMany();
        one = { task, index, name, buckets: new Buckets(this.#maxPoints) };
        this.#series.set(key, one);
      }
      one.buckets.add(atMs, value, step);
    }
  }

  /** By task, then by name. */
  list(): MetricSeries[] {
    const all = [...this.#series.values()].map(({ buckets, ...who }) => {
      const points = buckets.list();
      return { ...who, ...(points.reduce(merge) satisfies Bucket), points };
    });
    return all.toSorted((a, b) => a.index - b.index || (a.name < b.name ? -1 : 1));
  }
}

function tooMany(): DroverError {
  const most = METRIC_LIMITS.series;
  return new DroverError('INVALID_ARGUMENT', `the job has more than ${most} series of metrics`, {
    hint: 'Ask for one task (task=N) or for some names (name=loss), or download them as csv.',
  });
}

export const CSV_HEAD = 'atMs,task,attempt,step,name,value\n';

/** One row for each value; what was no number is empty. */
export function csvOf({ task, attempt, atMs, step, values }: MetricSample): string {
  const rows = Object.entries(values).map(
    ([name, value]) => `${atMs},${task},${attempt},${step ?? ''},${quoted(name)},${value ?? ''}\n`,
  );
  return rows.join('');
}

/** A spreadsheet takes what begins so for a formula. */
const FORMULA = /^[=+\-@\t\r]/;

function quoted(name: string): string {
  const safe = FORMULA.test(name) ? `'${name}` : name;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
