/** The identity on disk: there after a crash, and nobody else's to read. */
import { chmodSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { identityFile } from './identity.ts';

let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'drover-identity-'));
  path = join(folder, 'identity.json');
});
afterEach(() => rmSync(folder, { recursive: true }));

const identity = { worker: 'w1', token: 'drw_secret', clusterId: 'c1', starts: 1 };

test('there is none before the first join', () => {
  expect(identityFile(path).load()).toBeNull();
});

test('what was saved last is loaded, whole, and nothing is left beside it', () => {
  const file = identityFile(path);
  file.save(identity);
  file.save({ ...identity, starts: 2 });
  expect(identityFile(path).load()).toEqual({ ...identity, starts: 2 });
  expect(readdirSync(folder)).toEqual(['identity.json']);
});

test('only its owner may read it, whatever was there before', () => {
  writeFileSync(`${path}.new`, 'left by a crash');
  chmodSync(`${path}.new`, 0o644);
  identityFile(path).save(identity);
  expect(statSync(path).mode & 0o777).toBe(0o600);
});

test.each(['', '{', 'null', '[]', '{"worker":"w1"}', JSON.stringify({ ...identity, starts: '1' })])(
  'a file that holds %j is refused with what to do',
  (text) => {
    writeFileSync(path, text);
    expect(() => identityFile(path).load()).toThrow(
      expect.objectContaining({
        code: 'INVALID_ARGUMENT',
        message: expect.stringContaining(path),
        hint: expect.stringContaining('join again'),
      }),
    );
  },
);
