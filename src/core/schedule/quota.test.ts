/** Limits of tenants and users: hard ones hold, soft ones put last, and both say so. */
import { describe, expect, test } from 'vitest';
import {
  account,
  gpus,
  heldGpus,
  NOTHING,
  placed,
  planOf,
  told,
  viewOf,
  waiting,
  wantingGpus,
} from '../../../test/support/planning.ts';
import type { PlannerAccount } from './view.ts';

const HOUR_MS = 3_600_000;
const one = wantingGpus(1, { key: 'one' });
const four = [0, 1, 2, 3].map((index) => waiting(one, 'j1', index));

const withAccounts = (...accounts: PlannerAccount[]) =>
  viewOf({ requests: [one], workers: [gpus('w1', 8)], pending: four, accounts });

describe('devices at once', () => {
  test('no more are held than a tenant may', () => {
    const view = withAccounts(account('t', { deviceMillis: 3000 }));
    const made = planOf(view);
    expect(made.placements).toHaveLength(3);
    expect(made.waiting).toMatchObject([
      {
        classKey: 'one',
        why: {
          code: 'QUOTA',
          sentence:
            'tenant t is at the limit of devices at once: it needs 1 device, 0 devices left',
          quota: { tenant: 't', user: '', limit: 'devices', left: 0, mode: 'hard' },
        },
      },
    ]);
    expect(planOf(view)).toMatchObject({ placements: [], waiting: [] });
    view.update({ ...NOTHING, claimsGone: [made.placements[0]!.tasks[0]!.claim.owner] });
    expect(placed(planOf(view))).toEqual(['j1.3>w1']);
  });

  test('the user’s limit binds too, and it says whose', () => {
    const view = withAccounts(account('t'), account('t', { user: 'u', deviceMillis: 1500 }));
    const made = planOf(view);
    expect(made.placements).toHaveLength(1);
    expect(told(made)['one']).toContain('user u is at the limit of devices at once');
  });

  test('what runs already counts, and a larger limit lets it go on', () => {
    const view = withAccounts(account('t', { deviceMillis: 1000 }));
    view.update({ ...NOTHING, claims: [heldGpus(one, 'j0', 'w1')] });
    expect(planOf(view).placements).toEqual([]);
    view.update({ ...NOTHING, accounts: [account('t', { deviceMillis: 2000 })] });
    expect(planOf(view).placements).toHaveLength(1);
  });

  test('a gang needs it for all its members', () => {
    const gang = wantingGpus(1, { gangSize: 2, key: 'gang' });
    const view = viewOf({
      requests: [gang],
      workers: [gpus('w1', 8)],
      pending: [waiting(gang, 'j1', 0), waiting(gang, 'j1', 1)],
      accounts: [account('t', { deviceMillis: 1000 })],
    });
    expect(told(planOf(view))['gang']).toContain('it needs 2 devices, 1 device left');
  });
});

describe('device time', () => {
  test('an hour each is set aside, or the time limit where that is less', () => {
    expect(
      planOf(withAccounts(account('t', { deviceMsLeft: 2.5 * HOUR_MS }))).placements,
    ).toHaveLength(2);
    const short = wantingGpus(1, { timeLimitMs: HOUR_MS / 4, key: 'short' });
    const view = viewOf({
      requests: [short],
      workers: [gpus('w1', 8)],
      pending: [0, 1, 2, 3].map((index) => waiting(short, 'j1', index)),
      accounts: [account('t', { deviceMsLeft: HOUR_MS / 2 })],
    });
    expect(planOf(view).placements).toHaveLength(2);
  });

  test('what was planned counts until the account is heard of again', () => {
    const view = withAccounts(account('t', { deviceMsLeft: HOUR_MS }));
    const made = planOf(view);
    expect(made).toMatchObject({
      placements: [{ tasks: [{ task: 'j1.0' }] }],
      waiting: [{ why: { code: 'QUOTA', quota: { limit: 'device-time', left: 0 } } }],
    });
    expect(made.waiting[0]?.why.suggestions.join()).toContain('give a time limit');
    view.update({ ...NOTHING, claimsGone: [made.placements[0]!.tasks[0]!.claim.owner] });
    expect(planOf(view).placements).toHaveLength(1);
    view.update({ ...NOTHING, accounts: [account('t', { deviceMsLeft: 0 })] });
    expect(planOf(view).placements).toEqual([]);
    view.update({ ...NOTHING, accounts: [account('t', { deviceMsLeft: HOUR_MS })] });
    expect(planOf(view).placements).toHaveLength(1);
  });
});

describe('money', () => {
  const priced = (id: string, pool: string, dollars: number) =>
    gpus(id, 2, { pool, deviceHourMicros: dollars * 1_000_000 });

  test('what is left goes to pools that it pays for', () => {
    const view = viewOf({
      requests: [one],
      workers: [priced('w1', 'dear', 5), priced('w2', 'cheap', 1)],
      pending: four,
      accounts: [account('t', { microsLeft: 3_000_000 })],
    });
    const made = planOf(view);
    expect(placed(made)).toEqual(['j1.0>w2', 'j1.1>w2']);
    expect(made.waiting).toMatchObject([
      {
        why: {
          code: 'BUDGET',
          sentence: 'no room on 2 workers where 1.00 suffice, which is what tenant t has left',
          quota: { limit: 'money', left: 1_000_000 },
        },
      },
    ]);
    view.update({ ...NOTHING, claimsGone: [made.placements[0]!.tasks[0]!.claim.owner] });
    expect(placed(planOf(view))).toEqual(['j1.2>w2']);
  });

  test('none left holds it', () => {
    const view = viewOf({
      requests: [one],
      workers: [priced('w1', 'dear', 5)],
      pending: four,
      accounts: [account('t', { user: 'u', microsLeft: 4_990_000 })],
    });
    expect(told(planOf(view))['one']).toBe(
      'user u is at the limit of money: it needs 5.00, 4.99 left',
    );
  });
});

describe('a soft limit', () => {
  test('puts the work behind everybody else’s of its band, and says so', () => {
    const [mine, other] = [one, wantingGpus(1, { tenant: 'other' })];
    const view = viewOf({
      requests: [mine, other],
      workers: [gpus('w1', 3)],
      claims: [heldGpus(other, 'j0', 'w1', 0)],
      accounts: [account('t', { deviceMillis: 0, mode: 'soft' })],
      pending: [waiting(mine, 'j1'), waiting(mine, 'j2'), waiting(other, 'j3')],
    });
    const made = planOf(view);
    expect(placed(made)).toEqual(['j3.0>w1', 'j1.0>w1']);
    expect(made.waiting).toMatchObject([
      { why: { code: 'NO_ROOM', quota: { tenant: 't', limit: 'devices', mode: 'soft' } } },
    ]);
    expect(told(made)['one']).toContain(
      '; behind everybody else, as tenant t is at the soft limit of devices at once',
    );
  });

  test('does not keep idle devices idle', () => {
    const view = withAccounts(account('t', { deviceMillis: 1000, mode: 'soft' }));
    expect(planOf(view).placements).toHaveLength(4);
  });
});
