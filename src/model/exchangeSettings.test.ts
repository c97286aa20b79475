/** Which token servers and audiences may be configured. */
import { expect, test } from 'vitest';
import { loadSettings } from './settings.ts';

const good = {
  ISSUER: 'https://login.example.org',
  CLIENT_ID: 'drover',
  CLIENT_SECRET: 'x',
  AUDIENCES: JSON.stringify({ storage: { audience: 'https://drive' } }),
};

function load(more: Record<string, string | undefined> = {}) {
  const env: Record<string, string> = { HOME: '/users/ada' };
  for (const [name, value] of Object.entries({ ...good, ...more })) {
    if (value !== undefined) env[`DROVER_EXCHANGE_${name}`] = value;
  }
  const readFile = (path: string): string => {
    if (path === '/secret') return 'from the file\n';
    throw Object.assign(new Error('no such file'), { code: 'ENOENT' });
  };
  return loadSettings({ env, readFile }).settings.exchange;
}

test('a secret comes from the environment or from a file', () => {
  expect(load()).toMatchObject({ clientSecret: 'x', refresh: 'none', onRefusal: 'warn' });
  const file = { CLIENT_SECRET: undefined, CLIENT_SECRET_FILE: '/secret' };
  expect(load(file).clientSecret).toBe('from the file');
  expect(load({ CLIENT_SECRET: undefined, KEY_FILE: '/key' }).clientSecret).toBe('');
});

const audience = (name: string, more: object = {}): string =>
  JSON.stringify({ [name]: { audience: 'https://drive', ...more } });

test.each<[string, Record<string, string | undefined>, string]>([
  ['no server', { ISSUER: undefined }, 'exchange.issuer'],
  ['clear text', { ISSUER: 'http://login.example.org' }, 'https://'],
  ['a token URL in clear text', { TOKEN_URL: 'http://example.org/token' }, 'exchange.tokenUrl'],
  ['no client', { CLIENT_ID: undefined }, 'exchange.clientId'],
  ['no credential', { CLIENT_SECRET: undefined }, 'needs a credential'],
  ['two secrets', { CLIENT_SECRET_FILE: '/secret' }, 'given twice'],
  ['refresh tokens without a key', { REFRESH: 'offline-access' }, 'exchange.masterKeyFile'],
  ['a name that is a path', { AUDIENCES: audience('../x') }, 'short plain name'],
  ['nowhere to', { AUDIENCES: JSON.stringify({ storage: {} }) }, 'neither an audience'],
  ['who calls', { AUDIENCES: audience('a', { metadata: 'x-tenant-id' }) }, 'is taken'],
  ['odd metadata', { AUDIENCES: audience('a', { metadata: 'authorization' }) }, 'begins with x-'],
])('refused: %s', (_what, more, why) => {
  expect(() => load(more)).toThrow(why);
});

test('without audiences nothing is needed', () => {
  expect(load({ ISSUER: undefined, AUDIENCES: undefined }).audiences).toEqual({});
});
