/** The order of what waits: by example, and against a model that sorts anew every time. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { taskId, type JobId } from '../../model/ids.ts';
import { LONGEST_DELAY_MS } from '../retry.ts';
import { PendingQueue } from './queue.ts';
import type { PendingTask } from './view.ts';

function pending(job: string, index: number, more: Partial<PendingTask> = {}): PendingTask {
  return {
    task: taskId(job as JobId, index),
    job: job as JobId,
    index,
    version: 1,
    classKey: 'k',
    round: 0,
    attempts: 0,
    notBeforeMs: 0,
    sinceMs: 0,
    ...more,
  };
}

/** Takes everything out, in order. */
function drain(queue: PendingQueue): string[] {
  const order: string[] = [];
  for (let members = queue.peek(); members; members = queue.peek()) {
    order.push(members.map(({ task }) => task).join('+'));
    queue.skip();
  }
  return order;
}

describe('single tasks', () => {
  test('the oldest job first, then by index', () => {
    const queue = new PendingQueue(1);
    for (const [job, index] of [
      ['j2', 0],
      ['j1', 10],
      ['j1', 9],
      ['j3', 0],
      ['j1', 2],
    ] as const) {
      queue.add(pending(job, index));
    }
    expect(queue.size).toBe(5);
    expect(drain(queue)).toEqual(['j1.2', 'j1.9', 'j1.10', 'j2.0', 'j3.0']);
  });

  test('what was removed is passed over, wherever it stands', () => {
    const queue = new PendingQueue(1);
    const tasks = [0, 1, 2, 3].map((index) => pending('j', index));
    for (const task of tasks) queue.add(task);
    queue.remove(tasks[0]!);
    queue.remove(tasks[2]!);
    expect(queue.size).toBe(2);
    expect(drain(queue)).toEqual(['j.1', 'j.3']);
    expect(queue.peek()).toBeNull();
    queue.skip();
  });

  test('what was skipped comes back when it is added again', () => {
    const queue = new PendingQueue(1);
    const task = pending('j', 0);
    queue.add(task);
    queue.skip();
    expect(queue.peek()).toBeNull();
    queue.remove(task);
    queue.add({ ...task, version: 2 });
    expect(queue.peek()?.[0]?.version).toBe(2);
    expect(queue.size).toBe(1);
  });
});

describe('a task that waits for a time', () => {
  test('joins the order when it has come', () => {
    const queue = new PendingQueue(1);
    queue.add(pending('j1', 0, { notBeforeMs: 5000 }));
    queue.add(pending('j2', 0, { notBeforeMs: 3000 }));
    expect(queue.size).toBe(2);
    expect(queue.peek()).toBeNull();
    expect(queue.mature(1000)).toBe(3000);
    expect(queue.peek()).toBeNull();
    expect(queue.mature(3000)).toBe(5000);
    expect(queue.peek()?.[0]?.job).toBe('j2');
    expect(queue.mature(9000)).toBeNull();
    expect(drain(queue)).toEqual(['j1.0', 'j2.0']);
  });

  test('does not wait longer because the wall clock went back', () => {
    const queue = new PendingQueue(1);
    queue.add(pending('j', 0, { notBeforeMs: 10_000_000 }));
    expect(queue.mature(10_000_000 - LONGEST_DELAY_MS)).toBe(10_000_000);
    expect(queue.mature(10_000_000 - LONGEST_DELAY_MS - 1)).toBeNull();
    expect(queue.peek()).toHaveLength(1);
  });

  test('can be removed meanwhile', () => {
    const queue = new PendingQueue(1);
    const task = pending('j', 0, { notBeforeMs: 5000 });
    queue.add(task);
    queue.remove(task);
    expect(queue.mature(9000)).toBeNull();
    expect(queue.peek()).toBeNull();
    expect(queue.size).toBe(0);
  });
});

