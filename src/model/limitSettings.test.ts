/** Limits from the settings: what is refused, with its place, and what single tenants may have. */
import { expect, test } from 'vitest';
import { loadSettings, type Settings } from './settings.ts';

function load(file: string, env: Record<string, string> = {}): Settings['limits'] {
  const all = { HOME: '/users/ada', DROVER_CONFIG: 'config.yaml', ...env };
  return loadSettings({ env: all, readFile: () => file }).settings.limits;
}

test.each([
  ['a rate below nothing', 'rateRequestsPerTenant: -1', /limits\.rateRequestsPerTenant.*not -1/],
  ['half a call', 'callsPerToken: 0.5', /limits\.callsPerToken.*not 0\.5/],
  ['no burst at all', 'rateBurstSeconds: 0', /limits\.rateBurstSeconds/],
  ['too few calls to keep a disk busy', 'callsAtOnce: 31', /limits\.callsAtOnce/],
  ['a mistyped name', 'ratePerTenant: 1', /limits\.ratePerTenant.*there is no such setting/],
  ['a limit tenants do not have', 'tenants: {a: {jobs: 1}}', /limits\.tenants/],
])('%s is refused', (_, line, message) => {
  expect(() => load(`limits:\n  ${line}\n`)).toThrow(message);
});

test('tenants may have limits of their own, and variables win', () => {
  const file = 'limits:\n  rateJobsPerToken: 7\n  tenants: {physics: {calls: 5, streams: 0}}\n';
  const limits = load(file, { DROVER_LIMITS_RATE_REQUESTS_PER_TENANT: '100' });
  expect(limits).toMatchObject({ rateRequestsPerTenant: 100, rateJobsPerToken: 7 });
  expect(limits.tenants).toEqual({ physics: { calls: 5, streams: 0 } });
});
