/** Who may come in: tenants apart, roles, leaving, and the record of who did what. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { TestController } from '../../test/support/testController.ts';
import { brokenAt } from '../model/auditChain.ts';
import type { Identity, Principal } from '../model/token.ts';
import { createToken, type CreateToken } from '../protocol/fleet.ts';
import { jobSpec } from '../protocol/jobSpec.ts';
import type { EventView } from '../protocol/jobs.ts';

let it: TestController;
beforeEach(async () => {
  it = new TestController({});
  await it.start();
});
afterEach(() => it.close());

const run = <Value>(promise: Promise<Value>): Promise<Value> => it.clock.run(promise);

async function personOf(wanted: Partial<CreateToken>): Promise<{ who: Principal; secret: string }> {
  const made = await run(it.it.createToken(it.admin, createToken.parse(wanted)));
  const who = await run(it.it.authenticate(made.secret!));
  return { who: who!, secret: made.secret! };
}

const submit = (who: Principal) =>
  run(
    it.it.submit(who, {
      specs: [jobSpec.parse({ command: ['true'] })],
      idempotencyKey: null,
      bodyHash: null,
    }),
  );

describe('a tenant', () => {
  test('has its own tokens, users and jobs', async () => {
    const { who } = await personOf({ tenant: 'vision', user: 'eve', roles: ['user'] });
    expect(who).toMatchObject({ tenant: 'vision', user: 'eve' });
    expect(who.scopes).toEqual(['jobs:read', 'jobs:manage', 'fleet:read']);
    const { ids } = await submit(who);
    await expect(run(it.it.getJob(it.admin, ids[0]!))).rejects.toMatchObject({ code: 'NOT_FOUND' });
    const tenants = await run(it.it.listTenants(it.admin));
    expect(tenants).toMatchObject([{ name: 'default' }, { name: 'vision', users: 1, liveJobs: 1 }]);
    expect(await run(it.it.listTenants(who))).toMatchObject([{ name: 'vision' }]);
  });

  test('counts its own work only; operators count all', async () => {
    const { who } = await personOf({ tenant: 'vision', user: 'eve', roles: ['user'] });
    await submit(it.admin);
    expect((await run(it.it.cluster(who))).tasks).toEqual({ pending: 0, assigned: 0, running: 0 });
    expect((await run(it.it.cluster(it.admin))).tasks.pending).toBe(1);
  });

  test('that is suspended lets nobody in, until it is not', async () => {
    const { secret } = await personOf({ tenant: 'vision', user: 'eve', roles: ['user'] });
    const set = (suspended: boolean) =>
      run(it.it.setTenant(it.admin, 'vision', { suspended, note: 'unpaid' }));
    expect(await set(true)).toMatchObject({ suspended: true, note: 'unpaid' });
    expect(await run(it.it.authenticate(secret))).toBeUndefined();
    expect(await run(it.it.admit(identity({ tenant: 'vision' })))).toBeUndefined();
    await set(false);
    expect(await run(it.it.authenticate(secret))).toMatchObject({ user: 'eve' });
  });

  test("cannot have tokens made or budgets set by another tenant's admin", async () => {
    const scopes = it.admin.scopes.filter((scope) => scope !== 'tenants:manage');
    const who = { ...it.admin, tenant: 'vision', scopes };
    const wanted = createToken.parse({ tenant: 'default' });
    const refused = { code: 'PERMISSION_DENIED' };
    await expect(run(it.it.createToken(who, wanted))).rejects.toMatchObject(refused);
    await expect(run(it.it.deleteBudget(who, 'default', ''))).rejects.toMatchObject(refused);
    await expect(
      run(it.it.setTenant(who, 'default', { suspended: true, note: '' })),
    ).rejects.toMatchObject(refused);
  });
});

function identity(more: Partial<Identity>): Identity {
  return {
    issuer: 'https://id.example',
    subject: 's1',
    tenant: 'default',
    user: 'eve',
    roles: ['viewer'],
    expiresAtMs: it.clock.now() + 1000,
    ...more,
  };
}

describe('somebody whom an issuer vouches for', () => {
  test('has the roles of the issuer and those given here', async () => {
    await run(it.it.setUser(it.admin, 'eve', { roles: ['audit:read'] }));
    const who = await run(it.it.admit(identity({})));
    expect(who).toMatchObject({ identity: { issuer: 'https://id.example', subject: 's1' } });
    expect(who?.scopes).toEqual(['jobs:read', 'fleet:read', 'audit:read']);
  });

  test('may not come in when the word has expired', async () => {
    expect(await run(it.it.admit(identity({ expiresAtMs: it.clock.now() })))).toBeUndefined();
  });

  test('roles nobody has, and roles beyond the own, are not given', async () => {
    const set = (who: Principal, roles: string[]) => run(it.it.setUser(who, 'eve', { roles }));
    await expect(set(it.admin, ['boss'])).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    const who = { ...it.admin, scopes: ['tokens:manage' as const] };
    await expect(set(who, ['viewer'])).rejects.toMatchObject({ code: 'PERMISSION_DENIED' });
  });
});

describe('leaving', () => {
  test('ends every token, and jobs where asked to; a second time changes nothing', async () => {
    const { who, secret } = await personOf({ user: 'eve', roles: ['user'] });
    const { ids } = await submit(who);
    await run(it.it.removeUser(it.admin, 'eve', 'keep'));
    expect(await run(it.it.authenticate(secret))).toBeUndefined();
    expect(await run(it.it.admit(identity({})))).toBeUndefined();
    expect(await run(it.it.getJob(it.admin, ids[0]!))).toMatchObject({ state: 'PENDING' });
    const left = await run(it.it.removeUser(it.admin, 'eve', 'cancel'));
    expect(left).toMatchObject({ name: 'eve', tokens: 0, liveJobs: 0 });
    expect(left.leftAtMs).not.toBeNull();
    expect(await run(it.it.getJob(it.admin, ids[0]!))).toMatchObject({ state: 'CANCELLED' });
    const again = await run(it.it.removeUser(it.admin, 'eve', 'cancel'));
    expect(again.leftAtMs).toBe(left.leftAtMs);
  });

  test('is over when he is set again; old tokens stay dead', async () => {
    const { secret } = await personOf({ user: 'eve', roles: ['user'] });
    await run(it.it.removeUser(it.admin, 'eve', 'keep'));
    await expect(personOf({ user: 'eve' })).rejects.toMatchObject({ code: 'CONFLICT' });
    await run(it.it.setUser(it.admin, 'eve', { roles: [] }));
    expect(await run(it.it.admit(identity({})))).toMatchObject({ user: 'eve' });
    expect(await run(it.it.authenticate(secret))).toBeUndefined();
  });
});

describe('the record of who did what', () => {
  const entries = async (who: Principal): Promise<EventView[]> =>
    (await run(it.it.listAudit(who, { limit: 100 }))).items.toReversed();

  test('is a chain, per tenant, that a restart continues', async () => {
    const { who } = await personOf({ tenant: 'vision', user: 'eve', roles: ['admin'] });
    const { ids } = await submit(who);
    await run(it.it.setPriority(who, ids[0]!, 'production'));
    await it.restart();
    await run(it.it.cancelJob(who, ids[0]!));
    const theirs = await entries(who);
    expect(theirs.map(({ kind, data }) => [kind, data['by']])).toEqual([
      ['token.created', 'admin'],
      ['job.submitted', 'eve'],
      ['job.priority', 'eve'],
      ['job.cancel-requested', 'eve'],
    ]);
    expect(brokenAt(theirs)).toBeNull();
    const ours = await entries(it.admin);
    expect(ours.map(({ kind }) => kind)).toEqual(['token.created', 'token.created']);
    expect(brokenAt(ours)).toBeNull();
  });

  test('has one entry for a submission of many', async () => {
    const specs = [1, 2, 3].map(() => jobSpec.parse({ command: ['true'] }));
    await run(it.it.submit(it.admin, { specs, idempotencyKey: null, bodyHash: null }));
    const submitted = (await entries(it.admin)).filter(({ kind }) => kind === 'job.submitted');
    expect(submitted).toMatchObject([{ data: { by: 'admin', jobs: 3 } }]);
  });
});

describe('priority', () => {
  test('can be changed while a job lives, and stays changed', async () => {
    const { ids } = await submit(it.admin);
    expect(await run(it.it.setPriority(it.admin, ids[0]!, 'production'))).toMatchObject({
      priority: 'production',
      spec: { priority: 'production' },
    });
    await it.restart();
    expect(await run(it.it.getJob(it.admin, ids[0]!))).toMatchObject({ priority: 'production' });
    await run(it.it.cancelJob(it.admin, ids[0]!));
    expect(await run(it.it.getJob(it.admin, ids[0]!))).toMatchObject({ priority: 'production' });
    await expect(run(it.it.setPriority(it.admin, ids[0]!, 'batch'))).rejects.toMatchObject({
      code: 'CONFLICT',
    });
  });
});

test('the last use of a token is kept, to the minute', async () => {
  const { who, secret } = await personOf({ user: 'eve', roles: ['user'] });
  const used = async () => {
    const { items } = await run(it.it.listTokens(it.admin, { limit: 100 }));
    return items.find(({ id }) => id === who.token)?.lastUsedAtMs;
  };
  const first = await used();
  expect(first).toBeGreaterThan(0);
  await run(it.it.authenticate(secret));
  expect(await used()).toBe(first);
  await it.clock.advance(61_000);
  await run(it.it.authenticate(secret));
  expect(await used()).toBeGreaterThan(first!);
});
