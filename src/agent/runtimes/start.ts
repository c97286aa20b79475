/** How an attempt starts: at once, or for a gang's member when all have met; or why it did not. */
import { mkdirSync, renameSync } from 'node:fs';
import type { AttemptOrder } from '../../protocol/agent.ts';
import { end, type Attempt, type Machine } from './advance.ts';
import { writeLease } from './folder.ts';
import { preflight } from './preflight.ts';
import type { Shims } from './shim.ts';
import { findFault, prepareLaunch, type Refusal, type Task } from './task.ts';

export interface Starter {
  machine: Machine;
  shims: Shims;
  setsid: string;
  pidsLimit: number;
  look: (uid: string) => void;
  /** Told when an attempt that did not start at once has started, or never will. */
  settled: () => void;
}

/** `attempt.writtenLeaseBootMs` says until when it may run; a renewal before the start counts. */
export function startAttempt(
  starter: Starter,
  attempt: Attempt,
  order: AttemptOrder,
  task: Task,
): void {
  const { machine } = starter;
  try {
    const fault = findFault(order, task);
    if (fault) endUnstarted(machine, attempt, fault, false);
    else if ((order.gang?.size ?? 1) > 1) void meet(starter, attempt, order, task);
    else launch(starter, attempt, order, task);
  } catch (error) {
    endUnstarted(machine, attempt, failedStart(error), true);
  }
}

const failedStart = (error: unknown): Refusal => ({
  message: `the machine could not start it: ${(error as Error).message}`,
  exitCode: null,
});

function launch(starter: Starter, attempt: Attempt, order: AttemptOrder, task: Task): void {
  const { machine, shims, setsid, pidsLimit: pids } = starter;
  const shim = shims.take();
  try {
    // Before the process exists, so that a crash right after the start is covered.
    writeLease(machine.folder, order.uid, attempt.writtenLeaseBootMs);
    prepareLaunch(machine.cgroups, shim, order, task, { pids, setsid });
    renameSync(shim.directory, attempt.directory);
  } catch (error) {
    shims.discard(shim);
    throw error;
  }
  attempt.cgroups = shim.cgroups;
  attempt.child = shim.child;
  shim.child.once('exit', () => starter.look(attempt.uid));
  shim.go(order.uid);
}

/** Stopped by an abort, whose author says what becomes of the attempt. */
async function meet(
  starter: Starter,
  attempt: Attempt,
  order: AttemptOrder,
  task: Task,
): Promise<void> {
  const { machine } = starter;
  const meeting = new AbortController();
  attempt.meeting = meeting;
  try {
    // Left empty: it tells the next agent, should this one die, that nothing was started.
    mkdirSync(attempt.directory, { mode: 0o700 });
    const problem = await preflight(order.gang!, machine.clock, meeting.signal);
    if (meeting.signal.aborted) return;
    attempt.meeting = undefined;
    const late = machine.clock.bootMs() >= attempt.writtenLeaseBootMs;
    const message = problem ?? (late ? 'its lease ran out before the gang had met' : null);
    if (message === null) launch(starter, attempt, order, task);
    else endUnstarted(machine, attempt, { message, exitCode: null }, true);
  } catch (error) {
    attempt.meeting = undefined;
    endUnstarted(machine, attempt, failedStart(error), true);
  }
  starter.settled();
}

export function endUnstarted(
  machine: Machine,
  attempt: Attempt,
  { message, exitCode }: Refusal,
  hostFault: boolean,
): void {
  try {
    mkdirSync(attempt.directory, { recursive: true, mode: 0o700 });
  } catch (error) {
    machine.log.error({ attempt: attempt.uid, error }, 'cannot keep a failed start');
  }
  const signal = null;
  end(machine, attempt, { cause: 'never-started', exitCode, signal, message, hostFault });
}
