/** An agent that ends with its machine: by silence, by refusal, by notice; time is the test's. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { FakeController, FakeRuntime } from '../../test/support/fakeAgentWorld.ts';
import { ManualClock } from '../../test/support/manualClock.ts';
import { DroverError } from '../lib/errors.ts';
import { silentLog } from '../lib/log.ts';
import type { AttemptOrder } from '../protocol/agent.ts';
import { startAgent, type Agent, type AgentOptions } from './agent.ts';
import { watchMachineEnd, type MachineEnd } from './machineEnd.ts';

const HOUR_MS = 3_600_000;
let clock: ManualClock;
let controller: FakeController;
let runtime: FakeRuntime;
let agent: Agent;
let end: MachineEnd;
let over: string[];
let unsent: number;

beforeEach(() => {
  clock = new ManualClock();
  controller = new FakeController(clock);
  runtime = new FakeRuntime();
  over = [];
  unsent = 0;
});
afterEach(async () => {
  end.close();
  await agent.close();
});

async function start(selfDestructAfterMs = HOUR_MS): Promise<void> {
  end = watchMachineEnd({
    ...{ transport: controller, runtime, clock, log: silentLog, selfDestructAfterMs },
    lastContactBootMs: () => agent.status().lastContactBootMs,
    unsent: () => unsent,
    onOver: (kind, reason) => void over.push(`${kind}: ${reason}`),
  });
  agent = startAgent({
    transport: end.transport,
    runtime,
    identityFile: { load: () => null, save: () => undefined },
    registration: { bootId: 'boot1' } as AgentOptions['registration'],
    joinToken: 'drj_1',
    clock,
    random: { next: () => 1, hex: () => '' },
    log: silentLog,
    onTunnel: () => undefined,
  });
  await clock.settle();
}

async function joined(...uids: string[]): Promise<void> {
  await start();
  await controller.admit();
  const orders = uids.map((uid) => ({ uid, attemptLeaseMs: 60_000, graceMs: 10_000 }));
  await controller.last.answer({ desired: orders as AttemptOrder[] });
}

const refused = new DroverError('UNAVAILABLE', 'away');

test('selfDestructAfterMs: counts from the last answer, or from its start', async () => {
  await start();
  await clock.advance(HOUR_MS - 1000);
  expect(over).toEqual([]);
  await clock.advance(1000);
  expect(over).toEqual([expect.stringMatching(/^silent: no contact for 36\d+ ms/)]);
  await clock.advance(HOUR_MS);
  expect(over).toHaveLength(1);
});

test('an answer starts the count again; 0 means never', async () => {
  await joined();
  for (let hour = 0; hour < 3; hour++) {
    await clock.advance(HOUR_MS - 60_000);
    // The first was sent long ago, and counts from then.
    await controller.last.answer();
    await controller.last.answer();
  }
  expect(over).toEqual([]);
  await clock.advance(HOUR_MS + 1000);
  expect(over).toHaveLength(1);
  end.close();
  await agent.close();
  over = [];
  await start(0);
  await clock.advance(2 * HOUR_MS);
  expect(over).toEqual([]);
});

test('what still runs is stopped first, and waited for only so long', async () => {
  await joined('a1');
  await controller.last.refuse(refused);
  await clock.advance(HOUR_MS - 2000);
  runtime.see('a1', 'RUNNING');
  runtime.done.length = 0;
  await clock.advance(3000);
  expect(runtime.done).toContain('stop a1 lost');
  expect(over).toEqual([]);
  await clock.advance(10_000 + 30_000);
  expect(over).toHaveLength(1);
});

test('INSTANCE_ENDED ends it at once, at its first join or when it joins again', async () => {
  await joined('a1');
  await controller.last.refuse(new DroverError('UNAUTHENTICATED', 'revoked'));
  await clock.advance(200);
  const { done } = controller.joins.at(-1)!;
  done.reject(new DroverError('INSTANCE_ENDED', 'instance i1 is to end'));
  await clock.settle();
  expect(runtime.done).toContain('stop a1 lost');
  runtime.see('a1', 'ENDED');
  await clock.advance(500);
  expect(over).toEqual(['unwanted: instance i1 is to end']);
});

test('a notice drains the worker, stops with grace, and waits for the last word', async () => {
  await joined('a1');
  unsent = 1;
  const parked = controller.syncs.length;
  end.leave('the machine ends: SIGUSR1');
  expect(runtime.done).toContain('stop a1 preempted');
  await clock.advance(300);
  expect(controller.syncs.length).toBe(parked + 1);
  const { request } = controller.last;
  const problem = { check: 'ending', severity: 'drain', message: 'the machine ends: SIGUSR1' };
  expect([request.health?.problems, request.wait]).toEqual([[problem], false]);
  // Assigned before the notice came in: it is stopped too, as an interruption.
  await controller.last.answer({
    desired: [{ uid: 'a2', attemptLeaseMs: 60_000, graceMs: 10_000 } as AttemptOrder],
  });
  await clock.advance(600);
  expect(runtime.done).toContain('stop a2 preempted');
  // Told once; from then on a sync may be parked.
  expect(controller.last.request.wait).toBe(true);
  await clock.advance(10 * 60_000);
  expect(over).toEqual([]);
  runtime.see('a1', 'ENDED');
  runtime.see('a2', 'ENDED');
  await clock.settle();
  await controller.last.answer({ acknowledged: ['a1', 'a2'] });
  await clock.advance(1000);
  expect(over).toEqual([]);
  unsent = 0;
  await clock.advance(500);
  expect(over).toEqual(['left: the machine ends: SIGUSR1']);
});

test('a notice nobody can be told of: the last word waits a minute', async () => {
  await joined('a1');
  end.leave('the machine ends');
  await clock.advance(300);
  await controller.last.refuse(refused);
  runtime.see('a1', 'ENDED');
  await clock.advance(59_000);
  expect(over).toEqual([]);
  await clock.advance(2000);
  expect(over).toEqual(['left: the machine ends']);
});

test('a notice before it has ever joined: nothing to wait for', async () => {
  await start();
  end.leave('the machine ends');
  await clock.advance(500);
  expect(over).toEqual(['left: the machine ends']);
});
