/** One token for all tasks of a person: by our word, else by a refresh token, used once each. */
import { randomBytes } from 'node:crypto';
import { beforeEach, expect, test } from 'vitest';
import { ManualClock } from '../../test/support/manualClock.ts';
import { systemRandom } from '../lib/random.ts';
import type { JobDownstream } from '../model/downstream.ts';
import { exchangeSettings } from '../model/exchangeSettings.ts';
import type { JobId } from '../model/ids.ts';
import type { Exchanged, TokenExchange } from './contract.ts';
import { createMinter, type MintFor, type MintOptions } from './mint.ts';
import { envelopeContext, open, readMasterKeys, seal } from './seal.ts';

const LIFE_MS = 600_000;
const one = { audience: 'https://drive', required: true };
const settings = exchangeSettings.parse({ audiences: { storage: one, registry: one } });
const keys = readMasterKeys(`k1:${randomBytes(32).toString('base64')}`, 'f');
const refused: Exchanged = { kind: 'refused', reason: 'invalid_grant' };
const away: Exchanged = { kind: 'unavailable', reason: 'away' };

let clock: ManualClock;
let asked: string[];
let answers: { word: () => Exchanged; refresh: (token: string) => Exchanged };
beforeEach(() => {
  clock = new ManualClock();
  asked = [];
  answers = { word: () => granted('by word'), refresh: () => refused };
});

const granted = (token: string, refreshToken: string | null = null): Exchanged => ({
  ...{ kind: 'granted', token, refreshToken, lifeMs: LIFE_MS },
  expiresAtMs: clock.now() + LIFE_MS,
});

const exchange: TokenExchange = {
  async exchange({ token }) {
    asked.push(token);
    await new Promise(setImmediate);
    return answers.word();
  },
  async refresh(token) {
    asked.push(token);
    await new Promise(setImmediate);
    return answers.refresh(token);
  },
};

function minter(more: Partial<MintOptions> = {}) {
  const assertionFor = ({ subject }: { subject: string }) => ({
    token: `for ${subject}`,
    type: '',
  });
  return createMinter({
    ...{ settings, exchange, assertionFor, keys, clock, random: systemRandom, ...more },
  });
}

function job(subject: string, tokens?: Record<string, string>): MintFor & { row: JobDownstream } {
  const who = { tenant: 't', issuer: 'https://i', subject };
  const text = tokens && JSON.stringify(tokens);
  const sealed = text ? seal(keys, text, envelopeContext(who), systemRandom) : null;
  const row = { ...who, job: 'j1' as JobId, audiences: ['storage', 'registry'], sealed };
  return {
    row,
    current: () => row,
    reseal(from, to) {
      expect(row.sealed).toBe(from);
      row.sealed = to;
    },
  };
}

test('a thousand tasks of one person ask once; each person has their own', async () => {
  const minted = minter();
  const ada = Array.from({ length: 1000 }, () => minted.mint(job('ada'), 'storage'));
  const all = await Promise.all([...ada, minted.mint(job('bob'), 'storage')]);
  expect(new Set(all.map(({ kind }) => kind))).toEqual(new Set(['granted']));
  expect(asked).toEqual(['for ada', 'for bob']);
  await clock.advance(LIFE_MS / 2 - 1);
  await minted.mint(job('ada'), 'storage');
  expect(asked).toHaveLength(2);
  await clock.advance(1);
  await minted.mint(job('ada'), 'storage');
  expect(asked).toHaveLength(3);
});

test('another tenant, issuer or service is another token', async () => {
  const minted = minter();
  const ada = job('ada');
  await minted.mint(ada, 'storage');
  await minted.mint(ada, 'registry');
  Object.assign(ada.row, { tenant: 'other' });
  await minted.mint(ada, 'storage');
  Object.assign(ada.row, { issuer: 'https://other' });
  await minted.mint(ada, 'storage');
  expect(asked).toHaveLength(4);
});

test('refused our word, the refresh tokens are used once each, one after another', async () => {
  answers.word = () => refused;
  const used: string[] = [];
  answers.refresh = (token) => {
    used.push(token);
    return granted(`by ${token}`, `${token}+`);
  };
  const minted = minter();
  const ada = job('ada', { storage: 's', registry: 'r' });
  const got = await Promise.all([minted.mint(ada, 'storage'), minted.mint(ada, 'registry')]);
  expect(got).toMatchObject([{ token: 'by s' }, { token: 'by r' }]);
  await clock.advance(LIFE_MS);
  await Promise.all([minted.mint(ada, 'registry'), minted.mint(ada, 'storage')]);
  expect(used.toSorted()).toEqual(['r', 'r+', 's', 's+']);
  const text = open(keys, ada.row.sealed ?? '', envelopeContext(ada.row));
  expect(JSON.parse(text)).toEqual({ storage: 's++', registry: 'r++' });
});

test('a server that is away is not one that refuses: the refresh token is left alone', async () => {
  answers.word = () => away;
  expect(await minter().mint(job('ada', { storage: 's' }), 'storage')).toEqual(away);
  expect(asked).toEqual(['for ada']);
  answers.word = () => refused;
  answers.refresh = () => away;
  expect(await minter().mint(job('ada', { storage: 's' }), 'storage')).toEqual(away);
});

test('refused both ways, both reasons are told, and the next one asks again', async () => {
  answers.word = () => refused;
  const minted = minter();
  const ada = job('ada', { storage: 's' });
  const both = { kind: 'refused', reason: 'invalid_grant; invalid_grant' };
  expect(await minted.mint(ada, 'storage')).toEqual(both);
  expect(await minted.mint(ada, 'registry')).toMatchObject({
    reason: 'invalid_grant; it has no refresh token',
  });
  answers.word = () => granted('later');
  expect(await minted.mint(ada, 'storage')).toMatchObject({ token: 'later' });
});

test('without a key it goes to the refresh token at once', async () => {
  answers.refresh = () => granted('by refresh');
  const minted = minter({ assertionFor: undefined });
  expect(await minted.mint(job('ada', { storage: 's' }), 'storage')).toMatchObject({
    token: 'by refresh',
  });
  expect(asked).toEqual(['s']);
  expect((await minted.mint(job('bob'), 'storage')).kind).toBe('refused');
});

test('an envelope that cannot be opened is the operator’s to mend', async () => {
  answers.word = () => refused;
  const ada = job('ada', { storage: 's' });
  expect(await minter({ keys: null }).mint(ada, 'storage')).toMatchObject({
    ...{ kind: 'unavailable', reason: expect.stringContaining('masterKeyFile') },
  });
  const moved = job('bob');
  moved.row.sealed = ada.row.sealed;
  expect((await minter().mint(moved, 'storage')).kind).toBe('unavailable');
  expect(asked).not.toContain('s');
});

test('an audience that is configured no more, and a job that has ended, get none', async () => {
  expect(await minter().mint(job('ada'), 'gone')).toMatchObject({
    ...{ kind: 'refused', reason: expect.stringContaining('not configured') },
  });
  const ended = { ...job('ada'), current: () => undefined };
  expect((await minter().mint(ended, 'storage')).kind).toBe('refused');
  expect(asked).toEqual([]);
});
