/** What is launched for which demand, rule by rule. */
import { describe, expect, test } from 'vitest';
import type { TaskId } from '../../model/ids.ts';
import { wants } from '../placement/testFleet.ts';
import { FRESH_BACKOFF } from './backoff.ts';
import { LAUNCH_BATCH, STARTING_MS } from './launches.ts';
import { planCapacity } from './plan.ts';
import { busy, carriedOut, HOUR, idle, launchedIn, machine, NOW } from './testCapacity.ts';
import { sentences, testDemand, testInstance, testPool } from './testCapacity.ts';

const ERROR = 'sbatch: error: invalid partition';

describe('machines for any work', () => {
  test('as many as the tasks fill, in one call', () => {
    const plan = planCapacity([testPool('cpu')], [testDemand(20)], NOW);
    expect(plan.launches).toMatchObject([
      { pool: 'cpu', count: 3, workers: 1, resources: null, tasks: [], timeLimitMs: 0 },
    ]);
    expect(plan.coming).toMatchObject([{ tasks: 20, instances: [], pools: ['cpu'] }]);
    expect(plan.unmet).toEqual([]);
  });

  test('one call each where the provider takes no more', () => {
    const plan = planCapacity([testPool('cpu', { batches: false })], [testDemand(20)], NOW);
    expect(plan.launches.map(({ count }) => count)).toEqual([1, 1, 1]);
  });

  test('what is on its way is filled first', () => {
    const pool = testPool('cpu', { instances: [testInstance('i1'), testInstance('i2')] });
    const demands = [testDemand(9, { key: 'a' }), testDemand(6), testDemand(2)];
    const plan = planCapacity([pool], demands, NOW);
    expect(launchedIn(plan)).toEqual({ cpu: 1 });
    expect(plan.coming[0]).toEqual({
      classKey: 'a',
      tasks: 9,
      instances: ['i1', 'i2'],
      pools: ['cpu'],
    });
  });

  test('machines of which nobody knows the size come one for each task', () => {
    const plan = planCapacity([testPool('any', { size: null })], [testDemand(3)], NOW);
    expect(plan.launches).toMatchObject([{ count: 3, brings: { cpuMillis: 1000 } }]);
  });

  test('whoever wants a machine alone, or far from its like, gets one each', () => {
    const alone = testDemand(3, {}, { exclusive: true });
    expect(launchedIn(planCapacity([testPool('a')], [alone], NOW))).toEqual({ a: 3 });
    const apart = testDemand(3, {}, { antiAffinity: 'db' });
    const near = testDemand(2);
    expect(launchedIn(planCapacity([testPool('a')], [apart, near], NOW))).toEqual({ a: 3 });
    expect(launchedIn(planCapacity([testPool('a')], [near, alone], NOW))).toEqual({ a: 4 });
  });

  test('a machine of one user is no other user’s', () => {
    const pool = testPool('site', { perUser: true });
    const ann = testDemand(2);
    const bob = testDemand(2, { user: 'bob' });
    const plan = planCapacity([pool], [ann, bob], NOW);
    expect(plan.launches.map(({ runAs }) => runAs?.user)).toEqual(['ann', 'bob']);
    const again = planCapacity(carriedOut([pool], plan), [bob, ann], NOW);
    expect(again.launches).toEqual([]);
    const third = planCapacity(carriedOut([pool], plan), [testDemand(1, { user: 'cy' })], NOW);
    expect(third.launches).toMatchObject([{ runAs: { user: 'cy' } }]);
  });

  test('min is kept with no demand, and serves the demand there is', () => {
    const pool = testPool('cpu', { min: 2 });
    expect(planCapacity([pool], [], NOW).launches).toMatchObject([
      { count: 2, reason: 'at least 2 instances' },
    ]);
    expect(launchedIn(planCapacity([pool], [testDemand(16)], NOW))).toEqual({ cpu: 2 });
    const there = { ...pool, instances: [busy('i1'), testInstance('i2', { state: 'leaving' })] };
    expect(launchedIn(planCapacity([there], [], NOW))).toEqual({ cpu: 1 });
    expect(planCapacity([{ ...pool, perUser: true }], [], NOW).launches).toEqual([]);
  });
});

