/** What the rule on a function's length counts. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';

const root = resolve(import.meta.dirname, '../..');
const body = (lines: number): string => 'call();\n'.repeat(lines);

test.each([
  ['70 lines', `function a() {\n${body(68)}}`, false],
  ['71 lines', `function a() {\n${body(69)}}`, true],
  [
    'a factory of short functions',
    `function a() {\nreturn {\n${method('b', 50)},\n${method('c', 50)}\n};\n}`,
    false,
  ],
  ['a long function in a short one', `function a() {\nreturn {\n${method('b', 80)}\n};\n}`, true],
  ['a long arrow', `const a = () => {\n${body(70)}};`, true],
  ['a class of short methods', `class A {\n${method('b', 60)}\n${method('c', 60)}\n}`, false],
])('%s', (_, source, refused) => {
  const folder = mkdtempSync(join(tmpdir(), 'drover-functions-'));
  try {
    writeFileSync(join(folder, 'a.ts'), `${source}\n`);
    const config = join(root, 'tools/lint/functions.json');
    const oxlint = join(root, 'node_modules/.bin/oxlint');
    const run = spawnSync(oxlint, ['-c', config, 'a.ts'], { cwd: folder, encoding: 'utf8' });
    expect(run.stdout.includes('functions(own-lines)')).toBe(refused);
    expect(run.status).toBe(refused ? 1 : 0);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

function method(name: string, lines: number): string {
  return `${name}() {\n${body(lines)}}`;
}
