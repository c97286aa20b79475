/** Leases and deadlines on a clock that the test moves. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { TIMERS, type TestAgent, TestController } from '../../test/support/testController.ts';
import type { AttemptOrder } from '../protocol/agent.ts';

let it: TestController;
let agent: TestAgent;
beforeEach(async () => {
  it = await new TestController().start();
  agent = await it.joinAgent();
});
afterEach(() => it.close());

async function running(
  fields: Parameters<TestController['submit']>[0] = {},
): Promise<AttemptOrder> {
  await it.submit(fields);
  const before = [...it.controller.state.attempts.values()];
  const seen = before.flatMap(({ uid, startedAtMs }) =>
    startedAtMs === null ? [] : [{ uid, state: 'RUNNING' as const }],
  );
  const [order] = (await agent.sync(seen)).desired;
  if (!order) throw new Error('nothing was ordered');
  await agent.sync([...seen, { uid: order.uid, state: 'RUNNING' }]);
  return order;
}

const workers = async () =>
  (await it.clock.run(it.it.listWorkers(it.admin, { limit: 9 }))).items.map(({ state }) => state);
const job = (id: string) => it.clock.run(it.it.getJob(it.admin, id));
/** The loops look once a second. */
const LOOK_MS = 1000;

describe('a silent worker', () => {
  test('is suspected, then lost with its attempts, which go elsewhere', async () => {
    const order = await running();
    await it.clock.advance(TIMERS.workerLeaseMs);
    expect(await workers()).toEqual(['ONLINE']);
    await it.clock.advance(LOOK_MS);
    expect(await workers()).toEqual(['SUSPECT']);
    const other = await it.joinAgent();
    await it.clock.advance(TIMERS.attemptLeaseMs - TIMERS.workerLeaseMs - LOOK_MS - 1000);
    expect(await job(order.job)).toMatchObject({ state: 'RUNNING' });
    await it.clock.advance(2000 + LOOK_MS);
    expect((await other.sync()).desired).toMatchObject([{ task: order.task, n: 2 }]);
    const attempts = await it.clock.run(it.it.listAttempts(it.admin, order.job, { limit: 9 }));
    expect(attempts.items[0]).toMatchObject({
      cause: 'lost',
      message: expect.stringMatching(/^its worker host-m1 has been silent for 6\d s$/),
    });
  });

  test('that speaks again in time keeps everything', async () => {
    const order = await running();
    await it.clock.advance(TIMERS.workerLeaseMs + LOOK_MS);
    expect(await workers()).toEqual(['SUSPECT']);
    const reply = await agent.sync([{ uid: order.uid, state: 'RUNNING' }]);
    expect(reply).toMatchObject({ stop: [], desired: [] });
    expect(await workers()).toEqual(['ONLINE']);
    await it.clock.advance(TIMERS.workerLeaseMs - LOOK_MS);
    expect(await workers()).toEqual(['ONLINE']);
  });

  test('keeps attempts whose job has a longer lease, and goes with the last of them', async () => {
    const [long, short] = [await running({ attemptLeaseMs: 120_000 }), await running()];
    await it.clock.advance(61_000 + LOOK_MS);
    expect(await workers()).toEqual(['SUSPECT']);
    const live = () => [...it.controller.state.attempts.keys()];
    expect(live()).toEqual([long.uid]);
    expect(await job(short.job)).toMatchObject({ state: 'PENDING' });
    await it.clock.advance(60_000);
    expect([await workers(), live()]).toEqual([[], []]);
  });

  test('is judged by the boot clock: a step of the wall clock loses nothing', async () => {
    const order = await running();
    it.clock.step(24 * 3_600_000);
    await it.clock.advance(5000);
    it.clock.step(-48 * 3_600_000);
    await it.clock.advance(5000);
    expect(await workers()).toEqual(['ONLINE']);
    expect(await job(order.job)).toMatchObject({ state: 'RUNNING' });
  });

  test('has its whole lease again after the controller was away', async () => {
    const order = await running();
    await it.clock.advance(TIMERS.workerLeaseMs - 5000);
    await it.restart();
    await it.clock.advance(TIMERS.workerLeaseMs - 5000);
    expect(await workers()).toEqual(['ONLINE']);
    expect(await job(order.job)).toMatchObject({ state: 'RUNNING' });
  });
});

/** Says for the agent, every few seconds, that these still run. */
async function pass(ms: number, ...orders: AttemptOrder[]): Promise<void> {
  for (let passed = 0; passed < ms; passed += 5000) {
    await it.clock.advance(Math.min(5000, ms - passed));
    await agent.sync(orders.map(({ uid }) => ({ uid, state: 'RUNNING' })));
  }
}

describe('a time limit', () => {
  test('stops what has run as long, and that counts as a failure', async () => {
    const order = await running({ timeLimitMs: 20_000, graceMs: 5 });
    await pass(19_000, order);
    expect((await agent.sync([{ uid: order.uid, state: 'RUNNING' }])).stop).toEqual([]);
    await pass(1000 + LOOK_MS, order);
    const { stop } = await agent.sync([{ uid: order.uid, state: 'RUNNING' }]);
    expect(stop).toEqual([{ uid: order.uid, cause: 'timed-out', graceMs: 5 }]);
    await agent.sync([{ uid: order.uid, state: 'ENDED', cause: 'timed-out' }]);
    expect(await job(order.job)).toMatchObject({
      state: 'FAILED',
      reason: 'ran into its time limit',
    });
  });

  test('is not used up by waiting, nor by a wall clock that jumps', async () => {
    const order = await running({ timeLimitMs: 20_000 });
    await it.clock.advance(LOOK_MS);
    it.clock.step(3_600_000);
    await pass(10_000, order);
    expect((await agent.sync([{ uid: order.uid, state: 'RUNNING' }])).stop).toEqual([]);
  });

  test('goes on counting over a restart', async () => {
    const order = await running({ timeLimitMs: 20_000 });
    await pass(15_000, order);
    await it.restart();
    await pass(5000 + LOOK_MS, order);
    expect((await agent.sync([{ uid: order.uid, state: 'RUNNING' }])).stop).toHaveLength(1);
  });
});

describe('a limit on waiting', () => {
  test('gives up what was never placed', async () => {
    const [id = ''] = await it.submit({ startWithinMs: 10_000, resources: { cpuMillis: 9000 } });
    await pass(9000);
    expect(await job(id)).toMatchObject({ state: 'PENDING' });
    await pass(1000 + LOOK_MS);
    expect(await job(id)).toMatchObject({
      state: 'UNSCHEDULABLE',
      reason: expect.stringMatching(/^not started within 10 s/),
      exitCode: null,
    });
  });

  test('does not end what has been placed once and waits again', async () => {
    const order = await running({ startWithinMs: 10_000, retries: 1 });
    await it.clock.run(it.it.setDraining(it.admin, agent.joined.worker, true));
    await agent.sync([{ uid: order.uid, state: 'ENDED', cause: 'exited', exitCode: 1 }]);
    await pass(20_000);
    expect(await job(order.job)).toMatchObject({ state: 'PENDING' });
  });
});

test('a retry is placed when its back-off is over, without anybody asking', async () => {
  const order = await running({ retries: 1 });
  await agent.sync([{ uid: order.uid, state: 'ENDED', cause: 'exited', exitCode: 1 }]);
  const held = agent.send([], { wait: true });
  await it.clock.advance(999);
  expect(it.controller.state.attempts.size).toBe(0);
  await it.clock.advance(2);
  expect((await it.clock.run(held)).desired).toMatchObject([{ n: 2, task: order.task }]);
});
