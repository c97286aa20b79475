/** The schedule loop: what a planner plans is tried, and what is refused is planned again. */
import type { Explanation } from '../core/explain.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import { ManualClock } from '../../test/support/manualClock.ts';
import { TestState } from '../../test/support/testState.ts';
import { seededRandom } from '../lib/random.ts';
import type { WorkerId } from '../model/ids.ts';
import { createPlanner, type Planner } from './planner.ts';
import { createScheduleStep } from './schedule.ts';

let clock: ManualClock;
let it: TestState;
let worker: WorkerId;
let hints: number;
let placed: [number, number][];
let reasons: Map<string, Explanation>;
/** Something that happens while the planner thinks. */
let meanwhile: () => void;
let step: () => Promise<void>;

beforeEach(() => {
  clock = new ManualClock();
  it = new TestState();
  worker = it.join('m1');
  hints = 0;
  placed = [];
  reasons = new Map();
  meanwhile = () => undefined;
  const real = createPlanner(seededRandom(1));
  const planner: Planner = {
    ...real,
    async plan(deltas, nowMs) {
      // As between threads: the planner has a copy.
      const plan = await real.plan(structuredClone(deltas), nowMs);
      meanwhile();
      meanwhile = () => undefined;
      return structuredClone(plan);
    },
  };
  step = createScheduleStep({
    state: it.state,
    planner,
    mutate: (mutation) => it.apply(mutation),
    clock,
    hint: () => hints++,
    reasons,
    placed: (tasks, stale) => void placed.push([tasks, stale]),
  });
});

describe('a step', () => {
  test('places what fits and remembers why the rest waits', async () => {
    const [small, large] = [it.submit(), it.submit({ resources: { cpuMillis: 9000 } })];
    await step();
    expect(small.tasks[0]?.state).toBe('ASSIGNED');
    expect(reasons.get(large.classKey)?.sentence).toBe(
      'it needs a worker with 9 CPUs; the largest has 8 CPUs',
    );
    expect([placed, hints]).toEqual([[[1, 0]], 0]);
  });

  test('run again changes nothing', async () => {
    it.submit();
    await step();
    await step();
    expect(placed).toEqual([
      [1, 0],
      [0, 0],
    ]);
  });

  test('what was refused because its job changed frees what was planned for it', async () => {
    const gone = it.submit({ resources: { cpuMillis: 8000 } });
    meanwhile = () => void it.apply({ kind: 'cancel', job: gone.job.id, by: 'ann' });
    await step();
    expect([placed, hints]).toEqual([[[0, 1]], 1]);
    const next = it.submit({ resources: { cpuMillis: 8000 } });
    await step();
    expect(next.tasks[0]?.state).toBe('ASSIGNED');
  });

  test('what was refused because the worker closed is placed elsewhere', async () => {
    const live = it.submit();
    const other = it.join('m2');
    const drain = (id: WorkerId, draining: boolean) =>
      it.apply({ kind: 'drain', worker: id, draining, by: 'ann', tenant: 'default' });
    drain(other, true);
    meanwhile = () => {
      drain(worker, true);
      drain(other, false);
    };
    await step();
    expect(live.tasks[0]?.state).toBe('PENDING');
    await step();
    expect(live.attempts.get(0)?.worker).toBe(other);
  });

  test('a gang is refused whole and placed whole', async () => {
    const gang = it.submit({ shape: { kind: 'gang', size: 2 }, resources: { cpuMillis: 4000 } });
    meanwhile = () => void it.assign(it.submit(), worker);
    await step();
    expect(gang.tasks.map(({ state }) => state)).toEqual(['PENDING', 'PENDING']);
    expect(placed).toEqual([[0, 2]]);
    it.join('m2');
    await step();
    expect(gang.tasks.map(({ state }) => state)).toEqual(['ASSIGNED', 'ASSIGNED']);
  });

  test('asks to be run when the next back-off is over, and only once', async () => {
    const live = it.submit({ retries: 3 });
    it.nowMs = clock.now();
    it.exit(it.assign(live, worker)[0]!, 1);
    await step();
    await step();
    expect(clock.waiting).toBe(1);
    await clock.advance(999);
    expect(hints).toBe(0);
    await clock.advance(1);
    expect(hints).toBe(1);
    await step();
    expect(live.tasks[0]?.state).toBe('ASSIGNED');
  });
});
