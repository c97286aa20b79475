/** When the machine is looked at, what of it is told, and what that means for attempts. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { FakeController, FakeRuntime } from '../../../test/support/fakeAgentWorld.ts';
import { ManualClock } from '../../../test/support/manualClock.ts';
import { silentLog } from '../../lib/log.ts';
import type { HealthCheck } from '../../model/health.ts';
import { syncRequest, type AttemptOrder } from '../../protocol/agent.ts';
import { startAgent, type Agent, type AgentOptions } from '../agent.ts';
import type { Finish, Preparation, Started } from '../runtimes/around.ts';
import type { End } from '../runtimes/ending.ts';
import type { Check, Finding } from './check.ts';
import { ANSWER_LIMIT_MS, Health, REST_MS } from './health.ts';
import { createHealthStep } from './healthStep.ts';
import { createHealthReport } from './report.ts';

const PERIOD_MS = 60_000;
let clock: ManualClock;
let health: Health;
const looks: Record<string, number> = {};
const answers: Partial<Record<HealthCheck, Check['look']>> = {};

const check = (name: HealthCheck, around: Check['around']): Check => ({
  ...{ name, around },
  async look() {
    looks[name] = (looks[name] ?? 0) + 1;
    return (await answers[name]?.()) ?? [];
  },
});
const found = (name: HealthCheck, more: Partial<Finding> = {}): Finding => ({
  ...{ check: name, key: 'k', severity: 'drain', message: `${name} is bad`, blames: 'everybody' },
  ...more,
});
const nothing = async (): Promise<Finding[]> => [];

beforeEach(async () => {
  for (const table of [looks, answers]) for (const name in table) delete table[name as never];
  clock = new ManualClock();
});
afterEach(() => health.close());

async function start(warnOnly: HealthCheck[] = []): Promise<void> {
  const checks = [check('devices', 'gpu'), check('disk', 'every'), check('command', 'none')];
  health = new Health({ checks, warnOnly, periodMs: PERIOD_MS, clock, log: silentLog });
  void health.start();
  await clock.settle();
}
const messages = (): string[] => health.problems().map(({ message }) => message);

describe('it is looked at', () => {
  test('all of it, at the start and every period', async () => {
    await start();
    expect(looks).toEqual({ devices: 1, disk: 1, command: 1 });
    expect(health.version).toBe(1);
    await clock.advance(2 * PERIOD_MS);
    expect(looks).toEqual({ devices: 3, disk: 3, command: 3 });
    expect(health.version).toBe(1);
  });

  test('around attempts, but thousands of them share a look', async () => {
    await start();
    for (let n = 0; n < 5000; n++) health.attemptMoved(false);
    await clock.settle();
    expect(looks).toEqual({ devices: 1, disk: 2, command: 1 });
    health.attemptMoved(true);
    await clock.settle();
    expect(looks).toEqual({ devices: 2, disk: 2, command: 1 });
    await clock.advance(REST_MS);
    expect(looks).toEqual({ devices: 2, disk: 3, command: 1 });
    await clock.advance(2 * REST_MS);
    expect(looks).toEqual({ devices: 2, disk: 3, command: 1 });
  });

  test('more often while it drains, so that work comes back soon', async () => {
    answers.command = async () => [found('command')];
    await start();
    answers.command = nothing;
    await clock.advance(REST_MS);
    expect([looks['command'], looks['disk'], messages()]).toEqual([2, 1, []]);
  });
});

describe('problems', () => {
  test('keep their words while numbers change, and are told anew when worse', async () => {
    let free = 99;
    answers.disk = async () => [found('disk', { message: `${free--} MiB left`, severity: 'warn' })];
    await start();
    await clock.advance(2 * PERIOD_MS);
    expect([messages(), health.version]).toEqual([['99 MiB left'], 1]);
    answers.disk = async () => [found('disk', { message: 'full' })];
    await clock.advance(PERIOD_MS);
    expect([messages(), health.isDraining, health.version]).toEqual([['full'], true, 2]);
  });

  test('of a check that may only warn do not drain', async () => {
    answers.disk = async () => [found('disk')];
    await start(['disk']);
    expect(health.problems()).toEqual([
      { check: 'disk', severity: 'warn', message: 'disk is bad' },
    ]);
    expect(health.isDraining).toBe(false);
  });

  test('are at most a hundred, those that drain first, and fit into a sync', async () => {
    answers.disk = async () =>
      Array.from({ length: 300 }, (_, n) => found('disk', { key: `${n}`, severity: 'warn' }));
    answers.command = async () => [found('command', { message: 'x'.repeat(9000) })];
    await start();
    const problems = [...health.problems()];
    expect([problems.length, problems[0]?.check]).toEqual([100, 'command']);
    expect(syncRequest.shape.health.safeParse({ problems }).success).toBe(true);
  });

  test('stay when a check cannot be made: not known is not well', async () => {
    answers.disk = async () => [found('disk')];
    await start();
    answers.disk = () => Promise.reject(new Error('EMFILE'));
    await clock.advance(PERIOD_MS);
    await clock.advance(PERIOD_MS);
    expect(messages()).toEqual(['disk is bad', 'cannot check: EMFILE']);
  });
});

test('a check that hangs is told, then drains, and is left alone until it answers', async () => {
  await start();
  const stuck = Promise.withResolvers<Finding[]>();
  answers.devices = () => stuck.promise;
  await clock.advance(PERIOD_MS + ANSWER_LIMIT_MS);
  expect(health.problems()).toMatchObject([{ check: 'devices', severity: 'warn' }]);
  await clock.advance(3 * PERIOD_MS);
  expect(looks['devices']).toBe(2);
  expect(looks['disk']).toBeGreaterThan(2);
  expect(health.problems()).toMatchObject([
    { check: 'devices', severity: 'drain', message: expect.stringContaining('hangs') as string },
  ]);
  expect([health.blame([0]), health.blame([])]).toEqual([expect.any(String), undefined]);
  stuck.resolve([]);
  await clock.settle();
  expect(messages()).toEqual([]);
});

describe('an attempt', () => {
  const withGpu = (...indices: number[]): AttemptOrder =>
    ({ uid: 'u', devices: indices.map((index) => ({ index, kind: 'gpu' })) }) as AttemptOrder;
  const failed: End = { cause: 'exited', exitCode: 1 };
  const gpu1 = found('devices', { device: 1, blames: 'gpu', message: 'GPU 1 is lost' });
  const prepare = (order: AttemptOrder) =>
    createHealthStep(health).prepare!({ order } as Preparation);
  const finish = (order: AttemptOrder, how = failed) =>
    createHealthStep(health).finish!({ order, how } as Finish);

  test('does not start on a broken device, and goes elsewhere; on others it does', async () => {
    answers.devices = async () => [gpu1];
    await start();
    await expect(prepare(withGpu(0, 1))).rejects.toMatchObject({
      message: 'GPU 1 is lost',
      hostFault: true,
    });
    await expect(prepare(withGpu(0))).resolves.toBeUndefined();
  });

  test('that starts does not wait for a look', async () => {
    await start();
    answers.devices = () => new Promise(() => undefined);
    await expect(prepare(withGpu(0))).resolves.toBeUndefined();
  });

  test('that failed as its device did blames the machine, found by a fresh look', async () => {
    await start();
    answers.devices = async () => [gpu1];
    expect(await clock.run(finish(withGpu(1)))).toEqual({
      hostFault: true,
      message: 'its machine has failed: GPU 1 is lost',
    });
    expect(await finish(withGpu(0))).toEqual({});
  });

  test('pays for its own failures, its own stops, and what it filled itself', async () => {
    answers.disk = async () => [found('disk', { blames: 'nobody' })];
    await start();
    expect(await clock.run(finish(withGpu(1)))).toEqual({});
    const step = createHealthStep(health);
    const needs = (order: AttemptOrder, how: End) => step.needsFinish!(order, '/', how);
    expect(needs(withGpu(1), failed)).toBe(true);
    expect(needs(withGpu(1), { cause: 'signalled', signal: 'SIGSEGV' })).toBe(true);
    for (const cause of ['oom', 'cancelled', 'preempted', 'timed-out'] as const) {
      expect(needs(withGpu(1), { cause })).toBe(false);
    }
    expect(needs(withGpu(1), { cause: 'exited', exitCode: 0 })).toBe(false);
  });

  test('without devices is looked after only while the machine is unfit', async () => {
    await start();
    const step = createHealthStep(health);
    expect(step.needsPreparation!(withGpu())).toBe(false);
    expect(step.needsFinish!(withGpu(), '/', failed)).toBe(false);
    step.watch!({ order: withGpu() } as Started)!();
    answers.disk = async () => [found('disk', { message: 'read-only' })];
    await clock.advance(PERIOD_MS);
    expect(step.needsFinish!(withGpu(), '/', failed)).toBe(true);
    expect(await finish(withGpu())).toMatchObject({ hostFault: true });
  });
});

describe('a sync', () => {
  let agent: Agent;
  let controller: FakeController;
  afterEach(() => agent.close());

  async function joined(): Promise<void> {
    controller = new FakeController(clock);
    agent = startAgent({
      ...{ transport: controller, runtime: new FakeRuntime(), clock, log: silentLog },
      identityFile: { load: () => null, save: () => undefined },
      registration: { bootId: 'b' } as AgentOptions['registration'],
      joinToken: 'drj_1',
      random: { next: () => 1, hex: () => '' },
      report: createHealthReport(health),
      onTunnel: () => undefined,
    });
    await clock.settle();
    await controller.admit();
  }

  test('says all of it once, soon after a change, and again to another controller', async () => {
    await start();
    await joined();
    expect(controller.last.request.health).toEqual({ problems: [] });
    await controller.last.answer();
    await controller.last.answer();
    expect(controller.last.request.health).toBeUndefined();
    const before = controller.syncs.length;
    answers.command = async () => [found('command')];
    await clock.advance(PERIOD_MS);
    expect(controller.syncs.length).toBeGreaterThan(before);
    const problems = [{ check: 'command', severity: 'drain', message: 'command is bad' }];
    expect(controller.last.request.health).toEqual({ problems });
    await controller.last.answer();
    expect(controller.last.request.health).toBeUndefined();
    await controller.last.answer({ epoch: 9 });
    expect(controller.last.request.health).toEqual({ problems });
  });
});
