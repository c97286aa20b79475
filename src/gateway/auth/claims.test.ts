/** What an issuer says, as user, tenant and roles. */
import { describe, expect, test } from 'vitest';
import { authSettings, type IssuerSettings } from '../../model/authSettings.ts';
import { identityOf } from './claims.ts';

function settings(given: object): IssuerSettings {
  const issuer = {
    name: 'lab',
    issuer: 'https://login.example.org',
    audience: 'drover',
    discovery: true,
    clockSkewMs: 5000,
    ...given,
  };
  return authSettings.parse({ issuers: [issuer] }).issuers[0] as IssuerSettings;
}

const said = { sub: 's-1', exp: 1_900_000_000, preferred_username: 'ada', org: 'physics' };

test('who, from where, until when', () => {
  const of = settings({ claims: { user: 'preferred_username', tenant: 'org' } });
  expect(identityOf(said, of)).toEqual({
    issuer: 'https://login.example.org',
    subject: 's-1',
    tenant: 'physics',
    user: 'ada',
    roles: [],
    expiresAtMs: 1_900_000_005_000,
  });
});

describe('groups become roles', () => {
  const roles = {
    users: ['user'],
    'gpu admins': ['operator', 'tokens:manage'],
    scoped: ['viewer'],
  };
  const rolesFor = (claims: object, more: object = {}) =>
    identityOf({ ...said, ...claims }, settings({ tenant: 't', roles, ...more })).roles;

  test('all of them together, each once', () => {
    expect(rolesFor({ groups: ['users', 'gpu admins', 'users', 'others'] })).toEqual([
      'user',
      'operator',
      'tokens:manage',
    ]);
  });

  test('who is in none has none, or the default ones', () => {
    expect(rolesFor({ groups: ['others'] })).toEqual([]);
    expect(rolesFor({})).toEqual([]);
    expect(rolesFor({ groups: ['others'] }, { defaultRoles: ['viewer'] })).toEqual(['viewer']);
    expect(rolesFor({ groups: ['users'] }, { defaultRoles: ['viewer'] })).toEqual(['user']);
  });

  test.for<[string, object, string]>([
    ['a path', { realm_access: { roles: ['users'] } }, 'realm_access.roles'],
    ['a name with dots', { 'https://example.org/groups': ['users'] }, 'https://example.org/groups'],
    ['words', { scope: 'openid users' }, 'scope'],
  ])('from %s', ([, claims, groups]) => {
    expect(rolesFor(claims, { claims: { groups } })).toEqual(['user']);
  });

  test.for<[string, object]>([
    ['numbers', { groups: [7, null] }],
    ['an object', { groups: { users: true } }],
    ['names that every object has', { groups: ['constructor', '__proto__', 'toString'] }],
  ])('%s are no groups', ([, claims]) => {
    expect(rolesFor(claims)).toEqual([]);
  });

  test('a path does not lead to what every object has', () => {
    expect(rolesFor({}, { claims: { groups: 'constructor.name' } })).toEqual([]);
  });
});

describe('tenants', () => {
  const byClaim = { claims: { tenant: 'org' }, tenants: { 'org-7f': 'physics' } };

  test('are called as it is configured, and others do not come in', () => {
    expect(identityOf({ ...said, org: 'org-7f' }, settings(byClaim)).tenant).toBe('physics');
    for (const org of ['physics', 'org-8', 'constructor']) {
      expect(() => identityOf({ ...said, org }, settings(byClaim))).toThrow('names no tenant');
    }
  });

  test('a token that names none is refused', () => {
    const of = settings({ claims: { tenant: 'org' } });
    for (const org of [undefined, '', 7, ['physics'], 'a'.repeat(101), 'a\nb']) {
      expect(() => identityOf({ ...said, org }, of)).toThrow('claim org');
    }
  });
});

test('an address that the issuer did not verify names nobody', () => {
  const of = settings({ tenant: 't', claims: { user: 'email' } });
  const email = 'ada@example.org';
  expect(identityOf({ ...said, email }, of).user).toBe(email);
  expect(() => identityOf({ ...said, email, email_verified: false }, of)).toThrow('not verified');
});
