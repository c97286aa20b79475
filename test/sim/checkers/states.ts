/**
 * I4: states change by moves of the tables only, an end is for ever, and a task pays with its tries
 * only for what its own attempts did.
 */
import { ATTEMPT_MOVES } from '../../../src/core/lifecycle/attempt.ts';
import { INSTANCE_MOVES } from '../../../src/core/lifecycle/instance.ts';
import type { Moves } from '../../../src/core/lifecycle/moves.ts';
import { TASK_MOVES } from '../../../src/core/lifecycle/task.ts';
import { ATTEMPT_STATES } from '../../../src/model/attempt.ts';
import { INSTANCE_STATES } from '../../../src/model/instance.ts';
import { TASK_STATES } from '../../../src/model/task.ts';
import { attemptKey, taskKey, type Commit } from './mirror.ts';
import { must } from './violation.ts';

const TASKS = reachable(TASK_STATES, TASK_MOVES);
const ATTEMPTS = reachable(ATTEMPT_STATES, ATTEMPT_MOVES);
const INSTANCES = reachable(INSTANCE_STATES, INSTANCE_MOVES);

/** A task has no row until something happens to it. */
const UNTOUCHED = { state: 'PENDING', version: 0 };

/** Ends that are the user's own doing, where nobody asked for them. */
const OWN_FAULTS = new Set<string | null>([
  'exited',
  'signalled',
  'oom',
  'timed-out',
  'never-started',
]);

export class StateChecker {
  /** By task: attempts that ended by a fault of its own. */
  readonly #faults = new Map<string, number>();

  committed({ jobs, tasks, attempts, instances }: Commit): void {
    for (const { before, row } of instances) {
      const from = before?.state ?? 'INTENDED';
      const legal = INSTANCES.has(`${from} ${row.state}`);
      must(legal, 'I4', () => `instance ${row.id} went from ${from} to ${row.state}`);
    }
    for (const { before, row } of jobs) {
      if (!before) continue;
      const back = before.ended_at_ms !== null && row.ended_at_ms !== before.ended_at_ms;
      must(!back, 'I4', () => `job ${row.id} came back to life`);
      const uncancelled =
        before.cancel_requested_at_ms !== null && row.cancel_requested_at_ms === null;
      must(!uncancelled, 'I4', () => `the cancel of job ${row.id} was undone`);
    }
    for (const { before, row } of attempts) {
      const stopped = row.stop_cause !== null && row.stop_cause !== 'timed-out';
      // What was told to stop may still end by itself first.
      const own = OWN_FAULTS.has(row.cause) && !(stopped && row.cause === 'never-started');
      if (row.state !== 'ENDED' || before?.state === 'ENDED' || !own) continue;
      this.#faults.set(taskKey(row), (this.#faults.get(taskKey(row)) ?? 0) + 1);
    }
    for (const { row } of tasks) {
      const faults = this.#faults.get(taskKey(row)) ?? 0;
      const fair = row.failures <= faults;
      must(fair, 'I4', () => `task ${taskKey(row)} has ${row.failures} failures, had ${faults}`);
    }
    for (const { before = UNTOUCHED, row } of tasks) {
      must(row.version > before.version, 'I4', () => `task ${taskKey(row)} went back in version`);
      const legal = TASKS.has(`${before.state} ${row.state}`);
      must(legal, 'I4', () => `task ${taskKey(row)} went from ${before.state} to ${row.state}`);
    }
    for (const { before, row } of attempts) {
      if (!before) continue;
      const legal = ATTEMPTS.has(`${before.state} ${row.state}`);
      must(legal, 'I4', () => `attempt ${attemptKey(row)}: ${before.state} to ${row.state}`);
      const ended = before.state === 'ENDED' && row.version !== before.version;
      must(!ended, 'I4', () => `attempt ${attemptKey(row)} changed after its end`);
    }
  }
}

/** One batch may hold several moves, so what counts is whether a state can be reached at all. */
function reachable(states: readonly string[], moves: Moves<string>): Set<string> {
  const pairs = new Set<string>();
  for (const from of states) {
    const seen = new Set([from]);
    for (const state of seen) {
      for (const move of Object.values(moves)) if (move.from.includes(state)) seen.add(move.to);
    }
    for (const to of seen) pairs.add(`${from} ${to}`);
  }
  return pairs;
}
