/** From how an attempt ended to what happens to its task: one pure decision, with its reason. */
import type { EndCause } from '../model/attempt.ts';

export interface Ending {
  cause: EndCause;
  exitCode: number | null;
  signal: string | null;
  message: string;
  /** The machine, not the user's command, was at fault. */
  hostFault: boolean;
  /** What it left could not be kept, so that it has not succeeded whatever its exit code. */
  unstored?: boolean | undefined;
  /** It had failed before it was stopped, and was kept only for a look. */
  held?: boolean | undefined;
}

export interface Budgets {
  failures: number;
  interruptions: number;
  retries: number;
  maxInterruptions: number;
  /** The command ends with it to be queued again; 0: with none. */
  requeueExitCode: number;
  /** The user asked for the end. */
  cancelled: boolean;
}

/** `charge` says which budget pays for the try that just ended. */
export type Decision =
  | { kind: 'succeed'; reason: string }
  | { kind: 'cancel'; reason: string }
  | { kind: 'fail'; charge: 'failure' | 'interruption'; reason: string }
  | { kind: 'retry'; charge: 'failure' | 'interruption' | 'none'; delayMs: number; reason: string };

const FIRST_DELAY_MS = 1000;
export const LONGEST_DELAY_MS = 60_000;

export function decideRetry(ending: Ending, budgets: Budgets): Decision {
  const what = describeEnding(ending);
  if (ending.cause === 'exited' && ending.exitCode === 0 && !ending.unstored) {
    return { kind: 'succeed', reason: what };
  }
  // One that was let go keeps its own end; it is not tried again either.
  if (budgets.cancelled && ending.held) return { kind: 'fail', charge: 'failure', reason: what };
  if (budgets.cancelled) return { kind: 'cancel', reason: 'cancelled' };
  // Stopped by a rule and not by its user: what it did not use it would not use again.
  if (ending.cause === 'cancelled') {
    return { kind: 'fail', charge: 'failure', reason: ending.message || what };
  }
  // A gang member stopped for another's failure: the failing member pays.
  if (ending.cause === 'gang-failed') {
    return { kind: 'retry', charge: 'none', delayMs: 0, reason: what };
  }
  if (isInterruption(ending) || asksAgain(ending, budgets)) {
    const used = budgets.interruptions + 1;
    if (used > budgets.maxInterruptions) {
      const limit = budgets.maxInterruptions;
      const reason = `${what}; it was interrupted ${used} times, the limit is ${limit}`;
      return { kind: 'fail', charge: 'interruption', reason };
    }
    // The first interruption is nobody's fault and retried at once; a streak of them backs off.
    const delayMs = used === 1 ? 0 : backOff(used - 1);
    return { kind: 'retry', charge: 'interruption', delayMs, reason: what };
  }
  const used = budgets.failures + 1;
  if (used > budgets.retries) {
    const spent =
      budgets.retries === 1 ? 'its retry is used' : `all ${budgets.retries} retries are used`;
    const reason = budgets.retries > 0 ? `${what}; ${spent}` : what;
    return { kind: 'fail', charge: 'failure', reason };
  }
  const reason = `${what}; retry ${used} of ${budgets.retries}`;
  return { kind: 'retry', charge: 'failure', delayMs: backOff(used), reason };
}

/** Interruptions are not the user's doing and have their own budget. */
function isInterruption(ending: Ending): boolean {
  if (ending.cause === 'lost' || ending.cause === 'preempted') return true;
  return ending.hostFault && ['never-started', 'exited', 'signalled'].includes(ending.cause);
}

function asksAgain({ cause, exitCode }: Ending, { requeueExitCode }: Budgets): boolean {
  return cause === 'exited' && exitCode !== 0 && exitCode === requeueExitCode;
}

function backOff(count: number): number {
  return Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 2 ** (count - 1));
}

function describeEnding(ending: Ending): string {
  const words: Record<EndCause, string> = {
    exited: `exit code ${ending.exitCode ?? 'unknown'}`,
    signalled: `killed by ${ending.signal ?? 'a signal'}`,
    oom: 'out of memory',
    'timed-out': 'ran into its time limit',
    preempted: 'preempted',
    lost: 'its machine was lost',
    'gang-failed': 'another member of the gang failed',
    cancelled: 'cancelled',
    'never-started': 'did not start',
  };
  return ending.message ? `${words[ending.cause]}: ${ending.message}` : words[ending.cause];
}
