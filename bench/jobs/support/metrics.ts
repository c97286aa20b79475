/**
 * What is measured: one entry per figure, with its unit, its direction and the target Drover has.
 */

export interface Metric {
  /** The number `--only` takes. */
  scenario: number;
  title: string;
  unit: string;
  better: 'higher' | 'lower';
  /** For Drover only; null where a figure is there for scale. */
  target: number | null;
}

const rate = (scenario: number, title: string, unit: string, target: number | null): Metric => ({
  scenario,
  title,
  unit,
  better: 'higher',
  target,
});
const atMost = (scenario: number, title: string, unit: string, target: number | null): Metric => ({
  scenario,
  title,
  unit,
  better: 'lower',
  target,
});

export const METRICS = {
  loaderCeiling: rate(0, 'ceiling of the load generator, 64 connections', 'requests/s', null),

  loaderCost: atMost(0, 'processor time of the load generator per request', 'us', null),
  diskSync: atMost(0, 'fsync after an append of 4 KiB, p50', 'ms', null),
  diskSyncP99: atMost(0, 'fsync after an append of 4 KiB, p99', 'ms', null),

  submitRate: rate(1, 'single durable submits, 64 at once', 'jobs/s', 12_000),
  submitP99: atMost(1, 'p99 of a single submit at 64 at once', 'ms', null),
  pacedP50: atMost(1, 'p50 of a submit at a paced 2,000/s', 'ms', null),
  pacedP99: atMost(1, 'p99 of a submit at a paced 2,000/s', 'ms', 20),

  batchRate: rate(2, 'calls of 1,000 jobs, one at a time', 'jobs/s', 60_000),

  executeRate: rate(3, 'place, deliver, run as no-op, complete; 8 agents', 'tasks/s', 8000),
  executeRows: atMost(3, 'rows kept per task', 'rows', null),

  startP50: atMost(4, 'submit to process started, p50', 'ms', 15),
  startP99: atMost(4, 'submit to process started, p99', 'ms', 60),

  idleCpu: atMost(5, '5,000 idle agents: processor', 'cores', 0.5),
  idleMemory: atMost(5, '5,000 idle agents: resident memory', 'MiB', 1024),

  logRate: rate(6, 'log bytes from 100 tasks, durable', 'MB/s', 50),
  logFollowedRate: rate(6, 'the same, received by a follower of it all', 'MB/s', 50),
  logFaults: atMost(6, 'bytes missing, doubled or wrong for the follower', 'bytes', 0),
  logIdleP99: atMost(6, 'line to follower, one task, p99', 'ms', 250),
  logBusyP99: atMost(6, 'line to follower while 100 tasks write, p99', 'ms', 250),

  historySubmit: rate(7, 'submits with ended jobs in the store, to empty', 'ratio', 0.9),
  historyExecute: rate(7, 'execution with ended jobs in the store, to empty', 'ratio', 0.9),

  restart: atMost(8, 'restart with pending and running work to ready', 's', 5),
} as const satisfies Record<string, Metric>;

export type MetricName = keyof typeof METRICS;