describe('gangs', () => {
  const gang = testDemand(4, { gangSize: 4, resources: wants({}, { count: 1 }) });
  const pool = testPool('gpu', { size: machine(2) });

  test('all members or none, in one pool, packed as they will be placed', () => {
    expect(launchedIn(planCapacity([pool], [gang], NOW))).toEqual({ gpu: 2 });
    const small = planCapacity([{ ...pool, max: 1 }], [gang], NOW);
    expect(small.launches).toEqual([]);
    expect(sentences(small)).toEqual([
      'pool gpu: 0 of at most 1 instances; it needs 2 more at once',
    ]);
    const halves = [
      { ...pool, max: 1 },
      { ...pool, name: 'other', max: 1 },
    ];
    expect(planCapacity(halves, [gang], NOW).launches).toEqual([]);
  });

  test('idle machines and those on their way count, in their own pool', () => {
    const instances = [idle('i1', HOUR, { resources: machine(2) })];
    const plan = planCapacity([{ ...pool, instances }], [gang], NOW);
    expect(launchedIn(plan)).toEqual({ gpu: 1 });
    expect(plan.coming).toMatchObject([{ tasks: 4, instances: ['i1'] }]);
    expect(plan.releases).toEqual([]);
    const elsewhere = [pool, { ...pool, name: 'own', max: 1, instances }];
    expect(launchedIn(planCapacity(elsewhere, [gang], NOW))).toEqual({ gpu: 2 });
  });

  test('one alone may come past the window, but never past maxPending', () => {
    const careful = { ...pool, backoff: { ...FRESH_BACKOFF, window: 1, error: ERROR } };
    expect(launchedIn(planCapacity([careful], [gang], NOW))).toEqual({ gpu: 2 });
    const plan = planCapacity([{ ...pool, maxPending: 1 }], [gang], NOW);
    expect(sentences(plan)).toEqual([
      'pool gpu: 0 of at most 1 are on their way; it needs 2 more at once',
    ]);
  });

  test('members that wait without the rest wait for it', () => {
    const plan = planCapacity([pool], [{ ...gang, waiting: 7 }], NOW);
    expect(plan).toMatchObject({ coming: [{ tasks: 4 }], unmet: [{ tasks: 3 }] });
  });
});

describe('machines sized for a job', () => {
  const pool = testPool('slurm', { mode: 'job' });

  test('an array is one call with one task each', () => {
    const demand = testDemand(3, { timeLimitMs: HOUR, graceMs: 1000 }, {}, { name: 'sweep' });
    const plan = planCapacity([pool], [demand], NOW);
    expect(plan.launches).toMatchObject([
      {
        count: 3,
        workers: 1,
        tasks: [['sweep.0'], ['sweep.1'], ['sweep.2']],
        resources: { cpuMillis: 1000 },
        classKey: 'sweep',
        name: 'sweep',
        timeLimitMs: HOUR + 1000 + STARTING_MS,
        noticeMs: 1000,
        reason: '3 tasks wait',
      },
    ]);
    const single = planCapacity([{ ...pool, batches: false }], [demand], NOW);
    expect(single.launches.map(({ tasks }) => tasks)).toEqual([
      [['sweep.0']],
      [['sweep.1']],
      [['sweep.2']],
    ]);
    expect(planCapacity([{ ...pool, longestMs: HOUR }], [testDemand(1)], NOW)).toMatchObject({
      launches: [{ timeLimitMs: 0 }],
    });
  });

  test('no call asks for more than one array can hold', () => {
    const large = { ...pool, max: 2000, maxPending: 2000 };
    const counts = planCapacity([large], [testDemand(LAUNCH_BATCH + 1)], NOW).launches;
    expect(counts.map(({ count }) => count)).toEqual([LAUNCH_BATCH, 1]);
    const agents = { ...large, mode: 'agents' as const, size: null };
    expect(planCapacity([agents], [testDemand(LAUNCH_BATCH + 1)], NOW).launches).toHaveLength(2);
  });

  test('a gang is one instance with as many workers', () => {
    const gangs = testDemand(4, { gangSize: 2 }, {}, { name: 'mpi' });
    expect(planCapacity([pool], [gangs], NOW).launches).toMatchObject([
      {
        count: 2,
        workers: 2,
        tasks: [
          ['mpi.0', 'mpi.1'],
          ['mpi.2', 'mpi.3'],
        ],
      },
    ]);
  });

  test('it serves its own tasks and nobody else’s', () => {
    const tasks = ['sweep.0', 'sweep.1'] as TaskId[];
    const coming = testInstance('i1', { tasks, classKey: 'sweep', resources: machine() });
    const demand = testDemand(3, {}, {}, { name: 'sweep' });
    const plan = planCapacity([{ ...pool, instances: [coming] }], [testDemand(1), demand], NOW);
    expect(launchedIn(plan)).toEqual({ slurm: 2 });
    expect(plan.launches[1]?.tasks).toEqual([['sweep.2']]);
    expect(plan.coming[1]).toMatchObject({ tasks: 3, instances: ['i1'] });
  });

  test('tasks that are not named yet wait until those before them have started', () => {
    const demand = { ...testDemand(3), waiting: 5000 };
    const plan = planCapacity([pool], [demand], NOW);
    expect(launchedIn(plan)).toEqual({ slurm: 3 });
    expect(sentences(plan)).toEqual(['pool slurm: instances come for the first 3 tasks']);
  });
});
