/** Join and sync: what an agent is told about the difference between what is and what should be. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  JOIN_SECRET,
  machine,
  TestAgent,
  TestController,
} from '../../test/support/testController.ts';
import { TIMERS } from '../../test/support/testController.ts';
import type { WorkerId } from '../model/ids.ts';
import { OPEN_TERMS } from '../model/placement.ts';
import type { AttemptOrder, Observation } from '../protocol/agent.ts';
import { createToken } from '../protocol/fleet.ts';

let it: TestController;
let agent: TestAgent;
beforeEach(async () => {
  it = await new TestController().start();
  agent = await it.joinAgent();
});
afterEach(() => it.close());

/** Submits and returns what the agent is told to run. */
async function ordered(
  fields: Parameters<TestController['submit']>[0] = {},
): Promise<AttemptOrder> {
  await it.submit(fields);
  const [order] = (await agent.sync()).desired;
  if (!order) throw new Error('nothing was ordered');
  return order;
}

const runs = ({ uid }: AttemptOrder): Observation => ({ uid, state: 'RUNNING' });
const exited = ({ uid }: AttemptOrder, exitCode = 0): Observation => ({
  uid,
  state: 'ENDED',
  cause: 'exited',
  exitCode,
});

describe('a join', () => {
  test('gives an identity, a secret and the timers', () => {
    const { clusterId, epoch } = it.controller.state;
    expect(agent.joined).toMatchObject({ clusterId, epoch, timers: TIMERS });
    expect(agent.joined.token).toMatch(/^drw_[0-9a-f]{64}$/);
    const [live] = it.controller.state.workers.values();
    expect(live?.worker).toMatchObject({
      pool: 'default',
      attributes: { capabilities: 'process' },
    });
    expect(JSON.stringify(live?.worker)).not.toContain(agent.joined.token);
  });

  test('may state whose work the machine takes, and another time something else', async () => {
    const resources = { ...machine('x').resources, cpuMillis: 64_000 };
    const terms = { tenants: ['physics'], interruptibleOnly: true };
    const picky = await it.joinAgent({ resources, terms });
    const worker = it.controller.state.workers.get(picky.joined.worker as WorkerId)?.worker;
    expect(worker?.terms).toEqual({ ...terms, users: [], marketplace: false });
    await it.submit({ resources: { cpuMillis: 32_000 } });
    expect((await picky.sync()).desired).toEqual([]);
    delete picky.request.terms;
    await picky.join();
    expect(worker?.terms).toEqual(OPEN_TERMS);
    await it.clock.advance(2000);
    expect((await picky.sync()).desired).toHaveLength(1);
  });

  test.each<[string, () => Promise<string>]>([
    ['nobody knows', async () => 'drj_wrong'],
    ['that is a user’s', async () => 'drv_test'],
    [
      'that was revoked',
      async () => {
        const created = await it.clock.run(
          it.it.createToken(it.admin, createToken.parse({ kind: 'join' })),
        );
        await it.clock.run(it.it.revokeToken(it.admin, created.id));
        return created.secret ?? '';
      },
    ],
    [
      'that has expired',
      async () => {
        const wanted = createToken.parse({ kind: 'join', expiresInMs: 5000 });
        const created = await it.clock.run(it.it.createToken(it.admin, wanted));
        await it.clock.advance(5000);
        return created.secret ?? '';
      },
    ],
  ])('with a token %s is refused', async (_what, secret) => {
    const join = it.it.join(await secret(), machine('m9'));
    await expect(it.clock.run(join)).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });
  });

  test('beyond the token’s number of workers is refused, with the number', async () => {
    const wanted = createToken.parse({ kind: 'join', maxLiveWorkers: 1, pool: 'lab' });
    const { secret = '' } = await it.clock.run(it.it.createToken(it.admin, wanted));
    await it.clock.run(it.it.join(secret, machine('m8')));
    await expect(it.clock.run(it.it.join(secret, machine('m9')))).rejects.toMatchObject({
      code: 'TOO_MANY',
      message: '1 workers live by this join token already',
    });
    const { items } = await it.clock.run(it.it.listWorkers(it.admin, { limit: 9 }));
    expect(items.map(({ pool }) => pool)).toEqual(['default', 'lab']);
  });

  test('of the same machine ends the held call and the token of the one before', async () => {
    const held = agent.send([], { wait: true });
    const old = agent.joined.token;
    await it.clock.settle();
    const second = new TestAgent(it, agent.request);
    await second.join();
    await expect(it.clock.run(held)).rejects.toMatchObject({ code: 'STALE' });
    expect(second.joined.worker).toBe(agent.joined.worker);
    expect(second.joined.token).not.toBe(old);
    await expect(it.clock.run(agent.send())).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });
    expect(await second.sync()).toMatchObject({ desired: [] });
  });
});

