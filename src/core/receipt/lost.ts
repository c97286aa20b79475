/** Time that led to nothing, and whose fault it was. */
import type { Attempt, EndCause } from '../../model/attempt.ts';
import type { Fault } from '../../model/receipt.ts';
import type { ReceiptFacts } from '../receipt.ts';

export interface Loss {
  fault: Fault;
  attempts: number;
  ms: number;
  /** Of the newest of them, for a person. */
  why: string;
}

const FAULT_OF: Record<EndCause, Fault> = {
  exited: 'command',
  signalled: 'command',
  oom: 'memory',
  'timed-out': 'time-limit',
  preempted: 'preemption',
  lost: 'host',
  'gang-failed': 'gang',
  cancelled: 'cancel',
  'never-started': 'start',
};

/** What was saved in a checkpoint is not lost: the next attempt goes on from there. */
export function lostTime({ attempts, savedAtMs }: ReceiptFacts): Loss[] {
  const losses = new Map<Fault, Loss>();
  for (const attempt of attempts) {
    const { cause, endedAtMs } = attempt;
    if (cause === null || endedAtMs === null || succeeded(attempt)) continue;
    const fault = FAULT_OF[cause];
    const loss = losses.get(fault) ?? { fault, attempts: 0, ms: 0, why: '' };
    losses.set(fault, loss);
    const sinceMs = savedAtMs.get(attempt.uid) ?? attempt.startedAtMs ?? attempt.assignedAtMs;
    loss.attempts++;
    loss.ms += Math.max(0, endedAtMs - sinceMs);
    loss.why = whyOf(attempt);
  }
  return [...losses.values()].toSorted((a, b) => b.ms - a.ms);
}

export function succeeded({ cause, exitCode }: Attempt): boolean {
  return cause === 'exited' && exitCode === 0;
}

function whyOf({ cause, exitCode, signal, message }: Attempt): string {
  if (cause === 'exited') return message || `exit code ${exitCode ?? 'unknown'}`;
  if (cause === 'signalled') return message || `killed by ${signal ?? 'a signal'}`;
  return message;
}
