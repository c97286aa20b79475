/** Our reading of ignore files is git's own: every path is asked of both. */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { BUNDLE_LIMITS, walkFolder } from './walk.ts';

const ALL = { ...BUNDLE_LIMITS, ignoreFiles: ['.gitignore', '.droverignore'], hint: '' };
const FILES = [
  'a.log',
  'b.txt',
  'keep.log',
  'build/out.o',
  'build/keep.log',
  'src/a.log',
  'src/build/x.c',
  'src/deep/er/file.txt',
  'src/deep/er/a.log',
  'data/1.bin',
  'data/12.bin',
  'data/sub/1.bin',
  '#hash',
  '!bang',
  'sp ace.txt',
  '[x].txt',
];

let root: string;
beforeAll(() => {
  root = mkdtempSync(path.join(tmpdir(), 'drover-ignore-'));
  execFileSync('git', ['init', '-q', root]);
  for (const file of FILES) {
    mkdirSync(path.dirname(path.join(root, file)), { recursive: true });
    writeFileSync(path.join(root, file), '');
  }
});
afterAll(() => rmSync(root, { recursive: true }));

function travels(rootRules: string, srcRules: string): string[] {
  writeFileSync(path.join(root, '.gitignore'), rootRules);
  writeFileSync(path.join(root, 'src', '.gitignore'), srcRules);
  return walkFolder(root, ALL)
    .files.map(({ path: at }) => at)
    .toSorted();
}

function gitKeeps(): string[] {
  const args = ['ls-files', '--others', '--cached', '-z', '--exclude-per-directory=.gitignore'];
  const { stdout } = spawnSync('git', ['-C', root, ...args], { encoding: 'utf8' });
  return stdout.split('\0').filter(Boolean).toSorted();
}

test.each([
  ['*.log\n!keep.log\n', ''],
  ['build/\n', '!build/\n'],
  ['/build\n*.bin\n', ''],
  ['**/a.log\n', ''],
  ['src/**/file.txt\n', ''],
  ['data/**\n!data/sub/\n', ''],
  ['data/*\n!data/sub\n', ''],
  ['\\#hash\n\\!bang\n# comment\n', ''],
  ['sp ace.txt   \n', '*\n!*.log\n'],
  ['\\[x\\].txt\n', '/deep\n'],
  ['[0-9].bin\n[!a]*.log\n', ''],
  ['[[:digit:]]?.bin\n', ''],
  ['deep/er\n', 'deep/er\n'],
  ['*\n!/src\n!src/**\n', ''],
  ['a.log\r\n', ''],
])('%j with %j in src', (rootRules, srcRules) => {
  expect(travels(rootRules, srcRules)).toEqual(gitKeeps());
});

test('random patterns', () => {
  const part = fc.constantFrom('*', '**', 'a', 'build', 'src', '?', '[a-k]', '.log', 'deep', 'er');
  const line = fc
    .tuple(
      fc.constantFrom('', '', '!'),
      fc.constantFrom('', '', '/'),
      fc.array(part, { minLength: 1, maxLength: 4 }),
      fc.constantFrom('', '/'),
      fc.constantFrom('', '', '/'),
    )
    .map(([not, first, parts, joint, last]) => not + first + parts.join(joint) + last);
  const rules = fc.array(line, { maxLength: 4 }).map((lines) => `${lines.join('\n')}\n`);
  fc.assert(
    fc.property(rules, rules, (one, other) => {
      expect(travels(one, other)).toEqual(gitKeeps());
    }),
    { numRuns: 60 },
  );
});

test('a subfolder obeys the repository above it, and .droverignore has the last word', () => {
  travels('*.log\n/src/deep\n', '');
  writeFileSync(path.join(root, 'src', '.droverignore'), '!a.log\nbuild\n');
  const paths = walkFolder(path.join(root, 'src'), ALL).files.map(({ path: at }) => at);
  rmSync(path.join(root, 'src', '.droverignore'));
  expect(paths.toSorted()).toEqual(['.droverignore', '.gitignore', 'a.log']);
});
