/** People are told once of what happened, whatever happens to receivers and to the controller. */
import { afterEach, describe, expect, test } from 'vitest';
import { TestController, type TestAgent } from '../../test/support/testController.ts';
import { HOUR_MS } from '../core/money.ts';
import { freePool } from '../core/placement/admission.ts';
import type { NoticeMessage } from '../model/noticeMessage.ts';
import type { Channel } from '../notify/contract.ts';
import type { SubmittedSpec } from '../protocol/jobSpec.ts';
import { GIVE_UP_MS, SEND_TIMEOUT_MS } from './notices.ts';

const DOLLAR = 1_000_000;

/** Takes, refuses or ignores what it is sent. */
class Receiver implements Channel {
  readonly tenants: string[] = [];
  readonly got: NoticeMessage[] = [];
  mode: 'take' | 'refuse' | 'ignore' = 'take';

  check = async (): Promise<void> => undefined;

  async send(message: NoticeMessage): Promise<void> {
    this.got.push(structuredClone(message));
    if (this.mode === 'refuse') throw new Error('the receiver answered 500');
    if (this.mode === 'ignore') await new Promise(() => undefined);
  }

  get kinds(): string[] {
    return this.got.map(({ kind }) => kind);
  }
}

let it: TestController;
let agent: TestAgent;
let ops: Receiver;
let other: Receiver;
async function begin(
  more: ConstructorParameters<typeof TestController>[0] = {},
): Promise<TestController> {
  ops = new Receiver();
  other = new Receiver();
  const channels = new Map([
    ['ops', ops],
    ['other', other],
  ]);
  const pools = [{ ...freePool('default'), cpuHourMicros: DOLLAR }];
  it = await new TestController({ channels, pools, ...more }).start();
  agent = await it.joinAgent();
  return it;
}
afterEach(() => it.close());

const ALL = ['started', 'interrupted', 'failed', 'done'] as const;
type On = (typeof ALL)[number];
const telling = (to = 'ops', on: readonly On[] = ALL): Partial<SubmittedSpec> => ({
  name: 'train',
  rules: { notify: [{ to, on: [...on] }] },
});

async function started(): Promise<string> {
  const [order] = (await agent.sync()).desired;
  await agent.sync([{ uid: order!.uid, state: 'RUNNING' }]);
  return order!.uid;
}

async function end(uid: string, exitCode = 0): Promise<void> {
  await agent.sync([{ uid, state: 'ENDED', cause: 'exited', exitCode }]);
  await pass(1000);
}

/** History is read on another connection: real time must pass for it. */
async function pass(ms: number): Promise<void> {
  await it.clock.advance(ms);
  for (let turn = 0; turn < 20; turn++) {
    await new Promise((resolve) => setTimeout(resolve, 1));
    await it.clock.settle();
  }
}

const queued = (): number => it.controller.state.notices.queued.size;

describe('a job that names a channel', () => {
  test('tells of its start and its end, with the receipt', async () => {
    await begin();
    const [id] = await it.submit(telling());
    await end(await started());
    expect(ops.kinds).toEqual(['started', 'done']);
    expect(ops.got[0]).toMatchObject({ job: id, subject: `train (${id}) has started` });
    expect(ops.got[1]).toMatchObject({
      ...{ tenant: 'default', cluster: 'test', subject: `train (${id}) is done` },
      receipt: { job: id, state: 'SUCCEEDED', attempts: 1 },
    });
    expect(new Set(ops.got.map((one) => one.id)).size).toBe(2);
    expect(queued()).toBe(0);
    const events = await it.clock.run(it.it.listEvents(it.admin, id!, { limit: 100 }));
    const sent = events.items.filter(({ kind }) => kind === 'notice.sent');
    expect(sent.map(({ data }) => data['about'])).toEqual(['started', 'done']);
  });

  test('tells only of what it names; one that names nothing tells nobody', async () => {
    await begin();
    await it.submit(telling('ops', ['failed']), {});
    const first = await started();
    await end(first, 3);
    await end(await started());
    expect(ops.kinds).toEqual(['failed']);
    expect(ops.got[0]?.subject).toMatch(/^train \(\S+\) failed with exit code 3$/);
    expect(ops.got[0]?.lines.join(' ')).toContain('drover logs');
  });

  test('counts the tasks that one lost machine took in one notice', async () => {
    await begin();
    await it.submit({ ...telling(), shape: { kind: 'array', indices: [0, 1, 2], limit: 0 } });
    const orders = (await agent.sync()).desired;
    await agent.sync(orders.map(({ uid }) => ({ uid, state: 'RUNNING' as const })));
    await agent.sync([]);
    await pass(1000);
    expect(ops.kinds).toEqual(['started', 'interrupted']);
    expect(ops.got[1]?.facts['tasks']).toBe(3);
  });

  test('is refused where the channel does not exist, with the nearest name', async () => {
    await begin();
    await expect(it.submit(telling('opps'))).rejects.toMatchObject({
      message: 'there is no notification channel "opps"',
      hint: 'did you mean "ops"?',
    });
    ops.tenants.push('physics');
    await expect(it.submit(telling('ops'))).rejects.toThrow('no notification channel "ops"');
  });
});

