/** Where a job would go and what it would cost, as the controller says it. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { TestController } from '../../test/support/testController.ts';
import type { PlanView } from '../protocol/budgets.ts';
import { jobSpec, type SubmittedSpec } from '../protocol/jobSpec.ts';

let it: TestController;
beforeEach(async () => {
  it = await new TestController().start();
});
afterEach(() => it.close());

const plan = (spec: Partial<SubmittedSpec>): Promise<PlanView> =>
  it.clock.run(it.it.plan(it.admin, jobSpec.parse({ command: ['true'], ...spec })));

test('now where there is room, later where there is none, never where no pool could', async () => {
  const early = await plan({});
  expect(early.options).toMatchObject([{ pool: 'default', startsAtMs: null, worker: null }]);
  const agent = await it.joinAgent();
  expect((await plan({})).options).toMatchObject([
    { pool: 'default', startsAtMs: it.clock.now(), worker: agent.joined.worker },
  ]);
  const large = await plan({ resources: { cpuMillis: 9000 } });
  expect(large.options).toMatchObject([
    { startsAtMs: null, reason: expect.stringContaining('has room') },
  ]);
  const nowhere = await plan({ pool: 'none' });
  expect(nowhere).toMatchObject({
    options: [],
    never: expect.stringContaining('there is no pool "none"'),
  });
  expect(it.controller.state.jobs.size).toBe(0);
});
