/** What every Coordinator must do about plans, budgets and usage. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Principal, Scope } from '../../src/model/token.ts';
import { budgetInput, USAGE_BY, usageQuery } from '../../src/protocol/budgets.ts';
import type { Coordinator } from '../../src/protocol/coordinator.ts';
import { jobSpec } from '../../src/protocol/jobSpec.ts';
import type { CoordinatorUnderTest } from './running.contract.ts';

export function accountsContract(
  name: string,
  makeCoordinator: () => Promise<CoordinatorUnderTest>,
): void {
  describe(`budgets and usage: ${name}`, () => {
    let made: CoordinatorUnderTest;
    let it: Coordinator;
    let admin: Principal;
    beforeEach(async () => {
      made = await makeCoordinator();
      it = made.coordinator;
      admin = (await it.authenticate(made.adminSecret))!;
    });
    afterEach(() => made.close());

    const only = (...scopes: Scope[]): Principal => ({ ...admin, scopes });

    test('a budget is what was set last, and its version rises', async () => {
      const first = budgetInput.parse({ tenant: 'lab', user: '', deviceMillis: 8000, weight: 2.5 });
      const { version: _, ...limits } = first;
      const view = await it.setBudget(admin, first);
      expect(view).toMatchObject({ ...limits, version: 1 });
      expect(view.used).toMatchObject({ deviceMillis: 0, microsDay: 0, heldMicros: 0 });
      const second = { ...first, weight: 1, microsPerDay: 5, version: 1 };
      expect(await it.setBudget(admin, second)).toMatchObject({ ...second, version: 2 });
      expect(await it.listBudgets(admin)).toMatchObject([{ ...second, version: 2 }]);
      const late = it.setBudget(admin, { ...first, version: 1 });
      await expect(late).rejects.toMatchObject({ code: 'STALE' });
      const unseen = it.setBudget(admin, { ...first, version: 0 });
      await expect(unseen).rejects.toMatchObject({ code: 'STALE' });
    });

    test('tenant and user have their own; deleting one leaves the other', async () => {
      const whole = budgetInput.parse({ tenant: 'lab', user: '' });
      await it.setBudget(admin, whole);
      await it.setBudget(admin, { ...whole, user: 'ada' });
      await it.deleteBudget(admin, 'lab', '');
      expect(await it.listBudgets(admin)).toMatchObject([{ tenant: 'lab', user: 'ada' }]);
      const again = it.deleteBudget(admin, 'lab', '');
      await expect(again).rejects.toMatchObject({ code: 'NOT_FOUND' });
      const anew = await it.setBudget(admin, { ...whole, version: 0 });
      expect(anew.version).toBeGreaterThan(0);
    });

    test('without budgets:manage one sees those of the own tenant, and changes none', async () => {
      const own = budgetInput.parse({ tenant: admin.tenant, user: 'ada' });
      await it.setBudget(admin, own);
      await it.setBudget(admin, { ...own, tenant: 'other' });
      const seen = await it.listBudgets(only('jobs:read'));
      expect(seen.map(({ tenant }) => tenant)).toEqual([admin.tenant]);
      const every = only('jobs:read', 'jobs:manage', 'fleet:manage', 'tokens:manage');
      for (const refused of [
        () => it.setBudget(every, own),
        () => it.deleteBudget(every, own.tenant, own.user),
      ]) {
        await expect(refused()).rejects.toMatchObject({
          code: 'PERMISSION_DENIED',
          message: expect.stringContaining('budgets:manage'),
        });
      }
      const blind = only('budgets:manage');
      for (const refused of [
        () => it.listBudgets(blind),
        () => it.usage(blind, usageQuery.parse({})),
        () => it.plan(blind, jobSpec.parse({ command: ['x'] })),
      ]) {
        await expect(refused()).rejects.toMatchObject({ code: 'PERMISSION_DENIED' });
      }
    });

    test('a data set is what was put last, and keeps its blob named', async () => {
      const hash = (digit: string): string => `sha256:${digit.repeat(64)}`;
      const data = { name: 'set', kind: 'tree' as const, hash: hash('1'), bytes: 5, files: 2 };
      expect(await it.putData(admin, data)).toMatchObject({ ...data, version: 1 });
      expect(await it.putData(admin, data)).toMatchObject({ version: 1 });
      const other = { ...data, hash: hash('2') };
      expect(await it.putData(admin, other)).toMatchObject({ ...other, version: 2 });
      await it.putData(admin, { ...data, name: 'another', kind: 'blob' });
      expect(await it.listData(admin)).toMatchObject([{ name: 'another' }, { name: 'set' }]);
      const names: string[] = [];
      let cursor: string | null = null;
      do {
        const page = await it.namedBlobs(admin, cursor);
        names.push(...page.items);
        cursor = page.nextCursor;
      } while (cursor !== null);
      expect(names.toSorted()).toEqual([`blob:${hash('1')}`, `tree:${hash('2')}`]);
      await it.removeData(admin, 'set');
      const again = it.removeData(admin, 'set');
      await expect(again).rejects.toMatchObject({ code: 'NOT_FOUND' });
      const reader = only('jobs:read');
      expect(await it.listData(reader)).toHaveLength(1);
      for (const refused of [
        () => it.putData(reader, data),
        () => it.removeData(reader, 'another'),
        () => it.namedBlobs(only('jobs:manage'), null),
      ]) {
        await expect(refused()).rejects.toMatchObject({ code: 'PERMISSION_DENIED' });
      }
    });

    test('nothing ran: nothing was used', async () => {
      for (const by of USAGE_BY) {
        expect(await it.usage(admin, usageQuery.parse({ by }))).toEqual([]);
      }
    });
  });
}
