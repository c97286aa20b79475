/** What is refused at submission because of a quota. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { TestController } from '../../test/support/testController.ts';
import { budgetInput } from '../protocol/budgets.ts';

let it: TestController;
beforeEach(async () => {
  it = await new TestController().start();
});
afterEach(() => it.close());

const quota = (user: string, devices: number, mode: 'hard' | 'soft' = 'hard') => {
  const { tenant } = it.admin;
  const budget = budgetInput.parse({ tenant, user, deviceMillis: devices * 1000, mode });
  return it.clock.run(it.it.setBudget(it.admin, budget));
};
const gang = { shape: { kind: 'gang' as const, size: 3 }, resources: { device: { count: 2 } } };

test('more devices at once than a hard quota ever allows are refused', async () => {
  await quota('', 4);
  await expect(it.submit({}, gang)).rejects.toMatchObject({
    code: 'OVER_QUOTA',
    message: 'it needs 6 devices at once, the quota of tenant default is 4',
  });
  expect(it.controller.state.jobs.size).toBe(0);
  await quota('', 6);
  await quota(it.admin.user, 5);
  await expect(it.submit(gang)).rejects.toMatchObject({ code: 'OVER_QUOTA' });
});

test('a soft quota, and what may wait for its turn, are not', async () => {
  await quota('', 4, 'soft');
  await quota(it.admin.user, 6);
  expect(await it.submit(gang, gang)).toHaveLength(2);
});
