/** The log thread: appends, syncs and indexes log bytes. */
import { workerData } from 'node:worker_threads';
import { createFileLogStore } from '../../control/logs/fileLogStore.ts';
import { systemClock } from '../../lib/clock.ts';
import { createLog } from '../../lib/log.ts';
import { serve } from '../../lib/thread.ts';
import type { ThreadData } from './start.ts';

export interface LogThreadOptions {
  dir: string;
  level: string;
  maxJobBytes: number;
  segmentBytes: number;
}

const { port, options } = workerData as ThreadData<LogThreadOptions>;
const { dir, level, maxJobBytes, segmentBytes } = options;
serve(
  port,
  createFileLogStore({
    dir,
    clock: systemClock,
    log: createLog('logs', level),
    limits: { jobBytes: maxJobBytes, segmentBytes },
  }),
);
