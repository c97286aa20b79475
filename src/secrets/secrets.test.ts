/** Sources of secrets: each tenant has its own, and one that is down is not one that is empty. */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { environmentSecrets } from './environment.ts';
import { fileSecrets } from './files.ts';
import { infisicalSecrets } from './infisical.ts';
import { findSecret } from './open.ts';

const folder = mkdtempSync(join(tmpdir(), 'drover-secrets-'));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test('variables are the first tenant’s alone', async () => {
  const source = environmentSecrets('LAB_', { LAB_KEY: 'v', OTHER: 'x' });
  expect(await source.get('default', 'KEY')).toBe('v');
  expect(await source.get('other', 'KEY')).toBeUndefined();
  expect(await source.get('default', 'OTHER')).toBeUndefined();
});

test('a file below a tenant’s folder, without its last newline, and no way out of it', async () => {
  mkdirSync(join(folder, 'physics'), { recursive: true });
  writeFileSync(join(folder, 'physics', 'key'), 'a\nb\n');
  const source = fileSecrets(folder);
  expect(await source.get('physics', 'key')).toBe('a\nb');
  expect(await source.get('chemistry', 'key')).toBeUndefined();
  for (const name of ['../physics/key', '.', 'x/../key', '']) {
    expect(await source.get('physics', name)).toBeUndefined();
  }
  mkdirSync(join(folder, 'physics', 'folder'));
  await expect(source.get('physics', 'folder')).rejects.toThrow('EISDIR');
  chmodSync(join(folder, 'physics', 'key'), 0o000);
});

test('the first that has it is taken; one that cannot be asked is told by name', async () => {
  const empty = environmentSecrets('LAB_', {});
  const broken = { name: 'the vault', get: () => Promise.reject(new Error('ECONNREFUSED')) };
  const full = environmentSecrets('', { KEY: 'v' });
  expect(await findSecret([empty, full, broken], 'default', 'KEY')).toBe('v');
  expect(await findSecret([empty], 'default', 'KEY')).toBeUndefined();
  await expect(findSecret([empty, broken, full], 'default', 'KEY')).rejects.toMatchObject({
    code: 'UNAVAILABLE',
    message: expect.stringContaining('the vault'),
  });
});

test('Infisical: one login for many, a new one when it has run out; no SDK is said', async () => {
  const options = {
    siteUrl: 'http://127.0.0.1:9',
    projectId: 'p',
    environment: 'prod',
    path: '/{tenant}/gpu',
    clientId: 'id',
    clientSecret: 'secret',
  };
  await expect(
    infisicalSecrets(options, () => Promise.reject(new Error('no such module'))).get('t', 'A'),
  ).rejects.toMatchObject({ hint: expect.stringContaining('npm install @infisical/sdk') });
  const paths: string[] = [];
  let logins = 0;
  let expired = false;
  class InfisicalSDK {
    auth() {
      return { universalAuth: { login: async () => void (logins++, (expired = false)) } };
    }
    secrets() {
      return {
        getSecret: async ({ secretName, secretPath }: Record<string, string>) => {
          paths.push(secretPath!);
          if (expired) throw new Error('[StatusCode=401] token expired');
          if (secretName === 'A') return { secretValue: 'a' };
          throw new Error('[StatusCode=404] Secret not found');
        },
      };
    }
  }
  const source = infisicalSecrets(options, async () => ({ InfisicalSDK }));
  expect(await source.get('physics', 'A')).toBe('a');
  expect(await source.get('physics', 'B')).toBeUndefined();
  expect([paths[0], logins]).toEqual(['/physics/gpu', 1]);
  expired = true;
  expect(await source.get('physics', 'A')).toBe('a');
  expect(logins).toBe(2);
  expect(await source.get('../x', 'A')).toBeUndefined();
});
