/** Which issuers may be configured. */
import { describe, expect, test } from 'vitest';
import { loadSettings } from './settings.ts';

const lab = {
  name: 'lab',
  issuer: 'https://login.example.org',
  audience: 'drover',
  discovery: true,
  tenant: 'physics',
  roles: { users: ['user', 'scaimind:manage', 'audit:read'] },
};
const key = { kty: 'OKP', crv: 'Ed25519', x: 'AAAA' };

function load(...issuers: object[]) {
  const env = { HOME: '/users/ada', DROVER_AUTH_ISSUERS: JSON.stringify(issuers) };
  const readFile = (): never => {
    throw Object.assign(new Error('no such file'), { code: 'ENOENT' });
  };
  return loadSettings({ env, readFile }).settings.auth.issuers;
}

test('what is left out is strict', () => {
  expect(load(lab)).toEqual([
    {
      ...lab,
      algorithms: ['RS256', 'ES256', 'EdDSA'],
      claims: { user: 'sub', groups: 'groups' },
      tenants: {},
      defaultRoles: [],
      clockSkewMs: 30_000,
    },
  ]);
});

describe('refused', () => {
  test.for<[string, object[], string]>([
    ['clear text', [{ ...lab, issuer: 'http://login.example.org' }], 'https'],
    [
      'a host that only begins like this machine',
      [{ ...lab, issuer: 'http://127.0.0.1.evil.example' }],
      'https',
    ],
    ['a password in the address', [{ ...lab, issuer: 'https://a:b@login.example.org' }], 'https'],
    [
      'keys in clear text',
      [{ ...lab, discovery: undefined, jwksUri: 'http://k.example' }],
      'https',
    ],
    ['no keys', [{ ...lab, discovery: undefined }], 'needs one of discovery'],
    ['keys from two places', [{ ...lab, keys: [key] }], 'needs one of discovery'],
    [
      'a private key',
      [{ ...lab, discovery: undefined, keys: [{ ...key, d: 'x' }] }],
      'private key',
    ],
    ['a shared key', [{ ...lab, discovery: undefined, keys: [{ kty: 'oct', k: 'x' }] }], 'keys'],
    ['a symmetric algorithm', [{ ...lab, algorithms: ['HS256'] }], 'algorithms'],
    ['no audience', [{ ...lab, audience: undefined }], 'audience'],
    ['an empty audience', [{ ...lab, audience: [] }], 'audience'],
    ['no tenant', [{ ...lab, tenant: undefined }], 'needs one of tenant'],
    ['two tenants', [{ ...lab, claims: { tenant: 'org' } }], 'needs one of tenant'],
    ['a map for a fixed tenant', [{ ...lab, tenants: { a: 'b' } }], 'fixed tenant'],
    ['a role that is none', [{ ...lab, roles: { users: ['king'] } }], 'no role'],
    ['one name twice', [lab, { ...lab, issuer: 'https://b.example.org' }], 'two are called lab'],
    ['one issuer twice', [lab, { ...lab, name: 'lab2' }], 'listed twice'],
  ])('%s', ([, issuers, word]) => {
    expect(() => load(...issuers)).toThrow(word);
  });
});

test('this machine may be asked in clear text', () => {
  for (const issuer of ['http://127.0.0.1:9000', 'http://localhost:1/a', 'http://[::1]:2']) {
    expect(load({ ...lab, issuer })).toHaveLength(1);
  }
});
