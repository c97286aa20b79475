/** Receipts from the real controller: of what ended, what runs, and nobody else's. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { TestController, type TestAgent } from '../../test/support/testController.ts';
import { HOUR_MS } from '../core/money.ts';
import { freePool } from '../core/placement/admission.ts';

let it: TestController;
let agent: TestAgent;
beforeEach(async () => {
  const pool = { ...freePool('default'), cpuHourMicros: 6_000_000 };
  it = await new TestController({ pools: [pool] }).start();
  agent = await it.joinAgent();
});
afterEach(() => it.close());

const ended = (exitCode: number, cause: 'exited' | 'oom' = 'exited') =>
  ({ state: 'ENDED', cause, exitCode }) as const;

async function started(): Promise<string> {
  const [order] = (await agent.sync()).desired;
  await agent.sync([{ uid: order!.uid, state: 'RUNNING' }]);
  return order!.uid;
}

test('sums up two attempts, their cost and where they were', async () => {
  const [id = ''] = await it.submit({ name: 'train', retries: 1 });
  const first = await started();
  await it.clock.advance(10_000);
  const live = await it.clock.run(it.it.receipt(it.admin, id));
  expect(live).toMatchObject({ state: 'RUNNING', endedAtMs: null, attempts: 1 });
  expect(live.time.runningMs).toBeGreaterThanOrEqual(10_000);
  await agent.sync([{ uid: first, ...ended(1, 'oom') }]);
  await it.clock.advance(5000);
  const second = await started();
  await it.clock.advance(20_000);
  await agent.sync([{ uid: second, ...ended(0) }]);
  const receipt = await it.clock.run(it.it.receipt(it.admin, id));
  expect(receipt).toMatchObject({
    ...{ job: id, name: 'train', state: 'SUCCEEDED', exitCode: 0, attempts: 2, complete: true },
    lost: [{ fault: 'memory', attempts: 1 }],
  });
  const [place] = receipt.ranOn;
  expect(place).toMatchObject({ pool: 'default', attempts: 2 });
  expect(place?.name).not.toBe('');
  const ranMs = receipt.time.runningMs;
  expect(ranMs).toBeGreaterThanOrEqual(30_000);
  expect(Math.abs(receipt.costMicros - (ranMs / HOUR_MS) * 6_000_000)).toBeLessThan(3);
});

test('a stop is told apart from the run before it', async () => {
  const [id = ''] = await it.submit({});
  const uid = await started();
  await it.clock.advance(10_000);
  await it.clock.run(it.it.cancelJob(it.admin, id));
  await it.clock.advance(3000);
  await agent.sync([{ uid, ...ended(143) }]);
  const receipt = await it.clock.run(it.it.receipt(it.admin, id));
  expect(receipt.state).toBe('CANCELLED');
  expect(receipt.time.stoppingMs).toBeGreaterThanOrEqual(3000);
  expect(receipt.time.runningMs).toBeGreaterThanOrEqual(10_000);
});

test("another tenant's job has none", async () => {
  const [id = ''] = await it.submit({});
  const stranger = { ...it.admin, tenant: 'other' };
  await expect(it.clock.run(it.it.receipt(stranger, id))).rejects.toThrow(`there is no job ${id}`);
});
