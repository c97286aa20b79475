/** Certificate files: which are refused and how, and what happens when they change. */
import { mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../clock.ts';
import { silentLog, type Log } from '../log.ts';
import { TlsFiles } from './files.ts';
import { createAuthority } from '../../../test/support/certificates.ts';
import { until } from '../../../test/support/wait.ts';

const LOOK_MS = 10;
const authority = createAuthority('drover test CA');
let folder: string;
let open: TlsFiles | undefined;
let errors: string[];
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'drover-tls-'));
  errors = [];
});
afterEach(() => {
  open?.close();
  open = undefined;
  rmSync(folder, { recursive: true });
});

const at = (name: string): string => path.join(folder, name);
const log: Log = {
  ...silentLog,
  error: (fields) => void errors.push((fields as { error?: string }).error ?? 'expired'),
};

function write({ cert, key }: { cert?: string; key?: string }): void {
  if (cert !== undefined) writeFileSync(at('cert.pem'), cert);
  if (key !== undefined) writeFileSync(at('key.pem'), key);
}

function openFiles(): TlsFiles {
  const files = {
    cert: { setting: 'server.certFile', path: at('cert.pem') },
    key: { setting: 'server.keyFile', path: at('key.pem') },
  };
  open = new TlsFiles({ files, clock: systemClock, log, lookMs: LOOK_MS });
  return open;
}

test.each<[string, { cert?: string; key?: string }, string]>([
  ['no file', { key: 'x' }, 'server.certFile names .*cert.pem, which cannot be read'],
  ['no certificate in it', { cert: 'hello', key: 'x' }, 'cert.pem, which holds no certificate'],
  [
    'a damaged certificate',
    { cert: authority.cert.replace(/\n.{20}/, '\nAAAAAAAAAAAAAAAAAAAA'), key: authority.key },
    'cert.pem, which holds a damaged certificate',
  ],
  ['no key', { cert: authority.cert, key: 'x' }, 'key.pem, which holds no private key'],
  [
    'the key of another',
    { cert: authority.cert, key: authority.issue('b').key },
    'key.pem, which is not the key of the certificate in',
  ],
])('%s is told with setting and file', (_, files, words) => {
  write(files);
  expect(openFiles).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
  expect(openFiles).toThrow(new RegExp(words));
});

test('new files are taken together, also by a link that is swapped', async () => {
  const first = authority.issue('first');
  write(first);
  const tls = openFiles();
  let changes = 0;
  tls.onChange(() => changes++);
  const second = authority.issue('second');
  write({ cert: second.cert });
  await until('the half was looked at and told', () => tls.failures === 1);
  expect([tls.cert, tls.key, changes]).toEqual([first.cert, first.key, 0]);
  expect(errors).toEqual([expect.stringContaining('is not the key of the certificate')]);
  write({ key: second.key });
  await until('both are there', () => tls.renewals === 1);
  expect([tls.cert, tls.key, changes]).toEqual([second.cert, second.key, 1]);
  const third = authority.issue('third');
  writeFileSync(at('other.pem'), `${third.cert}${third.key}`);
  for (const name of ['cert.pem', 'key.pem']) {
    symlinkSync('other.pem', at('link'));
    renameSync(at('link'), at(name));
  }
  await until('the links are followed', () => tls.renewals === 2);
  expect(tls.cert).toContain(third.cert);
});

test('what cannot be used is told once, and the old one stays', async () => {
  const first = authority.issue('first');
  write(first);
  const tls = openFiles();
  rmSync(at('key.pem'));
  await until('the file is missed', () => tls.failures === 1);
  write({ ...authority.issue('late', { expired: true }) });
  await until('the expired one is refused', () => tls.failures === 2);
  await new Promise((resolve) => setTimeout(resolve, 10 * LOOK_MS));
  expect([tls.failures, tls.renewals, tls.cert]).toEqual([2, 0, first.cert]);
  expect(errors).toEqual([
    expect.stringContaining('ENOENT'),
    expect.stringContaining('has expired already'),
  ]);
  write(first);
  await new Promise((resolve) => setTimeout(resolve, 5 * LOOK_MS));
  expect(tls.renewals).toBe(0);
  expect(tls.expiresAtMs).toBe(Date.UTC(2049, 11, 31, 23, 59, 59));
});

test('one that has expired at the start is used, and the log says what will come of it', () => {
  write(authority.issue('old', { expired: true }));
  openFiles();
  expect(errors).toEqual(['expired']);
});
