/** The tables of moves, spelled out: what is not here must throw. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ATTEMPT_STATES } from '../../model/attempt.ts';
import { TASK_STATES, type TaskState } from '../../model/task.ts';
import { WORKER_STATES } from '../../model/worker.ts';
import { ATTEMPT_MOVES, moveAttempt } from './attempt.ts';
import { countTasks, jobState, noTasks } from './job.ts';
import { moveTask, TASK_MOVES, taskEnded } from './task.ts';
import { moveWorker, WORKER_MOVES } from './worker.ts';

/** Every move from every state: where it leads, or that it throws. */
function tableOf<State extends string, Name extends string>(
  states: readonly State[],
  names: readonly Name[],
  move: (name: Name, from: State) => State,
): string[] {
  const legal: string[] = [];
  for (const name of names) {
    for (const from of states) {
      try {
        legal.push(`${from} ${name} ${move(name, from)}`);
      } catch (error) {
        expect((error as Error).message).toBe(`illegal move ${name} from ${from}`);
      }
    }
  }
  return legal;
}

const names = <Table extends object>(table: Table) => Object.keys(table) as (keyof Table)[];

describe('moves', () => {
  test('of a task', () => {
    expect(tableOf(TASK_STATES, names(TASK_MOVES), moveTask)).toEqual([
      'PENDING assign ASSIGNED',
      'ASSIGNED run RUNNING',
      'ASSIGNED requeue PENDING',
      'RUNNING requeue PENDING',
      'ASSIGNED succeed SUCCEEDED',
      'RUNNING succeed SUCCEEDED',
      'PENDING fail FAILED',
      'ASSIGNED fail FAILED',
      'RUNNING fail FAILED',
      'PENDING cancel CANCELLED',
      'ASSIGNED cancel CANCELLED',
      'RUNNING cancel CANCELLED',
      'PENDING giveUp UNSCHEDULABLE',
    ]);
  });

  test('of an attempt', () => {
    expect(tableOf(ATTEMPT_STATES, names(ATTEMPT_MOVES), moveAttempt)).toEqual([
      'ASSIGNED start STARTING',
      'ASSIGNED run RUNNING',
      'STARTING run RUNNING',
      'ASSIGNED stop STOPPING',
      'STARTING stop STOPPING',
      'RUNNING stop STOPPING',
      'ASSIGNED end ENDED',
      'STARTING end ENDED',
      'RUNNING end ENDED',
      'STOPPING end ENDED',
    ]);
  });

  test('of a worker', () => {
    expect(tableOf(WORKER_STATES, names(WORKER_MOVES), moveWorker)).toEqual([
      'ONLINE suspect SUSPECT',
      'SUSPECT recover ONLINE',
      'ONLINE lose LOST',
      'SUSPECT lose LOST',
    ]);
  });

  test('a name that is in no table throws too', () => {
    expect(() => moveTask('explode' as never, 'PENDING')).toThrow('illegal move explode');
  });

  test('what has ended stays as it is', () => {
    const ended = TASK_STATES.filter(taskEnded);
    expect(ended).toEqual(['SUCCEEDED', 'FAILED', 'CANCELLED', 'UNSCHEDULABLE']);
    for (const state of ended) {
      for (const name of names(TASK_MOVES)) expect(() => moveTask(name, state)).toThrow();
    }
    for (const name of names(ATTEMPT_MOVES)) expect(() => moveAttempt(name, 'ENDED')).toThrow();
    for (const name of names(WORKER_MOVES)) expect(() => moveWorker(name, 'LOST')).toThrow();
  });
});

describe("a job's state", () => {
  test.each<[TaskState[], string]>([
    [['PENDING'], 'PENDING'],
    [['PENDING', 'ASSIGNED'], 'PENDING'],
    [['ASSIGNED', 'RUNNING'], 'RUNNING'],
    [['PENDING', 'SUCCEEDED'], 'RUNNING'],
    [['PENDING', 'FAILED'], 'RUNNING'],
    [['SUCCEEDED', 'SUCCEEDED'], 'SUCCEEDED'],
    [['SUCCEEDED', 'UNSCHEDULABLE'], 'UNSCHEDULABLE'],
    [['UNSCHEDULABLE', 'CANCELLED'], 'CANCELLED'],
    [['CANCELLED', 'FAILED', 'SUCCEEDED'], 'FAILED'],
  ])('of tasks %j is %s', (states, expected) => {
    expect(jobState(countTasks(states.map((state) => ({ state }) as never)))).toBe(expected);
  });

  test('has ended exactly when all its tasks have', () => {
    const states = fc.array(fc.constantFrom(...TASK_STATES), { minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(states, (tasks) => {
        const counts = noTasks();
        for (const state of tasks) counts[state]++;
        const state = jobState(counts);
        expect(!['PENDING', 'RUNNING'].includes(state)).toBe(tasks.every(taskEnded));
        if (state === 'SUCCEEDED') expect(new Set(tasks)).toEqual(new Set(['SUCCEEDED']));
        if (state === 'PENDING') {
          expect(tasks.every((one) => one === 'PENDING' || one === 'ASSIGNED')).toBe(true);
        }
        // The order of tasks says nothing.
        expect(
          jobState(countTasks(tasks.toReversed().map((one) => ({ state: one }) as never))),
        ).toBe(state);
      }),
    );
  });
});
