/** A policy of the gateway's own, before a coordinator that knows none. */
import { expect, test } from 'vitest';
import { readPolicy } from '../model/policy/read.ts';
import type { Policy } from '../model/policy/schema.ts';
import type { Principal } from '../model/token.ts';
import { jobSpec, type SubmittedSpec } from '../protocol/jobSpec.ts';
import { createFakeCoordinator } from './fakeCoordinator.ts';
import { underPolicy } from './policy.ts';

const CLOSED = readPolicy('p', 'rules: [{ name: closed, require: { refuse: closed } }]');
const FILLING = readPolicy('p', 'defaults: [{ pool: lab }]\nleaving: { jobs: cancel }');
const VIEW = { text: 'rules: []', loadedAtMs: 5, problem: 'line 1: no' };

async function setUp() {
  const behind = createFakeCoordinator();
  const admin = (await behind.authenticate(behind.adminToken)) as Principal;
  let policy: Policy | null = FILLING;
  const it = underPolicy(behind, { current: () => policy, view: () => VIEW });
  const submit = (key: string | null, more: Partial<SubmittedSpec> = {}) =>
    it.submit(admin, {
      specs: [jobSpec.parse({ command: ['true'], ...more })],
      idempotencyKey: key,
      bodyHash: key && 'hash',
    });
  return { behind, admin, it, submit, close: () => (policy = CLOSED) };
}

test('what passes is as the policy makes it, or does not pass', async () => {
  const { behind, it, admin, submit, close } = await setUp();
  const { ids } = await submit(null);
  expect(behind.jobs.get(ids[0] ?? '')?.spec?.pool).toBe('lab');
  close();
  await expect(submit(null)).rejects.toMatchObject({ code: 'POLICY' });
  const spec = jobSpec.parse({ command: ['true'] });
  await expect(it.plan(admin, spec)).rejects.toMatchObject({ code: 'POLICY' });
  expect(behind.calls.get('submit')).toBe(1);
  expect(behind.calls.get('plan')).toBeUndefined();
});

test('a key that was accepted is passed on, whatever the policy says now', async () => {
  const { submit, close } = await setUp();
  const first = await submit('k1');
  close();
  expect(await submit('k1')).toMatchObject({ ids: first.ids });
  await expect(submit('k2')).rejects.toMatchObject({ code: 'POLICY' });
});

test('it answers for its own policy, to operators', async () => {
  const { it, admin } = await setUp();
  expect(await it.policy(admin)).toEqual(VIEW);
  const user = { ...admin, scopes: ['jobs:manage' as const] };
  await expect(it.policy(user)).rejects.toMatchObject({ code: 'PERMISSION_DENIED' });
});
