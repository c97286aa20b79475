/** Channels that cannot work are named when the settings are read. */
import { expect, test } from 'vitest';
import { loadSettings } from './settings.ts';

const load = (notify: object) =>
  loadSettings({
    env: { HOME: '/h', DROVER_CONFIG: 'it.yaml' },
    readFile: () => JSON.stringify({ notify }),
  }).settings.notify;

const hook = { kind: 'webhook', url: 'https://example.org/a', secretFile: '/k' };

test('what is left out has its default', () => {
  const { channels } = load({ channels: { ops: hook } });
  expect(channels['ops']).toMatchObject({ allowPrivate: false, tenants: [], urlFile: '' });
});

test.each([
  ['no key', { kind: 'webhook', url: 'https://example.org' }, 'the key it signs with'],
  ['no URL', { kind: 'webhook', secretFile: '/k' }, 'needs one of url, urlFile'],
  ['two URLs', { ...hook, urlFile: '/u' }, 'needs one of url, urlFile'],
  ['a password in the URL', { ...hook, url: 'https://a:b@example.org' }, 'holds a password'],
  ['another scheme', { ...hook, url: 'file:///etc/passwd' }, 'no http(s):// address'],
  ["Slack's secret URL in the file", { kind: 'slack', url: 'https://hooks' }, 'names with values'],
  ['an unknown kind', { kind: 'pager' }, 'names with values'],
  [
    'a password without TLS',
    {
      ...{ kind: 'email', host: 'm', tls: 'none', user: 'u', passwordFile: '/p' },
      ...{ from: 'a@b.c', to: ['d@e.f'] },
    },
    'not sent without TLS',
  ],
  [
    'an address that is two',
    { kind: 'email', host: 'm', from: 'a@b.c', to: ['d@e.f>\r\nRCPT TO:<x@y.z'] },
    'is no address',
  ],
])('%s is refused', (_what, channel, told) => {
  expect(() => load({ channels: { it: channel } })).toThrow(told);
});

test('a default that names no channel is refused with the nearest', () => {
  const defaults = { '*': [{ to: 'opps' }] };
  expect(() => load({ channels: { ops: hook }, defaults })).toThrow(
    '* names the channel "opps", which does not exist; did you mean "ops"?',
  );
});
