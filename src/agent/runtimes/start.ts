/**
 * How an attempt starts: at once, or when what it needs is there and a gang's members have met; or
 * why it did not.
 */
import { mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import type { AttemptOrder } from '../../protocol/agent.ts';
import { end } from './advance.ts';
import type { Attempt, Machine } from './attempt.ts';
import { Unprepared, type Around } from './around.ts';
import { writeLease } from './folder.ts';
import { preflight } from './preflight.ts';
import type { Shims } from './shim.ts';
import { findFault, prepareLaunch, type Refusal, type Task } from './task.ts';

export interface Starter {
  machine: Machine;
  around: Around | undefined;
  shims: Shims;
  setsid: string;
  pidsLimit: number;
  look: (uid: string) => void;
  /** Told when an attempt that did not start at once has started, or never will. */
  settled: () => void;
  /** Told when there is something new to say of one that is under way. */
  changed: () => void;
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
    if (starter.around?.needsPreparation(order)) {
      void startLater(starter, attempt, order, task, true);
      return;
    }
    const fault = findFault(order, task);
    if (fault) endUnstarted(machine, attempt, fault, false);
    else if (isMember(order)) void startLater(starter, attempt, order, task, false);
    else launch(starter, attempt, order, task);
  } catch (error) {
    endUnstarted(machine, attempt, failedStart(error), true);
  }
}

const isMember = (order: AttemptOrder): boolean => (order.gang?.size ?? 1) > 1;

const failedStart = (error: unknown): Refusal => ({
  message: `the machine could not start it: ${(error as Error).message}`,
  exitCode: null,
});

const refusal = (message: string): Refusal => ({ message, exitCode: null });

function launch(
  starter: Starter,
  attempt: Attempt,
  order: AttemptOrder,
  task: Task,
  stage?: string,
): void {
  const { machine, shims, setsid, pidsLimit: pids } = starter;
  const shim = shims.take();
  try {
    // Before the process exists, so that a crash right after the start is covered.
    writeLease(machine.folder, order.uid, attempt.writtenLeaseBootMs);
    prepareLaunch(machine.cgroups, shim, order, task, { pids, setsid });
    if (stage !== undefined) {
      for (const name of readdirSync(stage))
        renameSync(join(stage, name), join(shim.directory, name));
      const prepared = JSON.stringify({ task, facts: attempt.facts });
      writeFileSync(join(shim.directory, 'prepared.json'), prepared, { mode: 0o600 });
    }
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
async function startLater(
  starter: Starter,
  attempt: Attempt,
  order: AttemptOrder,
  task: Task,
  prepares: boolean,
): Promise<void> {
  const { machine } = starter;
  const starting = new AbortController();
  attempt.starting = starting;
  const stage = join(machine.folder.stages, order.uid);
  try {
    // Left empty: it tells the next agent, should this one die, that nothing was started.
    mkdirSync(attempt.directory, { mode: 0o700 });
    if (prepares) await prepare(starter, attempt, { order, task, stage, signal: starting.signal });
    const fault =
      prepares && !starting.signal.aborted
        ? findFault(order, staged(task, attempt.directory, stage))
        : undefined;
    const problem =
      !fault && isMember(order) && !starting.signal.aborted
        ? await preflight(order.gang!, machine.clock, starting.signal)
        : null;
    if (starting.signal.aborted) return;
    attempt.starting = undefined;
    const late = machine.clock.bootMs() >= attempt.writtenLeaseBootMs;
    const message = problem ?? (late ? 'its lease ran out before it could start' : null);
    if (fault) endUnstarted(machine, attempt, fault, false);
    else if (message !== null) endUnstarted(machine, attempt, refusal(message), true);
    else launch(starter, attempt, order, task, prepares ? stage : undefined);
  } catch (error) {
    if (starting.signal.aborted) return;
    attempt.starting = undefined;
    if (error instanceof Unprepared) {
      endUnstarted(machine, attempt, refusal(error.message), error.hostFault);
    } else endUnstarted(machine, attempt, failedStart(error), true);
  } finally {
    if (prepares) rmSync(stage, { recursive: true, force: true });
  }
  starter.settled();
}

/** What is below the attempt's directory at its start lies in the stage until then. */
function staged({ command, env, workdir }: Task, home: string, stage: string): Task {
  const place = (path: string): string =>
    path === home || path.startsWith(`${home}/`) ? stage + path.slice(home.length) : path;
  const places = (env['PATH'] ?? '').split(delimiter).map(place);
  const [program = '', ...words] = command;
  return {
    command: [place(program), ...words],
    env: { ...env, PATH: places.join(delimiter) },
    workdir: place(workdir),
  };
}

async function prepare(
  { around, changed }: Starter,
  attempt: Attempt,
  one: { order: AttemptOrder; task: Task; stage: string; signal: AbortSignal },
): Promise<void> {
  mkdirSync(join(one.stage, 'work'), { recursive: true, mode: 0o700 });
  attempt.facts = {};
  await around?.prepare({
    ...one,
    home: attempt.directory,
    facts: attempt.facts,
    secrets: {},
    say(progress) {
      if (one.signal.aborted || attempt.observation.progress === progress) return;
      attempt.observation = { ...attempt.observation, progress };
      changed();
    },
  });
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
