/** What to do next, from how a job ended: commands and flags a person can type. */
import { memorySize, shortDuration, showMoney } from '../../lib/show.ts';
import type { Attempt } from '../../model/attempt.ts';
import type { JobSpec } from '../../model/job.ts';
import type { Receipt } from '../receipt.ts';
import { succeeded } from './lost.ts';

type Known = Omit<Receipt, 'next' | 'line' | 'sentences'>;

const DEFAULT_MEMORY_BYTES = 4 * 2 ** 30;
/** Shells give these for a command that is not there or may not be run. */
const NOT_FOUND = 127;
const NOT_EXECUTABLE = 126;
/** What a shell gives when its child was killed by SIGKILL. */
const KILLED = 137;

export function advise(known: Known, spec: JobSpec, attempts: readonly Attempt[]): string[] {
  const next: string[] = [];
  if (known.state === 'FAILED') next.push(...afterFailure(known, spec, attempts));
  if (known.state === 'UNSCHEDULABLE') {
    next.push('ask for less or wait longer (--start-within); `drover workers` shows what there is');
  }
  const costly = spec.maxCostMicros > 0 && known.costMicros >= spec.maxCostMicros;
  if (known.state === 'CANCELLED' && costly) {
    next.push(
      `its cost limit ended it; give more with --max-cost (${showMoney(spec.maxCostMicros)} now)`,
    );
  }
  if (attempts.some(({ result }) => result !== null)) {
    next.push(`fetch what it left: drover result ${known.job}`);
  }
  if (!spec.checkpoint && interruptedMs(known) > 0) {
    next.push('keep its work over interruptions with --checkpoint DIR');
  }
  return next;
}

function interruptedMs({ lost }: Known): number {
  const taken = lost.filter(({ fault }) => fault === 'host' || fault === 'preemption');
  return taken.reduce((sum, { ms }) => sum + ms, 0);
}

function afterFailure(known: Known, spec: JobSpec, attempts: readonly Attempt[]): string[] {
  const last = attempts.findLast((attempt) => attempt.cause !== null && !succeeded(attempt));
  switch (last?.cause) {
    case 'oom':
      return [moreMemory(known, spec)];
    case 'timed-out':
      return [moreTime(spec)];
    case 'lost':
    case 'preempted':
      return [
        spec.placement.interruptible
          ? 'it was interrupted too often: run it without --spot'
          : `it was interrupted too often: see what happened with drover job ${known.job}`,
      ];
    case 'never-started':
      return [`it could not start: ${last.message || 'no reason was given'}`];
    case 'exited':
    case 'signalled':
      return afterOwnEnd(known, spec, last);
    default:
      return [`see what happened: drover job ${known.job}`];
  }
}

function afterOwnEnd(known: Known, spec: JobSpec, { exitCode, signal }: Attempt): string[] {
  const [command = ''] = spec.command;
  const logs = `read the end of its log: drover logs ${known.job} --tail 50`;
  if (exitCode === NOT_FOUND) {
    return [`exit code 127 says command not found: is ${command} installed where it ran?`, logs];
  }
  if (exitCode === NOT_EXECUTABLE) {
    return [`exit code 126 says it may not be run: chmod +x, or name its interpreter`, logs];
  }
  if (exitCode === KILLED || signal === 'SIGKILL') {
    return [`something killed it, often for want of memory: ${moreMemory(known, spec)}`, logs];
  }
  const look = spec.rules?.keepOnFailureMs
    ? []
    : ['look inside the next time it fails with --keep-on-failure 30m'];
  return [logs, ...look];
}

function moreMemory({ peakMemoryBytes }: Known, spec: JobSpec): string {
  const { memoryBytes } = spec.resources;
  const twice = Math.max(2 * memoryBytes, peakMemoryBytes ?? 0) || DEFAULT_MEMORY_BYTES;
  const now = memoryBytes > 0 ? ` (${memorySize(memoryBytes)} now)` : '';
  return `ask for more memory: --mem ${memorySize(twice)}${now}`;
}

function moreTime(spec: JobSpec): string {
  const now = shortDuration(spec.timeLimitMs);
  const more = `allow it more time: --time ${shortDuration(2 * spec.timeLimitMs)} (${now} now)`;
  return spec.checkpoint ? more : `${more}, or let it go on from a --checkpoint DIR`;
}
