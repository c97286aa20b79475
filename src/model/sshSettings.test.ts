/** Hosts of a pool: short and long, what they inherit, and what is refused. */
import { expect, test } from 'vitest';
import { sshHosts, sshPool } from './sshSettings.ts';

test('a host is a name or an object, and inherits what it does not say', () => {
  const pool = sshPool.parse({
    hosts: ['gpu1.example.org', { host: '10.0.0.7', name: 'gpu2', port: 2222, user: 'lab' }],
    ...{ user: 'drover', keyFile: '~/.ssh/drover', proxyJump: 'gate@gate.example.org:22' },
  });
  expect(sshHosts(pool)).toMatchObject([
    { name: 'gpu1.example.org', host: 'gpu1.example.org', port: 22, user: 'drover' },
    { name: 'gpu2', port: 2222, user: 'lab', proxyJump: 'gate@gate.example.org:22' },
  ]);
});

test.each([
  [{ hosts: [] }, 'Too small'],
  [{ hosts: ['-oProxyCommand=evil'] }, 'Invalid'],
  [{ hosts: ['a b'] }, 'Invalid'],
  [{ hosts: ['a'], proxyJump: '-oProxyCommand=evil' }, 'Invalid'],
  [{ hosts: ['a'], user: '-l root' }, 'Invalid'],
  [{ hosts: ['a'], keyFile: 'key"\nProxyCommand evil' }, 'Invalid'],
  [{ hosts: ['a', { host: 'a', port: 23 }] }, 'two hosts are called a: give one of them another'],
  [{ hosts: ['a'], agentCommand: 'a\u0001b' }, 'control character'],
  [{ hosts: [{ host: '::1' }] }, 'give the host a `name`'],
  [{ hosts: ['a'], key: 'x' }, 'Unrecognized key'],
])('%j is refused', (given, words) => {
  const parsed = sshPool.safeParse(given);
  expect(parsed.success).toBe(false);
  expect(JSON.stringify(parsed.error?.issues)).toContain(words);
});
