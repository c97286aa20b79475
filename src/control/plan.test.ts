/** Where a job would go and what it would cost, as the controller says it. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { TestController } from '../../test/support/testController.ts';
import { freePool, type PoolPolicy } from '../core/placement/admission.ts';
import type { PlanView } from '../protocol/budgets.ts';
import { NO_POLICY } from '../protocol/policy.ts';
import { jobSpec, type SubmittedSpec } from '../protocol/jobSpec.ts';
import { seededRandom } from '../lib/random.ts';
import { createPlanner } from './planner.ts';
import type { Committer } from './committer.ts';
import { createPlan } from './plan.ts';

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
    { pool: 'default', startsAtMs: it.clock.now(), worker: agent.request.name },
  ]);
  const large = await plan({ resources: { cpuMillis: 9000 } });
  expect(large.options).toMatchObject([
    { startsAtMs: null, reason: expect.stringContaining('the largest has 8 CPUs') },
  ]);
  const nowhere = await plan({ pool: 'none' });
  expect(nowhere).toMatchObject({
    options: [],
    never: expect.stringContaining('there is no pool "none"'),
  });
  expect(it.controller.state.jobs.size).toBe(0);
});

test('prices by pool: of all tasks, for as long as they may run; terms are kept', async () => {
  const { state } = it.controller;
  const rented: PoolPolicy = {
    ...freePool('rented'),
    deviceHourMicros: 2_000_000,
    cpuHourMicros: 50_000,
    terms: { tenants: [], users: [], interruptibleOnly: false, marketplace: true },
  };
  const pools = [rented, freePool('lab')];
  const committer = { durable: async () => undefined } as Committer;
  const planner = createPlanner(seededRandom(1));
  const settled = async (): Promise<void> => undefined;
  const priced = createPlan({
    ...{ state, planner, settled, committer, clock: it.clock, pools, policy: NO_POLICY },
  });
  const spec = jobSpec.parse({
    command: ['x'],
    resources: { cpuMillis: 1000, device: { count: 2 } },
    shape: { kind: 'array', indices: [0, 1, 2], limit: 2 },
    timeLimitMs: 2 * 3_600_000,
  });
  const { options } = await priced.plan(it.admin, { ...spec, pool: 'rented' });
  expect(options).toMatchObject([{ pricePerHourMicros: 8_100_000, costMicros: 24_300_000 }]);
  const placement = { ...spec.placement, trust: 'restricted' as const };
  const restricted = await priced.plan(it.admin, { ...spec, placement });
  expect(restricted.options.map(({ pool }) => pool)).not.toContain('rented');
  const nowhere = await priced.plan(it.admin, { ...spec, placement, pool: 'rented' });
  expect(nowhere).toEqual({ options: [], never: 'no pool takes such work' });
});