describe('a receiver', () => {
  test('that is down is tried again, later and later, with the same id', async () => {
    await begin();
    ops.mode = 'refuse';
    await it.submit(telling('ops', ['started']));
    await started();
    await pass(1000);
    expect(ops.got).toHaveLength(1);
    await pass(6000);
    expect(ops.got).toHaveLength(2);
    await pass(6000);
    expect(ops.got).toHaveLength(2);
    ops.mode = 'take';
    await pass(6000);
    expect(ops.got).toHaveLength(3);
    expect(new Set(ops.got.map(({ id }) => id)).size).toBe(1);
    expect(queued()).toBe(0);
  });

  test('that never answers slows nobody, and is given up after a while', async () => {
    await begin();
    ops.mode = 'ignore';
    const rules = { notify: [{ to: 'ops' }, { to: 'other' }] };
    for (let n = 0; n < 6; n++) {
      await it.submit({ rules });
      await end(await started());
    }
    expect(other.got).toHaveLength(6);
    expect(ops.got).toHaveLength(4);
    await pass(SEND_TIMEOUT_MS + 1000);
    expect(ops.got.length).toBeGreaterThanOrEqual(6);
    const { loops } = await it.clock.run(it.it.readiness());
    expect(loops.find(({ name }) => name === 'notices')).toMatchObject({ healthy: true });
  });

  test('that is down for a day is not told any more, and an event says so', async () => {
    await begin();
    ops.mode = 'refuse';
    const [id] = await it.submit(telling('ops', ['done']));
    await end(await started());
    it.clock.step(GIVE_UP_MS);
    await pass(10_000);
    expect(queued()).toBe(0);
    const { items } = await it.clock.run(it.it.listEvents(it.admin, id!, { limit: 100 }));
    expect(items.at(-1)).toMatchObject({
      kind: 'notice.dropped',
      data: { channel: 'ops', about: 'done', reason: 'the receiver answered 500' },
    });
  });
});

describe('a restart', () => {
  test('loses nothing that was not delivered', async () => {
    await begin();
    ops.mode = 'refuse';
    const [id] = await it.submit(telling());
    await end(await started());
    ops.mode = 'take';
    await it.restart();
    await pass(60_000);
    expect(queued()).toBe(0);
    expect(ops.kinds.slice(-2).toSorted()).toEqual(['done', 'started']);
    expect(ops.got.at(-1)?.job).toBe(id);
  });

  test('between the sending and the record of it sends the same notice again', async () => {
    let broken = false;
    await begin({
      commit: (store, batch) =>
        broken && ops.got.length > 0 ? new Promise(() => undefined) : store.commit(batch),
    });
    broken = true;
    await it.submit(telling('ops', ['started']));
    await started();
    await pass(1000);
    expect(ops.got).toHaveLength(1);
    // The record never reached the disk: what the next controller finds is the notice.
    await it.crash();
    broken = false;
    await it.start();
    await pass(1000);
    expect(ops.got).toHaveLength(2);
    expect(ops.got[1]?.id).toBe(ops.got[0]?.id);
    expect(queued()).toBe(0);
  });
});

describe('a default', () => {
  test('is for jobs that name nobody themselves', async () => {
    await begin({ tell: { default: [{ to: 'other', on: ['done'] }] } });
    await it.submit({ name: 'quiet' });
    await end(await started());
    await it.submit(telling('ops', ['done']));
    await end(await started());
    expect(other.kinds).toEqual(['done']);
    expect(ops.kinds).toEqual(['done']);
  });

  test('hears of a budget once at each level, and of the highest only', async () => {
    await begin({ tell: { '*': [{ to: 'ops', on: ['budget'] }] } });
    budget(10 * DOLLAR);
    const uid = (await it.submit({}), await started());
    const work = async (hours: number): Promise<void> => {
      for (let left = hours * HOUR_MS; left > 0; left -= 20_000) {
        await it.clock.advance(20_000);
        await agent.sync([{ uid, state: 'RUNNING' }]);
      }
      await pass(1000);
    };
    await work(5.1);
    expect(ops.got.map(({ facts }) => facts['percent'])).toEqual([50]);
    expect(ops.got[0]).toMatchObject({
      ...{ kind: 'budget', job: null, facts: { period: 'day', unit: 'money', limit: 10 } },
      subject: 'default has used 50 % of the money of this day',
    });
    await work(1);
    expect(ops.got).toHaveLength(1);
    // Of a smaller limit more is used: the highest level passed is told, and only that one.
    budget(6 * DOLLAR);
    await work(1);
    expect(ops.got.map(({ facts }) => facts['percent'])).toEqual([50, 100]);
    expect(it.controller.state.accounts.of('default', '').account.told).toBe('day-money:100');
  }, 20_000);
});

function budget(microsPerDay: number): void {
  const hours = { deviceHoursPerDay: null, deviceHoursPerMonth: null };
  const money = { deviceMillis: null, microsPerDay, microsPerMonth: null };
  const rest = { tenant: 'default', user: '', weight: 1, mode: 'soft', atLimit: 'finish' } as const;
  it.controller.mutate({ kind: 'set-budget', by: 'op', budget: { ...hours, ...money, ...rest } });
}
