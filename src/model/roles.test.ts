/** Roles grow, viewers change nothing, unknown names give nothing. */
import { expect, test } from 'vitest';
import { ROLE_NAMES, ROLES, scopesOf } from './roles.ts';
import { SCOPES } from './token.ts';

test('each role may do what the one before it may', () => {
  for (const [at, role] of ROLE_NAMES.entries()) {
    const less = ROLE_NAMES[at - 1];
    if (less) expect(ROLES[role]).toEqual(expect.arrayContaining([...ROLES[less]]));
  }
  expect(scopesOf(['admin', 'tenants:manage'])).toEqual([...SCOPES]);
  expect(scopesOf(['admin'])).not.toContain('tenants:manage');
});

test('a viewer changes nothing', () => {
  expect(scopesOf(['viewer']).filter((scope) => !scope.endsWith(':read'))).toEqual([]);
});

test('roles, scopes and historical names mix; what nobody knows gives nothing', () => {
  expect(scopesOf(['viewer', 'audit:read', 'jobs:*', 'toString', ''])).toEqual([
    'jobs:read',
    'fleet:read',
    'audit:read',
  ]);
  expect(scopesOf(['scaimind:manage'])).toContain('jobs:manage');
  expect(scopesOf(['scaimind:manage'])).not.toContain('tokens:manage');
});
