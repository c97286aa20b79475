/** A receipt as a fake gives it: the job's own times, and nothing lost. */
import type { JobView } from './jobs.ts';
import type { ReceiptView } from './receipt.ts';

export function fakeReceipt(job: JobView): ReceiptView {
  const { createdAtMs, startedAtMs, endedAtMs, name, state, reason, exitCode } = job;
  const startMs = startedAtMs ?? endedAtMs ?? createdAtMs;
  const runningMs = (endedAtMs ?? startMs) - startMs;
  const line = `job ${job.id} ${state}: ran ${runningMs} ms`;
  return {
    ...{ job: job.id, name, state, reason, exitCode, createdAtMs, startedAtMs, endedAtMs },
    tasks: { total: job.tasks.total, succeeded: job.tasks.succeeded },
    attempts: startedAtMs === null ? 0 : 1,
    ranOn: [],
    time: { waitingMs: startMs - createdAtMs, startingMs: 0, runningMs, stoppingMs: 0 },
    lost: [],
    costMicros: 0,
    deviceMs: 0,
    checkpoints: 0,
    resumes: 0,
    peakMemoryBytes: null,
    complete: true,
    next: [],
    line,
    sentences: [`${line}.`],
  };
}
