/** Waits for a job's end through restarts of the server, and says how it ended. */
import { setTimeout as delay } from 'node:timers/promises';
import { eachItem, type DroverClient } from '../protocol/client.ts';
import { mayPass, retryPauseMs } from '../protocol/http.ts';
import type { AttemptView, JobView } from '../protocol/jobs.ts';
import type { CommandContext } from './command.ts';
import { decisiveAttempt, jobExitCode } from './exitCodes.ts';
import { printable } from './table.ts';

/** One call's share of the waiting; a server allows a minute. */
const WAIT_CALL_MS = 30_000;
/** How long the server may be away before we give up; the job itself goes on. */
const AWAY_LIMIT_MS = 600_000;
/** Looked through for the cause of a failure: every task of the largest array with two attempts. */
const ATTEMPTS_LIMIT = 20_000;
const ATTEMPTS_PAGE = 500;

export function hasEnded(job: Pick<JobView, 'state'>): boolean {
  return job.state !== 'PENDING' && job.state !== 'RUNNING';
}

export interface EndOptions {
  signal?: AbortSignal;
  /** Returns the job unfinished when this has passed. */
  timeoutMs?: number | undefined;
  /** The server was there a moment ago, so a refused connection is a restart. */
  serverKnown?: boolean;
}

export async function waitForEnd(
  client: DroverClient,
  id: string,
  options: EndOptions = {},
): Promise<JobView> {
  const deadlineMs = performance.now() + (options.timeoutMs ?? Number.POSITIVE_INFINITY);
  let contactAtMs = performance.now();
  let met = options.serverKnown ?? false;
  for (let failures = 0; ;) {
    try {
      const waitMs = Math.max(0, Math.min(WAIT_CALL_MS, deadlineMs - performance.now()));
      const job = await client.waitJob(id, Math.ceil(waitMs), options.signal);
      if (hasEnded(job) || performance.now() >= deadlineMs) return job;
      [met, failures, contactAtMs] = [true, 0, performance.now()];
    } catch (error) {
      const away = performance.now() - contactAtMs > AWAY_LIMIT_MS;
      if (options.signal?.aborted || !met || away || !mayPass(error)) throw error;
      await delay(retryPauseMs(failures++), undefined, { signal: options.signal });
    }
  }
}

export interface JobEnd {
  job: JobView;
  exitCode: number;
  /** The attempt that speaks for a failed job. */
  cause: AttemptView | undefined;
}

export async function judgeEnd(client: DroverClient, job: JobView): Promise<JobEnd> {
  const attempts: AttemptView[] = [];
  if (job.state === 'FAILED') {
    const pages = eachItem((page) => client.listAttempts(job.id, page), ATTEMPTS_PAGE);
    for await (const attempt of pages) {
      attempts.push(attempt);
      if (attempts.length >= ATTEMPTS_LIMIT) break;
    }
  }
  return { job, exitCode: jobExitCode(job, attempts), cause: decisiveAttempt(attempts) };
}

/** A single task that exited by itself has said it all; anything else needs a word. */
export async function explainEnd(context: CommandContext, end: JobEnd): Promise<void> {
  const { job, cause } = end;
  if (job.state === 'SUCCEEDED') return;
  const { total, succeeded } = job.tasks;
  if (total === 1 && job.state === 'FAILED' && cause?.cause === 'exited') return;
  const share = total > 1 ? ` (${total - succeeded} of ${total} tasks)` : '';
  const why = job.reason || cause?.message || cause?.cause || 'no reason was given';
  const text = `job ${job.id} ${job.state}${share}: ${why}; more: drover job ${job.id}`;
  await context.notice(printable(text));
}
