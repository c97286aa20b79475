/** The log thread: appends, syncs and indexes log bytes, and what is measured of jobs. */
import { workerData } from 'node:worker_threads';
import { createFileLogStore } from '../../control/logs/fileLogStore.ts';
import type { LogStore } from '../../control/logs.ts';
import { systemClock } from '../../lib/clock.ts';
import { createLog } from '../../lib/log.ts';
import { serve } from '../../lib/thread.ts';
import type { ThreadData } from './start.ts';

export interface LogThreadOptions {
  dir: string;
  metricsDir: string;
  level: string;
  maxJobBytes: number;
  segmentBytes: number;
}

/** Both stores of a thread, told apart by the names of their calls. */
export interface LogCalls extends LogStore {
  metricsAppend: LogStore['append'];
  metricsRead: LogStore['read'];
  metricsWait: LogStore['wait'];
  metricsOffsets: LogStore['offsets'];
}

const { port, options } = workerData as ThreadData<LogThreadOptions>;
const { dir, metricsDir, level, maxJobBytes, segmentBytes } = options;
const common = { clock: systemClock, log: createLog('logs', level) };
const limits = { jobBytes: maxJobBytes, segmentBytes };
const logs = createFileLogStore({ ...common, dir, limits });
const metrics = createFileLogStore({ ...common, dir: metricsDir, limits });
const calls: LogCalls = {
  append: (chunks) => logs.append(chunks),
  read: (job, query) => logs.read(job, query),
  wait: (job, after, waitMs) => logs.wait(job, after, waitMs),
  offsets: (job) => logs.offsets(job),
  metricsAppend: (chunks) => metrics.append(chunks),
  metricsRead: (job, query) => metrics.read(job, query),
  metricsWait: (job, after, waitMs) => metrics.wait(job, after, waitMs),
  metricsOffsets: (job) => metrics.offsets(job),
  async close() {
    await logs.close();
    await metrics.close();
  },
};
serve(port, calls);