describe('an order', () => {
  test('holds the command and everything around it', async () => {
    const order = await ordered({
      name: 'train',
      command: ['python3', 'train.py'],
      env: { X: '1', DROVER_JOB_ID: 'not so' },
      resources: { cpuMillis: 2000, ports: 2 },
      graceMs: 1234,
      attemptLeaseMs: 120_000,
    });
    expect(order).toMatchObject({
      command: ['python3', 'train.py'],
      cpuMillis: 2000,
      ports: [2000, 2001],
      graceMs: 1234,
      attemptLeaseMs: 120_000,
      n: 1,
    });
    expect(order.env).toEqual({
      X: '1',
      DROVER_CLUSTER_ID: 'c0test',
      DROVER_JOB_ID: order.job,
      DROVER_JOB_NAME: 'train',
      DROVER_TASK_ID: order.task,
      DROVER_TASK_INDEX: '0',
      DROVER_ATTEMPT: '1',
      DROVER_ATTEMPT_UID: order.uid,
      DROVER_PORTS: '2000,2001',
    });
  });

  test('has a lease that leaves room for its grace, however long that is', async () => {
    const { attemptLeaseMs } = await ordered({ graceMs: 600_000 });
    expect(attemptLeaseMs).toBe(600_000 + TIMERS.killMarginMs + TIMERS.workerLeaseMs);
  });

  test('of an array knows its index, of a gang where its members meet', async () => {
    const array = await ordered({ shape: { kind: 'array', indices: [7] } });
    expect(array.env['DROVER_ARRAY_INDEX']).toBe('7');
    await it.submit({ shape: { kind: 'gang', size: 2 } });
    const { desired } = await agent.sync([runs(array)]);
    expect(desired.map(({ env }) => [env['RANK'], env['WORLD_SIZE'], env['LOCAL_RANK']])).toEqual([
      ['0', '2', '0'],
      ['1', '2', '1'],
    ]);
    const port = desired[0]?.env['DROVER_PORTS'];
    for (const { env } of desired) {
      expect(env).toMatchObject({ MASTER_ADDR: '10.0.0.1', MASTER_PORT: port });
    }
  });

  test('is sent again until the agent has it, and not after', async () => {
    const order = await ordered();
    expect((await agent.sync()).desired).toEqual([order]);
    expect((await agent.sync([{ uid: order.uid, state: 'STARTING' }])).desired).toEqual([]);
  });

  test('wakes the call that was held for it', async () => {
    const held = agent.send([], { wait: true });
    await it.submit({});
    expect((await it.clock.run(held)).desired).toHaveLength(1);
  });
});

