/** Why a job waits, as the controller says it. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { machine, TestController } from '../../test/support/testController.ts';
import type { Principal } from '../model/token.ts';
import type { JobId } from '../model/ids.ts';
import { budgetInput } from '../protocol/budgets.ts';
import type { WhyView } from '../protocol/why.ts';

let it: TestController;
beforeEach(async () => {
  it = await new TestController().start();
});
afterEach(() => it.close());

const why = (id = '', who: Principal = it.admin): Promise<WhyView> =>
  it.clock.run(it.it.why(who, id));
const large = { resources: { cpuMillis: 9000 } };

test('workers are counted by why they were passed over', async () => {
  const agents = [await it.joinAgent(), await it.joinAgent(), await it.joinAgent()];
  await it.clock.run(it.it.setDraining(it.admin, agents[0]?.joined.worker ?? '', true));
  const [id] = await it.submit(large);
  const { code, workers, suggestions, sentence } = await why(id);
  expect(code).toBe('NEVER_FITS_NOW');
  expect(sentence).toContain('it needs a worker with 9 CPUs');
  expect(new Map(workers.map(({ reason, count }) => [reason, count]))).toEqual(
    new Map([
      ['closed', 1],
      ['cpus', 2],
    ]),
  );
  expect(suggestions).not.toEqual([]);
});

test('who is ahead, and by which rule; other tenants are neither shown nor counted', async () => {
  const [batch] = await it.submit({ ...large, name: 'older' });
  const [production] = await it.submit({ ...large, priority: 'production' });
  const stranger = { ...it.admin, tenant: 'other' };
  const { mutate } = it.controller;
  const [last] = await it.submit(large);
  const live = it.controller.state.jobs.get(last as JobId)!;
  const request = { specs: [live.job.spec], links: [], idempotencyKey: null, bodyHash: null };
  mutate({ kind: 'submit', tenant: 'other', owner: 'x', submittingPrincipal: 'x', ...request });
  const explained = await why(last);
  expect(explained).toMatchObject({ position: 3, ahead: 2 });
  expect(explained.aheadSample).toEqual([
    { job: production, name: '', rule: 'it is of a higher band' },
    { job: batch, name: 'older', rule: 'it is older' },
  ]);
  await expect(why(last, stranger)).rejects.toMatchObject({ code: 'NOT_FOUND' });
});

test('a job that waits for others names them and how they must end', async () => {
  const [first = ''] = await it.submit({ ...large, name: 'prepare' });
  const [second = ''] = await it.submit({ ...large });
  const after = [{ job: first }, { job: second, when: 'any' as const }];
  const [id] = await it.submit({ ...large, after });
  expect(await why(id)).toMatchObject({
    code: 'AFTER',
    position: null,
    sentence: `it starts when ${first} (prepare) has succeeded, and ${second} has ended`,
    suggestions: [`see what holds it: drover why ${first}`],
  });
});

test('a job held by a hard budget says whose it is, and how much of it is used', async () => {
  const { tenant, user } = it.admin;
  const gpu = { kind: 'gpu' as const, model: 'A100', memoryBytes: 1 };
  const devices = [0, 1, 2].map((index) => ({ index, ...gpu }));
  await it.joinAgent({ resources: { ...machine('m').resources, devices } });
  const budget = budgetInput.parse({ tenant, user: '', deviceMillis: 1500 });
  await it.clock.run(it.it.setBudget(it.admin, budget));
  const oneDevice = { resources: { device: { count: 1 } } };
  const [runs, held] = await it.submit(oneDevice, oneDevice);
  await it.clock.advance(2000);
  expect((await why(runs)).code).toBe('RUNNING');
  expect(await why(held)).toMatchObject({
    code: 'QUOTA',
    sentence: expect.stringContaining(`tenant ${tenant} is at the limit of devices`),
    quota: { tenant, user: '', what: 'devices', limit: 1.5, used: 1 },
  });
  const hours = budgetInput.parse({ tenant, user, deviceHoursPerDay: 5, deviceHoursPerMonth: 1 });
  await it.clock.run(it.it.setBudget(it.admin, hours));
  await it.clock.run(it.it.deleteBudget(it.admin, tenant, ''));
  await it.clock.advance(2000);
  expect((await why(held)).quota).toEqual({
    tenant,
    user,
    what: 'device hours of this month',
    limit: 1,
    used: 1,
  });
});

test('a task that failed says when it starts again', async () => {
  const agent = await it.joinAgent();
  const [id] = await it.submit({ retries: 3 });
  const { desired } = await agent.sync();
  await agent.sync([{ uid: desired[0]?.uid ?? '', state: 'ENDED', cause: 'exited', exitCode: 3 }]);
  const explained = await why(id);
  expect(explained.code).toBe('BACKOFF');
  expect(explained.sentence).toMatch(/^task 0 starts again in 1 s \(exit code 3; retry 1 of 3\)$/);
  expect(explained.predictedStartAtMs).toBeGreaterThan(explained.atMs);
});

test('what runs, is being cancelled, or has ended does not wait', async () => {
  const agent = await it.joinAgent();
  const [id = ''] = await it.submit({});
  const { desired } = await agent.sync();
  const uid = desired[0]?.uid ?? '';
  expect(await why(id)).toMatchObject({ code: 'RUNNING', position: null });
  await agent.sync([{ uid, state: 'RUNNING' }]);
  expect((await why(id)).sentence).toBe('it runs; nothing of it waits');
  await it.clock.run(it.it.cancelJob(it.admin, id));
  expect(await why(id)).toMatchObject({ code: 'CANCELLING', tasks: { running: 1 } });
  await agent.sync([{ uid, state: 'ENDED', cause: 'cancelled' }]);
  expect(await why(id)).toMatchObject({
    code: 'ENDED',
    state: 'CANCELLED',
    sentence: 'it has ended, CANCELLED: cancelled by admin',
  });
});
