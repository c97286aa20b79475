/** What a submission brings along, and when it is refused. */
import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { silentLog } from '../lib/log.ts';
import { systemRandom } from '../lib/random.ts';
import { exchangeSettings, type AudienceSettings } from '../model/exchangeSettings.ts';
import type { JobId, TokenId } from '../model/ids.ts';
import type { Principal } from '../model/token.ts';
import type { Exchanged, ExchangeWish } from './contract.ts';
import { envelopeContext, open, readMasterKeys } from './seal.ts';
import { createAccompany } from './submission.ts';

const keys = readMasterKeys(`k1:${randomBytes(32).toString('base64')}`, 'f');
const identity = { issuer: 'https://login', subject: 'ada' };
const token = 't1' as TokenId;
const key: Principal = { token, tenant: 'physics', user: 'ada', scopes: ['jobs:manage'] };
const ada: Principal = { ...key, identity };
const refused: Exchanged = { kind: 'refused', reason: 'invalid_target' };
const away: Exchanged = { kind: 'unavailable', reason: 'it answered 503' };
const granted = (one: AudienceSettings, refreshToken: string | null = null): Exchanged => ({
  ...{ kind: 'granted', token: `T ${one.audience}`, expiresAtMs: 1, lifeMs: 1, refreshToken },
});

interface Scene {
  required?: boolean;
  refresh?: 'none' | 'offline-access' | 'refresh-token';
  storage?: Exchanged;
}

function scene({ required = false, refresh = 'none', storage }: Scene = {}) {
  const asked: [string, ExchangeWish][] = [];
  const settings = exchangeSettings.parse({
    issuer: 'https://login',
    refresh,
    audiences: {
      storage: { audience: 'drive', metadata: 'x-scaidrive-token', required },
      registry: { audience: 'atlas' },
    },
  });
  const accompany = createAccompany({
    settings,
    keys,
    random: systemRandom,
    log: silentLog,
    exchange: {
      async exchange(subject, audience, wants = {}) {
        asked.push([`${subject.token} ${subject.type} ${audience.audience}`, wants]);
        if (audience.audience === 'drive' && storage) return storage;
        return granted(audience, wants.offlineAccess || wants.refreshToken ? 'R' : null);
      },
      refresh: () => Promise.reject(new Error('nobody refreshes at a submission')),
    },
  });
  return { asked, accompany };
}

test('who and where is kept, tokens go by metadata where one is named', async () => {
  const { asked, accompany } = scene();
  expect(await accompany(ada, 'jwt')).toEqual({
    downstream: { ...identity, audiences: ['storage', 'registry'], sealed: null, refused: [] },
    downstreamTokens: { 'x-scaidrive-token': 'T drive' },
  });
  const type = 'urn:ietf:params:oauth:token-type:access_token';
  expect(asked).toEqual([
    [`jwt ${type} drive`, { offlineAccess: false }],
    [`jwt ${type} atlas`, { offlineAccess: false }],
  ]);
});

test.each(['offline-access', 'refresh-token'] as const)(
  'by %s refresh tokens are sealed for this person',
  async (refresh) => {
    const { asked, accompany } = scene({ refresh });
    const { downstream } = await accompany(ada, 'jwt');
    const context = envelopeContext({ ...identity, tenant: 'physics' });
    const text = open(keys, downstream?.sealed ?? '', context);
    expect(JSON.parse(text)).toEqual({ storage: 'R', registry: 'R' });
    expect(asked).toHaveLength(refresh === 'refresh-token' ? 4 : 2);
  },
);

test('what is required and refused is 403, what is away 503', async () => {
  const no = scene({ required: true, storage: refused }).accompany(ada, 'jwt');
  await expect(no).rejects.toMatchObject({
    code: 'PERMISSION_DENIED',
    message: 'No token for "storage" is given to you: invalid_target',
  });
  const later = scene({ required: true, storage: away }).accompany(ada, 'jwt');
  await expect(later).rejects.toMatchObject({ code: 'UNAVAILABLE' });
});

test('else it goes on without what is refused; what is away is tried again', async () => {
  const without = await scene({ storage: refused }).accompany(ada, 'jwt');
  expect(without).toEqual({
    downstream: {
      ...{ ...identity, audiences: ['registry'], sealed: null },
      refused: [{ audience: 'storage', reason: 'invalid_target' }],
    },
  });
  const { downstream } = await scene({ storage: away }).accompany(ada, 'jwt');
  expect(downstream?.audiences).toEqual(['storage', 'registry']);
  expect(downstream?.refused).toHaveLength(1);
});

test('tokens of another issuer are not sent: its people are like those with a key', async () => {
  const { asked, accompany } = scene();
  const stranger = { ...key, identity: { issuer: 'https://other', subject: 'ada' } };
  expect(await accompany(stranger, 'jwt')).toEqual({});
  const strict = scene({ required: true }).accompany(stranger, 'jwt');
  await expect(strict).rejects.toMatchObject({ code: 'PERMISSION_DENIED' });
  expect(asked).toEqual([]);
});

test('an API key has nothing to exchange; a job’s children are its owner’s', async () => {
  const { asked, accompany } = scene();
  expect(await accompany(key, 'drv_1')).toEqual({});
  const strict = scene({ required: true }).accompany;
  await expect(strict(key, 'drv_1')).rejects.toMatchObject({
    code: 'PERMISSION_DENIED',
    hint: expect.stringContaining('https://login'),
  });
  expect(await strict({ ...key, job: 'j1' as JobId }, 'drt_1')).toEqual({});
  expect(asked).toEqual([]);
});
