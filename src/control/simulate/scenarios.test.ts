/** Small simulations whose every number can be worked out by hand. */
import { describe, expect, test } from 'vitest';
import { simulate } from '../../bin/simulate.ts';
import type { RunReport, SimulationRequest } from '../../protocol/simulation.ts';

const ONE_CORE = 'pools: {p: {workers: {cpus: 1, mem: 1G}}}';

async function run(
  workload: string,
  fleet = ONE_CORE,
  more: Partial<SimulationRequest> & { policy?: string[] } = {},
): Promise<RunReport> {
  const { policy = [], ...request } = more;
  const { runs } = await simulate({
    workload: { kind: 'file', name: 'w.yaml', text: workload },
    variants: [{ name: 'f', fleet: { name: 'f.yaml', text: fleet }, policy }],
    seed: null,
    horizonMs: null,
    svg: false,
    progress: () => undefined,
    ...request,
  });
  return runs[0] as RunReport;
}

const all = (report: RunReport) => report.wait.at(-1)!;
const SECOND = 1000;
const HOUR = 3_600_000;

describe('one worker', () => {
  test('one after another, in the order they came', async () => {
    const report = await run('jobs: [{count: 3, duration: 10s}]');
    expect(all(report)).toMatchObject({
      count: 3,
      started: 3,
      p50Ms: 10 * SECOND,
      p90Ms: 20 * SECOND,
      maxMs: 20 * SECOND,
      meanMs: 10 * SECOND,
    });
    expect(report.makespanMs).toBe(30 * SECOND);
    expect(report.utilisation).toEqual({ cpu: 1, devices: null });
    expect(report.jobs).toMatchObject({ submitted: 3, succeeded: 3, failed: 0 });
  });

  test('half of the time idle', async () => {
    const report = await run('{for: 1m, jobs: [{every: 20s, duration: 10s}]}');
    // At 0, 20 and 40 s; the last ends at 50 s.
    expect(report.makespanMs).toBe(50 * SECOND);
    expect(report.utilisation.cpu).toBeCloseTo(30 / 50);
    expect(all(report)).toMatchObject({ count: 3, maxMs: 0 });
  });

  test('a higher band goes first, and does not when bands are off', async () => {
    const jobs = `jobs:
      - {duration: 10s}
      - {at: 1s, duration: 10s}
      - {at: 2s, duration: 10s, priority: production}`;
    const byBand = await run(jobs);
    expect(byBand.wait).toMatchObject([
      { band: 'production', maxMs: 8 * SECOND },
      { band: 'batch', maxMs: 19 * SECOND },
      { band: 'all' },
    ]);
    const without = await run(jobs, ONE_CORE, { policy: ['bands=off'] });
    expect(without.wait).toMatchObject([{ band: 'batch', maxMs: 18 * SECOND }, { band: 'all' }]);
  });

  test('it is planned only on ticks, and starting takes its time', async () => {
    const policy = ['tick=1m', 'startDelay=5s'];
    const report = await run('jobs: [{at: 10s, duration: 10s}]', ONE_CORE, { policy });
    expect(all(report).maxMs).toBe(55 * SECOND);
    expect(report.makespanMs).toBe(75 * SECOND);
  });

  test('a time limit ends it, an exit code fails it, and retries are tried', async () => {
    const report = await run(`jobs:
      - {time: 5s, duration: 10s}
      - {at: 1m, exitCode: 3, retries: 1, duration: 10s}`);
    expect(report.jobs).toMatchObject({ failed: 2, succeeded: 0 });
    expect(report.retried).toBe(1);
    // 10 s, a second of back-off, 10 s again.
    expect(report.makespanMs).toBe(81 * SECOND);
  });

  test('what cannot start within its time gives up', async () => {
    const report = await run(`jobs:
      - {duration: 10s}
      - {duration: 10s, startWithin: 5s}`);
    expect(report.jobs).toMatchObject({ succeeded: 1, unschedulable: 1 });
    expect(report.makespanMs).toBe(10 * SECOND);
  });

  test('a horizon cuts it off', async () => {
    const report = await run('jobs: [{count: 3, duration: 10s}]', ONE_CORE, {
      horizonMs: 15 * SECOND,
    });
    expect(report.jobs).toMatchObject({ succeeded: 1, running: 1, waiting: 1 });
    expect(report.makespanMs).toBe(15 * SECOND);
    expect(report.utilisation.cpu).toBe(1);
    expect(report.unschedulable).toEqual([]);
  });
});

test('jobs wait for others by name', async () => {
  const report = await run(
    `jobs:
      - {name: first, duration: 10s, exitCode: 1}
      - {name: ok, after: first, duration: 1s}
      - {name: failed, after: 'first:failed', duration: 1s}
      - {name: late, at: 1m, after: first, duration: 1s}`,
    'pools: {p: {workers: {cpus: 9, mem: 1G}}}',
  );
  expect(report.jobs).toMatchObject({ failed: 1, succeeded: 1, unschedulable: 1, refused: 1 });
  expect(all(report)).toMatchObject({ started: 2, maxMs: 10 * SECOND });
});

