/** The proto files keep to the rules, and the generated code is what they say. */
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const root = resolve(import.meta.dirname, '../..');
const bin = join(root, 'node_modules/.bin');
const run = promisify(execFile);
const env = { ...process.env, PATH: `${bin}${delimiter}${process.env['PATH'] ?? ''}` };
const buf = (...words: string[]) => run(join(bin, 'buf'), words, { cwd: root, env });

test('buf lint and format find nothing', async () => {
  expect(await buf('lint')).toMatchObject({ stdout: '' });
  expect(await buf('format', '--diff', '--exit-code')).toMatchObject({ stdout: '' });
});

test('src/protocol/gen is up to date (otherwise: npx buf generate)', async () => {
  const fresh = await mkdtemp(join(tmpdir(), 'drover-gen-'));
  try {
    await buf('generate', '--output', fresh);
    const generated = await filesUnder(join(fresh, 'src/protocol/gen'));
    expect(generated.size).toBeGreaterThan(5);
    expect(await filesUnder(join(root, 'src/protocol/gen'))).toEqual(generated);
  } finally {
    await rm(fresh, { recursive: true });
  }
});

async function filesUnder(folder: string): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for (const name of (await readdir(folder, { recursive: true })).toSorted()) {
    if (name.endsWith('.ts')) found.set(name, await readFile(join(folder, name), 'utf8'));
  }
  return found;
}