describe('a sync', () => {
  test('with nothing to say is held for a while', async () => {
    let answered = false;
    const held = agent.send([], { wait: true }).finally(() => void (answered = true));
    await it.clock.advance(TIMERS.longPollMs - 1);
    expect(answered).toBe(false);
    await it.clock.advance(1);
    expect(await held).toMatchObject({ desired: [], stop: [], acknowledged: [] });
  });

  test('an end is acknowledged, and again when it is said again', async () => {
    const order = await ordered();
    expect(await agent.sync([exited(order)])).toMatchObject({ acknowledged: [order.uid] });
    expect(await agent.sync([exited(order)])).toMatchObject({ acknowledged: [order.uid] });
    expect(await it.clock.run(it.it.getJob(it.admin, order.job))).toMatchObject({
      state: 'SUCCEEDED',
    });
  });

  test('what should not run is stopped at once; an end of it is taken without effect', async () => {
    const order = await ordered();
    const zombie = await it.joinAgent();
    const reply = await zombie.sync([runs(order), { uid: 'x.y', state: 'STARTING' }]);
    expect(reply.stop).toEqual([
      { uid: order.uid, cause: 'lost', graceMs: 0 },
      { uid: 'x.y', cause: 'lost', graceMs: 0 },
    ]);
    expect(await zombie.sync([exited(order)])).toMatchObject({ acknowledged: [order.uid] });
    expect((await agent.sync()).desired).toHaveLength(1);
  });

  test('a stop is said until the end is seen, also for what the agent does not have', async () => {
    const order = await ordered({ graceMs: 77 });
    await it.clock.run(it.it.cancelJob(it.admin, order.job));
    const stop = [{ uid: order.uid, cause: 'cancelled', graceMs: 77 }];
    expect(await agent.sync()).toMatchObject({ desired: [], stop });
    expect(await agent.sync([runs(order)])).toMatchObject({ desired: [], stop });
  });

  test('that is late or doubled is refused and changes nothing', async () => {
    const order = await ordered();
    await agent.sync([runs(order)]);
    const late = agent.send([exited(order)], { seq: agent.seq - 1 });
    await expect(it.clock.run(late)).rejects.toMatchObject({ code: 'STALE' });
    expect(it.controller.state.attempts.size).toBe(1);
  });

  test('that is overtaken while held is refused, not answered', async () => {
    const held = agent.send([], { wait: true });
    await it.clock.settle();
    await agent.sync();
    await expect(it.clock.run(held)).rejects.toMatchObject({ code: 'STALE' });
  });

  test('in another worker’s name is refused', async () => {
    const other = await it.joinAgent();
    const call = agent.send([], { worker: other.joined.worker });
    await expect(it.clock.run(call)).rejects.toMatchObject({ code: 'PERMISSION_DENIED' });
  });

  test('of a worker lost meanwhile ends', async () => {
    const held = agent.send([], { wait: true });
    await it.clock.settle();
    const worker = agent.joined.worker as never;
    it.controller.mutate({ kind: 'move-worker', worker, move: 'lose', reason: 'silent' });
    await expect(it.clock.run(held)).rejects.toMatchObject({ code: 'STALE' });
    await expect(it.clock.run(agent.send())).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });
  });

  test('generations rise, over all agents', async () => {
    const other = await it.joinAgent();
    const a = await agent.sync();
    const b = await other.sync();
    const c = await agent.sync();
    expect(a.generation < b.generation && b.generation < c.generation).toBe(true);
  });
});

describe('what a sync lacks', () => {
  test('is lost, if the agent had it and has heard of this controller', async () => {
    const order = await ordered({ maxInterruptions: 5 });
    await agent.sync([runs(order)]);
    await agent.sync([]);
    expect((await agent.sync([])).desired).toMatchObject([{ task: order.task, n: 2 }]);
  });

  test('proves nothing to a controller that has just started', async () => {
    const order = await ordered();
    await agent.sync([runs(order)]);
    await it.restart();
    // Sent before the restart, on its way since: its list may be older than the attempt.
    await agent.sync([]);
    expect(it.controller.state.attempts.has(order.uid as never)).toBe(true);
    await agent.sync([]);
    expect(it.controller.state.attempts.has(order.uid as never)).toBe(false);
  });
});

test('the first token of all stays valid over restarts and is made once', async () => {
  await it.restart();
  await it.restart();
  expect(it.controller.state.tokens.size).toBe(2);
  await it.clock.run(it.it.join(JOIN_SECRET, machine('m5')));
});
