/** Keys for a gateway's key file. */
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { gatewayKeyEntry, hashGatewayKey } from '../model/gatewayKey.ts';
import { capture } from './captured.ts';

const create = (...args: string[]) => capture(['gateway-key', 'create', ...args]);
const WHO = ['--tenant', 'physics', '--user', 'ada'];

test('a key with 256 random bits, and the entry with its hash only', async () => {
  const { code, stdout, stderr } = await create(...WHO, '--role', 'user', '--role', 'audit:read');
  expect([code, stderr]).toEqual([0, expect.stringContaining('only this once')]);
  const [key = '', ...yaml] = stdout.split('\n');
  expect(key).toMatch(/^drg_[0-9a-f]{64}$/);
  const entries = parse(yaml.join('\n')) as unknown[];
  expect(entries).toEqual([
    expect.objectContaining({
      hash: hashGatewayKey(key),
      tenant: 'physics',
      user: 'ada',
      roles: ['user', 'audit:read'],
    }),
  ]);
  expect(gatewayKeyEntry.safeParse(entries[0]).success).toBe(true);
  expect(yaml.join('\n')).not.toContain(key);
});

test('as JSON, with an end', async () => {
  const { stdout } = await create(
    ...WHO,
    '--role',
    'viewer',
    '--expires',
    '30d',
    '--id',
    'ci',
    '--json',
  );
  const { key, entry } = JSON.parse(stdout) as { key: string; entry: Record<string, string> };
  expect(entry).toMatchObject({ id: 'ci', hash: hashGatewayKey(key) });
  const days = (Date.parse(entry['expires'] ?? '') - Date.now()) / 86_400_000;
  expect(Math.round(days)).toBe(30);
});

test.for<[string[], string]>([
  [[...WHO], '--role'],
  [['--tenant', 'physics', '--role', 'user'], '--user'],
  [[...WHO, '--role', 'king'], '--role is no role'],
  [[...WHO, '--role', 'user', '--id', 'a b'], '--id'],
  [[...WHO, '--role', 'user', '--expires', 'soon'], '--expires'],
])('%j is refused', async ([args, word]) => {
  const { code, stdout, stderr } = await create(...args);
  expect([code, stdout, stderr]).toEqual([2, '', expect.stringContaining(word)]);
});

test('there is nothing but create', async () => {
  expect((await capture(['gateway-key', 'delete'])).code).toBe(2);
  expect((await capture(['gateway-key'])).code).toBe(2);
});
