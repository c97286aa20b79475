/** The lint rules, run by the real linter on small trees. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { wallReason } from './walls.ts';

const root = resolve(import.meta.dirname, '../..');
let tree: string;

beforeEach(() => {
  tree = mkdtempSync(join(tmpdir(), 'drover-lint-'));
  const rules = { 'drover/walls': 'error', 'drover/pure': 'error', 'drover/sql': 'error' };
  write(
    '.oxlintrc.json',
    JSON.stringify({
      jsPlugins: [join(root, 'tools/lint/walls.ts')],
      categories: { correctness: 'off' },
      rules,
    }),
  );
});
afterEach(() => rmSync(tree, { recursive: true }));

describe('walls', () => {
  test('hold for every way to write an import', () => {
    const lines = [
      "import { a } from '../store/writer.ts';",
      "import type { B } from '../store/writer.ts';",
      "export { c } from '../store/writer.ts';",
      "export * from '../store/writer.ts';",
      "export type D = import('../store/writer.ts').D;",
      "export const load = () => import('../store/writer.ts');",
    ];
    write('src/core/plan.ts', lines.join('\n'));
    expect(lint()).toEqual(lines.map((_, at) => `src/core/plan.ts:${at + 1} drover(walls)`));
  });

  test('let allowed imports, tests and other folders pass', () => {
    write('src/control/loop.ts', "import '../store/writer.ts'; import '../protocol/jobs.ts';");
    write('src/bin/drover.ts', "import '../cli/run.ts'; import '../control/loop.ts';");
    write('src/core/plan.test.ts', "import '../store/writer.ts'; setTimeout(() => {}, 1);");
    write('bench/jobs.ts', "import '../src/store/writer.ts'; import 'pg';");
    expect(lint()).toEqual([]);
  });

  test.each([
    ['lib/clock.ts', 'model/job.ts'],
    ['model/job.ts', 'core/retry.ts'],
    ['state/live.ts', 'store/writer.ts'],
    ['protocol/jobs.ts', 'state/live.ts'],
    ['gateway/rest/jobs.ts', 'control/coordinator.ts'],
    ['gateway/rest/jobs.ts', 'store/history.ts'],
    ['agent/sync.ts', 'gateway/server.ts'],
    ['cli/run.ts', 'agent/sync.ts'],
    ['store/writer.ts', 'control/loop.ts'],
    ['control/loop.ts', 'bin/drover.ts'],
    ['control/loop.ts', 'gateway/server.ts'],
    ['control/loop.ts', '../test/fake.ts'],
    ['helm/loop.ts', 'lib/clock.ts'],
  ])('refuse %s importing %s', (file, target) => {
    expect(wallReason(file, target)).toBeTypeOf('string');
  });
});

describe('pure', () => {
  test('refuses clocks, dice, timers, I/O and loggers in core/ and state/', () => {
    const lines = [
      'export const a = () => new Date();',
      'export const b = () => Date.now();',
      'export const c = () => Math.random();',
      'export const d = () => performance.now();',
      'export const e = () => setTimeout(a, 1);',
      'export const f = () => console.log(1);',
      'export const g = () => process.pid;',
      'export const h = () => crypto.randomUUID();',
      'export const i = () => globalThis;',
      "import 'node:fs';",
      "import 'fs/promises';",
      "import { pino } from 'pino';",
      "import { systemClock } from '../lib/clock.ts';",
      "import { createLog } from '../lib/log.ts';",
      "import { systemRandom } from '../lib/random.ts';",
      "export const j = () => import('node:crypto');",
    ];
    write('src/core/plan.ts', lines.join('\n'));
    expect(lint()).toEqual(lines.map((_, at) => `src/core/plan.ts:${at + 1} drover(pure)`));
  });

  test('lets types, own names and properties of the same name pass', () => {
    const source = [
      "import type { Clock } from '../lib/clock.ts';",
      "import { seededRandom } from '../lib/random.ts';",
      'export const plan = (performance: number, at: { Date: number }) => performance + at.Date;',
      'export const read = (process: Clock) => process.now();',
    ].join('\n');
    write('src/state/live.ts', source);
    write('src/control/loop.ts', 'export const now = () => Date.now();');
    expect(lint()).toEqual([]);
  });
});

test('SQL is reached from store/ only', () => {
  write('src/store/writer.ts', "import 'node:sqlite'; import 'pg'; import 'kysely';");
  write('src/gateway/cache.ts', "import 'node:sqlite';");
  // The gateway's read cache is the one exception.
  write('src/gateway/cache/jobs.ts', "import 'node:sqlite';");
  write('src/control/loop.ts', "import type { Pool } from 'pg';");
  expect(lint()).toEqual([
    'src/control/loop.ts:1 drover(sql)',
    'src/gateway/cache.ts:1 drover(sql)',
  ]);
});

function write(file: string, text: string): void {
  mkdirSync(dirname(join(tree, file)), { recursive: true });
  writeFileSync(join(tree, file), `${text}\n`);
}

/** Every problem as `file:line rule`, sorted by file and line. */
function lint(): string[] {
  const oxlint = join(root, 'node_modules/.bin/oxlint');
  const run = spawnSync(oxlint, ['-f', 'json', '.'], { cwd: tree, encoding: 'utf8' });
  const { diagnostics } = JSON.parse(run.stdout) as { diagnostics: Diagnostic[] };
  return diagnostics
    .map((problem) => ({ ...problem, line: problem.labels[0]?.span.line ?? 0 }))
    .toSorted((a, b) => a.filename.localeCompare(b.filename) || a.line - b.line)
    .map(({ filename, line, code }) => `${filename}:${line} ${code}`);
}

interface Diagnostic {
  code: string;
  filename: string;
  labels: { span: { line: number } }[];
}
