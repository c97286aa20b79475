/** A folder's surprises are named, and nothing of them is sent. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { BUNDLE_LIMITS, walkFolder } from './walk.ts';

const options = { ...BUNDLE_LIMITS, ignoreFiles: ['.gitignore', '.droverignore'], hint: 'try' };
let root: string;
beforeEach(() => {
  root = mkdtempSync(path.join(tmpdir(), 'drover-walk-'));
});
afterEach(() => rmSync(root, { recursive: true }));

const at = (name: string): string => path.join(root, name);

test('files, modes, links, empty folders; never .git', () => {
  mkdirSync(at('empty/inner'), { recursive: true });
  mkdirSync(at('.git'));
  writeFileSync(at('.git/config'), 'x');
  writeFileSync(at('run.sh'), 'echo', { mode: 0o755 });
  symlinkSync('run.sh', at('link'));
  symlinkSync('nothing', at('dangling'));
  const { files, links, folders } = walkFolder(root, options);
  expect(files).toMatchObject([{ path: 'run.sh', size: 4, executable: true }]);
  expect(links.toSorted((a, b) => (a.path < b.path ? -1 : 1))).toEqual([
    { path: 'dangling', target: 'nothing' },
    { path: 'link', target: 'run.sh' },
  ]);
  expect(folders).toEqual(['empty/inner']);
});

test.each([
  ['/etc/passwd', 'leads out of the folder, to /etc/passwd'],
  ['../elsewhere', 'leads out of the folder, to ../elsewhere'],
  ['self', 'leads back to itself'],
])('a link to %s', (target, message) => {
  symlinkSync(target, at('self'));
  expect(() => walkFolder(root, options)).toThrow(`${at('self')} is a link that ${message}`);
});

test('a loop of links through folders, and a link out by way of another', () => {
  mkdirSync(at('sub'));
  symlinkSync('../sub', at('sub/again'));
  expect(walkFolder(root, options).links).toEqual([{ path: 'sub/again', target: '../sub' }]);
  symlinkSync('..', at('sub/up'));
  symlinkSync('sub/up/../..', at('out'));
  expect(() => walkFolder(root, options)).toThrow(`${at('out')} is a link that leads out`);
});

test('a named pipe, a socket', async () => {
  execFileSync('mkfifo', [at('pipe')]);
  expect(() => walkFolder(root, options)).toThrow(`${at('pipe')} is a named pipe`);
  writeFileSync(at('.droverignore'), 'pipe\n');
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(at('socket'), resolve));
  expect(() => walkFolder(root, options)).toThrow(`${at('socket')} is a socket`);
  await new Promise((resolve) => server.close(resolve));
});

test('limits have names', () => {
  writeFileSync(at('a'), '12345');
  writeFileSync(at('b'), '12345');
  expect(() => walkFolder(root, { ...options, fileBytes: 4 })).toThrow(`${at('a')} is 1K; one`);
  expect(() => walkFolder(root, { ...options, totalBytes: 9 })).toThrow(/is more than 1K: at b/);
  expect(() => walkFolder(root, { ...options, files: 1 })).toThrow(/more than 1 files/);
  expect(() => walkFolder(at('missing'), options)).toThrow(/cannot be read/);
  expect(() => walkFolder(at('a'), options)).toThrow(/is not a folder/);
});
