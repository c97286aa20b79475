/** Files that change, are replaced, vanish and come back. */
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock } from './clock.ts';
import { watchFile, type Watch } from './watchFile.ts';

const folder = mkdtempSync(join(tmpdir(), 'drover-watch-'));
const path = join(folder, 'file');
let seen: string[];
let watch: Watch;

beforeEach(() => {
  seen = [];
  writeFileSync(path, 'one');
  watch = watchFile(
    {
      path,
      clock: systemClock,
      periodMs: 5,
      onChange: (text) => seen.push(text),
      onUnreadable: (error) => seen.push((error as NodeJS.ErrnoException).code ?? 'other'),
    },
    'one',
  );
});
afterEach(() => watch.close());

const told = (...texts: string[]) => expect.poll(() => seen, { timeout: 5000 }).toEqual(texts);

test('tells each change once, and nothing that was known', async () => {
  writeFileSync(path, 'two');
  await told('two');
  writeFileSync(`${path}.new`, 'three');
  renameSync(`${path}.new`, path);
  await told('two', 'three');
  writeFileSync(path, 'three');
  writeFileSync(join(folder, 'other'), 'x');
  writeFileSync(path, 'four');
  await told('two', 'three', 'four');
});

test('one that vanishes is told of once, and read when it is back', async () => {
  rmSync(path);
  await told('ENOENT');
  writeFileSync(path, 'two');
  await told('ENOENT', 'two');
  watch.close();
  writeFileSync(path, 'three');
  await new Promise((resolve) => setTimeout(resolve, 50));
  await told('ENOENT', 'two');
});