describe('several', () => {
  test('two pools: the one that was asked for is waited for', async () => {
    const fleet = `pools:
      a: {workers: {cpus: 1, mem: 1G, gpus: 1}, pricePerDeviceHour: 2}
      b: {workers: {cpus: 1, mem: 1G, gpus: 1}, pricePerDeviceHour: 1, pricePerCpuHour: 0.5}`;
    const report = await run('jobs: [{pool: b, gpus: 1, count: 2, duration: 1h}]', fleet);
    expect(all(report)).toMatchObject({ p50Ms: 0, maxMs: HOUR });
    expect(report.pools).toMatchObject([
      { pool: 'a', deviceShare: 0, usedMicros: 0, standingMicros: 4_000_000 },
      { pool: 'b', deviceShare: 1, deviceHours: 2, usedMicros: 3_000_000 },
    ]);
    expect(report.cost).toEqual({ usedMicros: 3_000_000, standingMicros: 7_000_000 });
    expect(report.utilisation.devices).toBe(0.5);
    expect(report.tenants).toMatchObject([{ tenant: 'default', deviceHours: 2, cpuHours: 2 }]);
  });

  test('a gang waits until there is room for all of it', async () => {
    const fleet = 'pools: {p: {workers: {count: 2, cpus: 2, mem: 1G}}}';
    const report = await run(
      `jobs:
        - {cpus: 2, duration: 10s}
        - {at: 1s, cpus: 2, gang: 2, duration: 5s}`,
      fleet,
    );
    expect(all(report)).toMatchObject({ count: 2, started: 2, maxMs: 9 * SECOND });
    expect(report.makespanMs).toBe(15 * SECOND);
    expect(report.jobs.succeeded).toBe(2);
  });

  test('tasks of an array count one by one', async () => {
    const report = await run('jobs: [{array: 0-3, duration: 10s}]');
    expect(report.jobs.submitted).toBe(1);
    expect(all(report)).toMatchObject({ count: 4, p50Ms: 10 * SECOND, maxMs: 30 * SECOND });
  });

  test('what never fits is refused, what never finds room is told with the reason', async () => {
    const report = await run('jobs: [{cpus: 2, duration: 1s}, {gang: 2, duration: 1s}]');
    expect(report.jobs).toMatchObject({ refused: 1, unschedulable: 1, succeeded: 0 });
    expect(report.unschedulable.map(({ jobs }) => jobs)).toEqual([1, 1]);
    expect(report.unschedulable.map(({ reason }) => reason).join()).toMatch(/too few cpus/);
    expect(all(report)).toMatchObject({ count: 2, started: 0 });
  });
});

test('of tenants that both wait, even shares are fair', async () => {
  const fleet = 'pools: {p: {workers: {cpus: 2, mem: 1G}}}';
  const two = (a: number, b: number) => `jobs:
      - {tenant: a, count: ${a}, duration: 10m}
      - {tenant: b, count: ${b}, duration: 10m}`;
  expect((await run(two(4, 4), fleet)).fairness).toBeCloseTo(1);
  expect((await run(two(8, 1), fleet)).fairness).toBeNull();
});

describe('preemption', () => {
  const MINUTE = 60 * SECOND;
  const jobs = (checkpoint: string) => `jobs:
      - {duration: 1h, checkpoint: ${checkpoint}}
      - {at: 10m, duration: 10m, priority: production}`;

  test.each([
    ['0s', 60, 'begins anew'],
    ['5m', 50, 'goes on from what it saved within its grace'],
  ])('with a checkpoint every %s the victim has %i minutes to go: it %s', async (every, left) => {
    const report = await run(jobs(every));
    expect(report.preemptions).toBe(1);
    // The victim has 10 s of grace; then 10 minutes of the other, then its own again.
    expect(report.wait[0]).toMatchObject({ band: 'production', maxMs: 10 * SECOND });
    expect(report.makespanMs).toBe((20 + left) * MINUTE + 10 * SECOND);
    expect(report.jobs.succeeded).toBe(2);
  });

  test('off: it waits', async () => {
    const report = await run(jobs('0s'), ONE_CORE, { policy: ['preemption=off'] });
    expect(report.preemptions).toBe(0);
    expect(report.wait[0]?.maxMs).toBe(50 * MINUTE);
  });
});

describe('workers that are lost', () => {
  const FLAKY = 'pools: {p: {workers: {cpus: 1, mem: 1G}, failEvery: 2h, backAfter: 10m}}';

  test('their work is done again; checkpoints save most of it', async () => {
    const anew = await run('jobs: [{count: 8, duration: 1h}]', FLAKY);
    const saved = await run('jobs: [{count: 8, duration: 1h, checkpoint: 1m}]', FLAKY);
    for (const report of [anew, saved]) {
      expect(report.jobs.succeeded).toBe(8);
      expect(report.lost).toBeGreaterThan(0);
    }
    expect(anew.makespanMs).toBeGreaterThan(saved.makespanMs);
    expect(saved.makespanMs).toBeGreaterThan(8 * HOUR);
  });

  test('one that waits for ever does not keep the simulation going for ever', async () => {
    const report = await run('jobs: [{gang: 2, duration: 1s}]', FLAKY);
    expect(report.jobs.unschedulable).toBe(1);
  });
});

test('a day’s hours that are used up hold the rest until tomorrow', async () => {
  const fleet = `{pools: {p: {workers: {cpus: 2, mem: 1G, gpus: 2}}},
    budgets: [{tenant: default, deviceHoursPerDay: 2}]}`;
  const report = await run('jobs: [{gpus: 1, count: 3, time: 1h, duration: 1h}]', fleet);
  expect(report.jobs.succeeded).toBe(3);
  expect(all(report).maxMs).toBe(24 * HOUR);
  const free = await run('jobs: [{gpus: 1, count: 3, time: 1h, duration: 1h}]', fleet, {
    policy: ['budgets=off'],
  });
  expect(all(free).maxMs).toBe(HOUR);
});
