/** The exit codes of the command line, and how a job's end becomes one. docs/cli.md lists them. */
import { constants } from 'node:os';
import { indexOfTask, type TaskId } from '../model/ids.ts';
import type { AttemptView, JobView } from '../protocol/jobs.ts';

export const EXIT = {
  ok: 0,
  /** The server refused, or something failed on the way. */
  failed: 1,
  /** The command line itself is wrong. */
  usage: 2,
  /** run, wait: no worker took the job within --start-within. */
  unschedulable: 122,
  /** run, wait: machines were lost or taken away more often than the job allows. */
  interrupted: 123,
  /** run, wait: the time limit ended it, as timeout(1) says. */
  timedOut: 124,
  /** run, wait, exec: Drover itself failed, so that 1 and 2 stay the job's own. */
  drover: 125,
  /** run, wait: the command could not be started. */
  neverStarted: 126,
  /** run: Ctrl-C; run, wait: the job was cancelled. */
  interrupt: 130,
  /** Killed for memory, as a shell would report SIGKILL. */
  outOfMemory: 137,
  /** The reader of our output is gone, as a shell would report SIGPIPE. */
  brokenPipe: 141,
} as const;

const SIGNAL_BASE = 128;

/** `attempts` matter only for a job that FAILED. */
export function jobExitCode(job: JobView, attempts: AttemptView[]): number {
  switch (job.state) {
    case 'SUCCEEDED':
      return EXIT.ok;
    case 'CANCELLED':
      return EXIT.interrupt;
    case 'UNSCHEDULABLE':
      return EXIT.unschedulable;
    default:
      return failureCode(decisiveAttempt(attempts)) ?? byteCode(job.exitCode) ?? EXIT.failed;
  }
}

/** Of each task the last attempt counts; the first task that failed by itself speaks for all. */
export function decisiveAttempt(attempts: AttemptView[]): AttemptView | undefined {
  const last = new Map<string, AttemptView>();
  for (const attempt of attempts) {
    const known = last.get(attempt.task);
    if (!known || attempt.n > known.n) last.set(attempt.task, attempt);
  }
  const failed = [...last.values()].filter((attempt) => failureCode(attempt) !== undefined);
  // A member ended by another's failure only echoes it.
  const own = failed.filter((attempt) => attempt.cause !== 'gang-failed');
  return (own.length > 0 ? own : failed).toSorted((a, b) => taskIndex(a) - taskIndex(b))[0];
}

function taskIndex({ task }: AttemptView): number {
  return indexOfTask(task as TaskId);
}

function failureCode(attempt: AttemptView | undefined): number | undefined {
  switch (attempt?.cause) {
    case 'exited':
      return byteCode(attempt.exitCode);
    case 'signalled':
      return signalCode(attempt.signal) ?? byteCode(attempt.exitCode) ?? EXIT.failed;
    case 'oom':
      return EXIT.outOfMemory;
    case 'timed-out':
      return EXIT.timedOut;
    case 'never-started':
      return EXIT.neverStarted;
    case 'lost':
    case 'preempted':
    case 'gang-failed':
      return EXIT.interrupted;
    case 'cancelled':
      return EXIT.interrupt;
    default:
      return undefined;
  }
}

/** A process can say 1 to 255; 0 or nothing is no failure. */
function byteCode(code: number | null): number | undefined {
  if (code === null || code === 0) return undefined;
  return code & 0xff || EXIT.failed;
}

function signalCode(signal: string | null): number | undefined {
  if (!signal) return undefined;
  const name = signal.startsWith('SIG') ? signal : `SIG${signal}`;
  const number = constants.signals[name as NodeJS.Signals] as number | undefined;
  return number === undefined ? undefined : SIGNAL_BASE + number;
}
