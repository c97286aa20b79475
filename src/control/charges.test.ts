/** What runs long is charged by the hour, and what is over its limits is stopped. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { TestController, type TestAgent } from '../../test/support/testController.ts';
import { HOUR_MS } from '../core/money.ts';
import { freePool } from '../core/placement/admission.ts';
import type { Budget } from '../model/budget.ts';
import type { AttemptUid } from '../model/ids.ts';
import type { SyncReply } from '../protocol/agent.ts';

const DOLLAR = 1_000_000;
let it: TestController;
let agent: TestAgent;
beforeEach(async () => {
  const pool = { ...freePool('default'), cpuHourMicros: DOLLAR };
  it = await new TestController({ pools: [pool] }).start();
  agent = await it.joinAgent();
});
afterEach(() => it.close());

async function running(fields: Parameters<TestController['submit']>[0] = {}): Promise<AttemptUid> {
  await it.submit(fields);
  const [order] = (await agent.sync()).desired;
  await agent.sync([{ uid: order!.uid, state: 'RUNNING' }]);
  return order!.uid as AttemptUid;
}

/** Time passes in which the agent goes on reporting. */
async function pass(uid: AttemptUid, ms: number): Promise<SyncReply> {
  for (let left = ms; left > 0; left -= 20_000) {
    await it.clock.advance(Math.min(left, 20_000));
    await agent.sync([{ uid, state: 'RUNNING' }]);
  }
  return agent.sync([{ uid, state: 'RUNNING' }]);
}

function budget(more: Partial<Budget>): void {
  const hours = { deviceHoursPerDay: null, deviceHoursPerMonth: null };
  const money = { deviceMillis: null, microsPerDay: null, microsPerMonth: null };
  const rest = { tenant: 'default', user: '', weight: 1, mode: 'hard', atLimit: 'stop' } as const;
  const limits = { ...hours, ...money, ...rest, ...more };
  it.controller.mutate({ kind: 'set-budget', by: 'op', budget: limits });
}

const spent = (): number => it.controller.state.accounts.of('default', '').account.dayMicros;

describe('a job that runs for hours', () => {
  test('is charged every hour', async () => {
    const uid = await running();
    await pass(uid, HOUR_MS - 60_000);
    expect(spent()).toBe(0);
    await pass(uid, 120_000);
    expect(spent()).toBeGreaterThan(0.99 * DOLLAR);
    await pass(uid, HOUR_MS);
    expect(spent()).toBeGreaterThan(1.99 * DOLLAR);
  });

  test('is stopped when its budget says so, and waits for the next day', async () => {
    const uid = await running();
    budget({ microsPerDay: 1.5 * DOLLAR });
    const reply = await pass(uid, HOUR_MS + 60_000);
    expect(reply.stop).toMatchObject([{ uid }]);
    const job = it.controller.state.attempts.get(uid)?.message;
    expect(job).toBe('the budget of default is used up');
  });

  test('goes on where the budget says finish', async () => {
    const uid = await running();
    budget({ microsPerDay: 1.5 * DOLLAR, atLimit: 'finish' });
    expect((await pass(uid, HOUR_MS + 60_000)).stop).toEqual([]);
  });

  test('ends for good at a limit of its own', async () => {
    const uid = await running({ maxCostMicros: DOLLAR / 2 });
    const reply = await pass(uid, HOUR_MS / 2 + 30_000);
    expect(reply.stop).toMatchObject([{ uid }]);
    const [live] = it.controller.state.jobs.values();
    expect(live?.job.cancelledBy).toBe('its cost limit of 0.5');
  });
});
