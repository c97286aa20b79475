/** The agent's own logic, with a controller, a machine and a clock that the test moves. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { FakeController, FakeRuntime } from '../../test/support/fakeAgentWorld.ts';
import { ManualClock } from '../../test/support/manualClock.ts';
import { DroverError } from '../lib/errors.ts';
import { silentLog } from '../lib/log.ts';
import type { AttemptOrder, SyncReply, TunnelOrder } from '../protocol/agent.ts';
import { startAgent, type Agent, type AgentOptions, type Identity } from './agent.ts';

let clock: ManualClock;
let controller: FakeController;
let runtime: FakeRuntime;
let saved: Identity | null;
let agent: Agent | null;
let told: string[];

beforeEach(() => {
  clock = new ManualClock();
  controller = new FakeController(clock);
  runtime = new FakeRuntime();
  saved = null;
  agent = null;
  told = [];
});
afterEach(() => agent?.close());

async function start(more: Partial<AgentOptions> = {}): Promise<void> {
  agent = startAgent({
    transport: controller,
    runtime,
    identityFile: { load: () => saved, save: (identity) => void (saved = identity) },
    registration: { bootId: 'boot1' } as AgentOptions['registration'],
    joinToken: 'drj_1',
    clock,
    random: { next: () => 1, hex: () => '' },
    log: silentLog,
    onTunnel: ({ ticket }: TunnelOrder) => void told.push(`tunnel ${ticket}`),
    onJoined: (worker) => void told.push(`joined ${worker}`),
    onRefused: ({ code }) => void told.push(`refused ${code}`),
    ...more,
  });
  await clock.settle();
}

/** Joined, with the first sync under way. */
async function joined(): Promise<void> {
  await start();
  await controller.admit();
}

const order = (uid: string, more: Partial<AttemptOrder> = {}): AttemptOrder =>
  ({ uid, attemptLeaseMs: 60_000, graceMs: 10_000, ...more }) as AttemptOrder;

describe('a new agent', () => {
  test('joins, keeps its identity, and says what it sees', async () => {
    await joined();
    expect(controller.joins[0]?.token).toBe('drj_1');
    expect(saved).toMatchObject({ worker: 'w1', token: 'drw_w1', clusterId: 'c1', starts: 1 });
    expect(told).toEqual(['joined w1']);
    expect(controller.last).toMatchObject({
      token: 'drw_w1',
      request: {
        worker: 'w1',
        bootId: 'boot1',
        start: 1,
        seq: 1,
        epoch: 0,
        observed: [],
        wait: true,
      },
    });
  });

  test('without a join token is refused, and says so', async () => {
    await start({ joinToken: null });
    expect(told).toEqual(['refused UNAUTHENTICATED']);
    expect(controller.joins).toHaveLength(0);
  });

  test('whose join token is refused says so and goes on trying', async () => {
    await start();
    controller.joins[0]?.done.reject(new DroverError('UNAUTHENTICATED', 'revoked'));
    await clock.settle();
    expect(told).toEqual(['refused UNAUTHENTICATED']);
    await clock.advance(200);
    expect(controller.joins).toHaveLength(2);
  });
});

describe('a reply', () => {
  beforeEach(joined);

  test('is done: stop, forget, dial, start; and then the next sync goes out', async () => {
    runtime.see('old', 'ENDED');
    runtime.see('bad', 'RUNNING');
    await clock.settle();
    await controller.last.answer({
      desired: [order('new')],
      stop: [{ uid: 'bad', cause: 'cancelled', graceMs: 1 }],
      acknowledged: ['old'],
      tunnels: [{ gatewayUrl: 'wss://g', ticket: 't1' }],
    });
    expect(runtime.done).toEqual(['stop bad cancelled', 'forget old', 'start new']);
    expect(told).toContain('tunnel t1');
    expect(controller.last.request).toMatchObject({
      epoch: 5,
      observed: [
        { uid: 'bad', state: 'STOPPING' },
        { uid: 'new', state: 'RUNNING' },
      ],
    });
  });

  test('renews leases from when the question was sent, less the margin', async () => {
    runtime.see('a', 'RUNNING');
    runtime.see('b', 'ENDED');
    await clock.settle();
    const askedAt = clock.bootMs();
    await clock.advance(4000);
    await controller.last.answer();
    expect(runtime.leases).toEqual([{ uid: 'a', killAtBootMs: askedAt + 60_000 - 15_000 }]);
    expect(agent?.status()).toEqual({ worker: 'w1', lastContactBootMs: askedAt, attempts: 2 });
  });

  test.each<[string, Partial<SyncReply>]>([
    ['of an older epoch', { epoch: 4, generation: 99 }],
    ['of an older generation', { epoch: 5, generation: 1 }],
    ['of the same generation', { epoch: 5, generation: 10 }],
    ['of another cluster', { clusterId: 'c2', epoch: 6, generation: 11 }],
  ])('%s is not done', async (_what, older) => {
    await controller.last.answer({ generation: 10 });
    await controller.last.answer({ ...older, desired: [order('x')] });
    expect(runtime.done).toEqual([]);
  });

  test('of a newer epoch counts, whatever its generation', async () => {
    await controller.last.answer({ generation: 10 });
    await controller.last.answer({ epoch: 6, generation: 1, desired: [order('x')] });
    expect(runtime.done).toEqual(['start x']);
  });

  test('that lay unread for longer than its lease allows starts nothing', async () => {
    const asked = controller.last;
    await clock.advance(60_000 - 15_000 - 10_000);
    await asked.answer({ desired: [order('late'), order('long', { attemptLeaseMs: 90_000 })] });
    expect(runtime.done).toEqual(['start long']);
  });
});

