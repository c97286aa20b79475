/** An agent that starts on the identity of an earlier one. */
import { createHash } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { FakeController, FakeRuntime } from '../../test/support/fakeAgentWorld.ts';
import { ManualClock } from '../../test/support/manualClock.ts';
import { DroverError } from '../lib/errors.ts';
import { silentLog } from '../lib/log.ts';
import { startAgent, type Agent, type AgentOptions, type Identity } from './agent.ts';

let clock: ManualClock;
let controller: FakeController;
let runtime: FakeRuntime;
let saved: Identity | null;
let agent: Agent | null;
let told: string[];

/** Of an agent that has told the controller what it would tell now. */
const AGAIN: Identity = {
  ...{ worker: 'w7', token: 'drw_w7', clusterId: 'c1', starts: 3 },
  told: createHash('sha256').update('{}').digest('hex'),
};

beforeEach(() => {
  clock = new ManualClock();
  controller = new FakeController(clock);
  runtime = new FakeRuntime();
  saved = AGAIN;
  agent = null;
  told = [];
});
afterEach(() => agent?.close());

async function start(more: Partial<AgentOptions> = {}): Promise<void> {
  agent = startAgent({
    ...{ transport: controller, runtime, joinToken: 'drj_1', clock, log: silentLog },
    identityFile: { load: () => saved, save: (identity) => void (saved = identity) },
    registration: { bootId: 'boot1' } as AgentOptions['registration'],
    random: { next: () => 1, hex: () => '' },
    onTunnel: () => undefined,
    onJoined: (worker) => void told.push(`joined ${worker}`),
    onRefused: ({ code }) => void told.push(`refused ${code}`),
    ...more,
  });
  await clock.settle();
}

test('is the same worker, with later syncs and what still runs', async () => {
  runtime.see('a', 'RUNNING');
  await start();
  expect(controller.joins).toHaveLength(0);
  expect(saved).toMatchObject({ worker: 'w7', starts: 4 });
  expect(controller.last.request).toMatchObject({
    worker: 'w7',
    start: 4,
    seq: 1,
    epoch: 0,
    observed: [{ uid: 'a', state: 'RUNNING' }],
  });
});

test('joins anew when its worker was lost meanwhile', async () => {
  await start();
  await controller.last.refuse(new DroverError('UNAUTHENTICATED', 'not valid any more'));
  await clock.advance(200);
  await controller.admit('w8');
  expect(saved).toMatchObject({ worker: 'w8', starts: 1 });
  expect(controller.last).toMatchObject({ token: 'drw_w8', request: { worker: 'w8', seq: 2 } });
  expect(told).toEqual(['joined w7', 'joined w8']);
});

test('as another machine than it told tells so, and is the same worker', async () => {
  const registration = { bootId: 'boot2', name: 'renamed' } as AgentOptions['registration'];
  await start({ registration });
  expect(controller.syncs).toHaveLength(0);
  await controller.admit('w7');
  expect(saved).toMatchObject({ worker: 'w7', starts: 1 });
  expect(controller.last).toMatchObject({ request: { worker: 'w7', bootId: 'boot2' } });
  await agent?.close();
  await start({ registration });
  expect(controller.joins).toHaveLength(1);
});

test('as another machine, but with a token that is over, goes on as it was', async () => {
  await start({ registration: { name: 'renamed' } as AgentOptions['registration'] });
  controller.joins[0]?.done.reject(new DroverError('UNAUTHENTICATED', 'revoked'));
  await clock.settle();
  expect(told).toEqual(['joined w7']);
  expect(controller.last).toMatchObject({ token: 'drw_w7', request: { worker: 'w7', start: 4 } });
});

test('and cannot join says so', async () => {
  await start({ joinToken: null });
  await controller.last.refuse(new DroverError('UNAUTHENTICATED', 'not valid any more'));
  expect(told).toEqual(['joined w7', 'refused UNAUTHENTICATED']);
});
