/** The closing count of a test run, from real runs of the runner on small suites. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';

const root = resolve(import.meta.dirname, '..');

test.each([
  ['all pass', "test('a', () => {}); test('b', () => {});", '2 passed, 0 failed', 0],
  [
    'one fails',
    "test('a', () => {}); test('b', () => { throw new Error('no'); });",
    '1 passed, 1 failed',
    1,
  ],
  [
    'one is skipped',
    "test('a', () => {}); test['skip']('b', () => {});",
    '1 passed, 0 failed, 1 skipped',
    0,
  ],
  ['a file does not load', "throw new Error('no');", '0 passed, 1 failed', 1],
  [
    'a hook fails',
    "beforeAll(() => { throw new Error('no'); }); test('a', () => {});",
    '0 passed, 1 failed, 1 skipped',
    1,
  ],
  ['nothing runs', '', '0 passed, 1 failed', 1],
])(
  'when %s',
  (_, source, line, status) => {
    const { stdout, status: exit } = runSuite(source);
    expect(stdout.trimEnd().split('\n').at(-1)).toBe(line);
    expect(exit).toBe(status);
  },
  30_000,
);

function runSuite(source: string): { stdout: string; status: number | null } {
  // Inside the checkout, so that the suite finds vitest.
  mkdirSync(join(root, '.cache'), { recursive: true });
  const folder = mkdtempSync(join(root, '.cache/totals-'));
  try {
    if (source) {
      const imports = "import { beforeAll, test } from 'vitest'; void beforeAll; void test;";
      writeFileSync(join(folder, 'a.test.ts'), `${imports}\n${source}\n`);
    }
    const reporters = ['default', join(root, 'tools/totals.ts')].map((r) => `--reporter=${r}`);
    return spawnSync(
      join(root, 'node_modules/.bin/vitest'),
      ['run', '--root', folder, ...reporters],
      { encoding: 'utf8', env: { ...process.env, NO_COLOR: '1', VITEST: undefined } },
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
}
