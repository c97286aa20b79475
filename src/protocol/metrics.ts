/** REST schemas of what is measured of a job: series, samples, and what is asked for. */
import { z } from 'zod';
import { queryTime, saysOf, taskIndex, wholeNumber } from './queries.ts';

/** Named limits of a query, each with a test. */
export const METRIC_LIMITS = {
  /** Points of one series. */
  points: 5000,
  defaultPoints: 500,
  /** Series of one answer; more are asked for by task or by name. */
  series: 2000,
  names: 100,
} as const;

const name = z.string().min(1).max(200);

export const METRIC_FORMATS = ['series', 'csv', 'jsonl'] as const;

/** What is wanted of the samples. */
export const metricSelection = z.strictObject({
  task: taskIndex,
  name: z
    .union([name, z.array(name).max(METRIC_LIMITS.names)])
    .optional()
    .describe('Only metrics of this name; may be given several times'),
  since: queryTime
    .optional()
    .describe('Only from then on: an ISO 8601 time, or ms since 1970')
    .meta({ examples: ['2026-11-15T10:00:00Z'] }),
  until: queryTime
    .optional()
    .describe('Only before that time')
    .meta({ examples: ['2026-11-15T11:00:00Z'] }),
});

export const metricsQuery = metricSelection.extend({
  maxPoints: wholeNumber(1, METRIC_LIMITS.points)
    .default(METRIC_LIMITS.defaultPoints)
    .describe('Points of a series: more are summed up')
    .meta(saysOf(METRIC_LIMITS.defaultPoints, METRIC_LIMITS.defaultPoints)),
  format: z
    .enum(METRIC_FORMATS)
    .default('series')
    .describe('csv and jsonl: every sample, as a download'),
});

const number = z.number();

export const metricSeries = z
  .object({
    task: z.string(),
    index: z.int(),
    name: z.string(),
    count: z.int(),
    min: number,
    mean: number,
    max: number,
    /** The latest, and when it was. */
    last: number,
    atMs: number,
    step: number.nullable(),
    points: z.array(
      z.object({
        atMs: number,
        count: z.int(),
        min: number,
        mean: number,
        max: number,
        last: number,
        step: number.nullable(),
      }),
    ),
  })
  .meta({ id: 'MetricSeries' });
export type MetricSeries = z.infer<typeof metricSeries>;

/** What one line of metrics said. */
export interface MetricSample {
  task: string;
  index: number;
  attempt: number;
  atMs: number;
  step: number | null;
  /** Null: it was not a number. */
  values: Record<string, number | null>;
}