describe('a gang', () => {
  test('is one entry when all its members wait', () => {
    const queue = new PendingQueue(3);
    queue.add(pending('j', 2));
    queue.add(pending('j', 0));
    expect(queue.peek()).toBeNull();
    queue.add(pending('j', 1));
    expect(drain(queue)).toEqual(['j.0+j.1+j.2']);
  });

  test('needs all of them in the same round', () => {
    const queue = new PendingQueue(2);
    const late = pending('j', 0, { round: 1 });
    queue.add(late);
    queue.add(pending('j', 1, { round: 2 }));
    expect(queue.peek()).toBeNull();
    queue.remove(late);
    queue.add({ ...late, round: 2 });
    expect(queue.peek()?.map(({ round }) => round)).toEqual([2, 2]);
  });

  test('is not ready while one member backs off', () => {
    const queue = new PendingQueue(2);
    queue.add(pending('j', 0));
    queue.add(pending('j', 1, { notBeforeMs: 500 }));
    expect(queue.mature(499)).toBe(500);
    expect(queue.peek()).toBeNull();
    queue.mature(500);
    expect(queue.peek()).toHaveLength(2);
  });

  test('falls apart when a member leaves, and leaves other gangs alone', () => {
    const queue = new PendingQueue(2);
    const gone = pending('j1', 1);
    for (const task of [pending('j1', 0), gone, pending('j2', 0), pending('j2', 1)]) {
      queue.add(task);
    }
    queue.remove(gone);
    expect(drain(queue)).toEqual(['j2.0+j2.1']);
    expect(queue.size).toBe(3);
  });
});

/** What the queue should be, without a heap or lazy removal. */
class Model {
  readonly gangSize: number;
  later: PendingTask[] = [];
  ready: PendingTask[] = [];
  skipped = new Set<string>();

  constructor(gangSize: number) {
    this.gangSize = gangSize;
  }

  key(task: PendingTask): string {
    return this.gangSize > 1 ? task.job : task.task;
  }

  makeReady(task: PendingTask): void {
    this.ready.push(task);
    this.skipped.delete(this.key(task));
  }

  entries(): PendingTask[][] {
    const groups = Map.groupBy(this.ready, (task) => this.key(task));
    return [...groups.values()]
      .filter((members) => members.length === this.gangSize)
      .filter((members) => new Set(members.map(({ round }) => round)).size === 1)
      .filter(([first]) => !this.skipped.has(this.key(first!)))
      .map((members) => members.toSorted((a, b) => a.index - b.index))
      .toSorted(([a], [b]) => (a!.job === b!.job ? a!.index - b!.index : a!.job < b!.job ? -1 : 1));
  }
}

test('in any order of adding, removing, skipping and waiting it is the model’s order', () => {
  const step = fc.record({
    what: fc.constantFrom('add', 'add', 'add', 'remove', 'skip', 'mature'),
    job: fc.constantFrom('j1', 'j2', 'j3', 'j4'),
    index: fc.nat(2),
    round: fc.nat(1),
    waitMs: fc.constantFrom(0, 0, 50, 200),
    passMs: fc.integer({ min: -300, max: 300 }),
  });
  fc.assert(
    fc.property(fc.constantFrom(1, 3), fc.array(step, { maxLength: 80 }), (gangSize, steps) => {
      const queue = new PendingQueue(gangSize);
      const model = new Model(gangSize);
      let now = 100_000;
      for (const { what, job, index, round, waitMs, passMs } of steps) {
        const task = pending(job, index, { round, notBeforeMs: waitMs > 0 ? now + waitMs : 0 });
        const known = [...model.later, ...model.ready].find((one) => one.task === task.task);
        if (what === 'add' && !known) {
          queue.add(task);
          if (waitMs > 0) model.later.push(task);
          else model.makeReady(task);
        } else if (what === 'remove' && known) {
          queue.remove(known);
          model.later = model.later.filter((one) => one !== known);
          model.ready = model.ready.filter((one) => one !== known);
        } else if (what === 'skip') {
          const [head] = model.entries();
          queue.peek();
          queue.skip();
          if (head) model.skipped.add(model.key(head[0]!));
        } else if (what === 'mature') {
          now += passMs;
          const due = model.later.filter(({ notBeforeMs }) => notBeforeMs <= now);
          model.later = model.later.filter((one) => !due.includes(one));
          for (const one of due) model.makeReady(one);
          const next = model.later.map(({ notBeforeMs }) => notBeforeMs);
          expect(queue.mature(now)).toBe(next.length > 0 ? Math.min(...next) : null);
        }
        expect(queue.size).toBe(model.later.length + model.ready.length);
        expect(queue.peek()).toEqual(model.entries()[0] ?? null);
      }
      const rest = model.entries().map((members) => members.map((one) => one.task).join('+'));
      expect(drain(queue)).toEqual(rest);
    }),
    { numRuns: 300 },
  );
});