describe('news on the machine', () => {
  beforeEach(joined);

  test('overtake a sync that is held, at once', async () => {
    const held = controller.last;
    runtime.see('a', 'RUNNING');
    runtime.see('b', 'RUNNING');
    await clock.settle();
    expect(controller.syncs).toHaveLength(2);
    expect(controller.last.request).toMatchObject({
      seq: 2,
      observed: [{ uid: 'a' }, { uid: 'b' }],
    });
    // The held one is refused, as the controller does it, and is not repeated.
    await held.refuse(new DroverError('STALE', 'a newer sync has come in'));
    expect(controller.syncs).toHaveLength(2);
    await controller.last.answer();
    expect(controller.syncs).toHaveLength(3);
  });

  test('the reply to an overtaken sync still counts if it is the newer one', async () => {
    const held = controller.last;
    runtime.see('a', 'RUNNING');
    await clock.settle();
    await held.answer({ desired: [order('x')] });
    expect(runtime.done).toEqual(['start x']);
  });
});

describe('no answer', () => {
  beforeEach(joined);

  test('is tried again, later and later, until one comes', async () => {
    const waits: number[] = [];
    for (let i = 0; i < 7; i++) {
      const before = controller.syncs.length;
      await controller.last.refuse(new Error('connection refused'));
      const since = clock.bootMs();
      while (controller.syncs.length === before) await clock.advance(100);
      waits.push(clock.bootMs() - since);
    }
    expect(waits).toEqual([200, 400, 800, 1600, 3200, 5000, 5000]);
    await controller.last.answer();
    await controller.last.refuse(new Error('connection refused'));
    const before = controller.syncs.length;
    await clock.advance(200);
    expect(controller.syncs).toHaveLength(before + 1);
  });

  test('that a sync was late is no failure, but not asked again in a circle', async () => {
    await controller.last.refuse(new DroverError('STALE', 'a newer sync has come in'));
    await clock.advance(199);
    expect(controller.syncs).toHaveLength(1);
    await clock.advance(1);
    expect(controller.syncs.map(({ request }) => request.seq)).toEqual([1, 2]);
  });

  test('is not tried sooner because something happens here', async () => {
    await controller.last.refuse(new Error('connection refused'));
    runtime.see('a', 'RUNNING');
    await clock.advance(199);
    expect(controller.syncs).toHaveLength(1);
    await clock.advance(1);
    expect(controller.syncs).toHaveLength(2);
  });

  test('for too long ends attempts one grace before the margin, and only then', async () => {
    const asked = clock.bootMs();
    await controller.last.answer({ desired: [order('a'), order('b', { attemptLeaseMs: 90_000 })] });
    await controller.last.refuse(new Error('unreachable'));
    // Between its timers the agent looks once a second.
    const left = asked + 60_000 - 15_000 - 10_000 - clock.bootMs();
    await clock.advance(left - 1000);
    expect(runtime.done.filter((what) => what.startsWith('stop'))).toEqual([]);
    await clock.advance(2000);
    expect(runtime.done).toContain('stop a lost');
    expect(runtime.done).not.toContain('stop b lost');
    await clock.advance(5000);
    expect(runtime.done.filter((what) => what === 'stop a lost')).toHaveLength(1);
  });

  test('a stepped wall clock ends nothing', async () => {
    await controller.last.answer({ desired: [order('a')] });
    clock.step(24 * 3_600_000);
    await clock.advance(5000);
    expect(runtime.done).toEqual(['start a']);
  });
});

test('a closed agent does nothing any more', async () => {
  await joined();
  const held = controller.last;
  await agent?.close();
  await held.answer({ desired: [order('x')] });
  await clock.advance(60_000);
  expect(runtime.done).toEqual(['close']);
  expect(controller.syncs).toHaveLength(1);
  expect(clock.waiting).toBe(0);
});
