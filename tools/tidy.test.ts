/** The repository keeps its own rules, and each rule finds what it is for. */
import { resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import { findAll, judge, readAllowed, shrink, type Finding, type SourceFile } from './tidy.ts';
import { documentRules, lockRules, nameRules, sizeRules, textRules } from './tidyRules.ts';

const root = resolve(import.meta.dirname, '..');

test('the repository is tidy', () => {
  expect(judge(findAll(root), readAllowed(root))).toEqual([]);
});

describe('a rule finds', () => {
  test.each<[string, SourceFile]>([
    ['vague-name', file('src/store/index.ts', '/** x */\n')],
    ['vague-name', file('src/store/stringUtils.ts', '/** x */\n')],
    ['vague-name', file('src/control/workerManager.ts', '/** x */\n')],
    ['file-bytes', { path: 'docs/film.mp4', bytes: 600_000, text: '' }],
    ['file-lines', file('src/a.ts', '/** x */\n'.repeat(301))],
    ['line-columns', file('src/a.ts', `/** ${'x'.repeat(100)} */\n`)],
    ['header', file('src/a.ts', 'export const a = 1;\n')],
    ['unfinished', file('docs/a.md', 'a\nb TO~DO c\n')],
    ['focused-test', file('src/a.test.ts', '/** x */\ndescribe.on~ly(1);\n')],
    ['focused-test', file('src/a.test.ts', '/** x */\ntest.sk~ip(1);\n')],
    ['machine-path', file('README.md', 'cd /ho~me/ada/drover\n')],
    ['authorship', file('a.md', 'Co-Auth~ored-By: somebody\n')],
    ['registry-host', file('.npmrc', 'registry=https://example.org/\n')],
    ['lock-resolved', file('package-lock.json', '{ "resolved": "https://example.org/a.tgz" }')],
  ])('%s', (rule, source) => {
    const rules = [nameRules, sizeRules, textRules, lockRules];
    expect(rules.flatMap((run) => run(source)).map((finding) => finding.rule)).toEqual([rule]);
  });

  test('folders, errors and limits that no page names, and links that lead nowhere', () => {
    const files = [
      file('src/lib/far/away.ts', '/** x */\n'),
      file('ARCHITECTURE.md', 'lib/ is here, see [this](docs/absent.md)\n'),
    ];
    const messages = documentRules(files).map((finding) => finding.message);
    expect(messages).toContain('the folder far/ is absent');
    expect(messages).not.toContain('the folder lib/ is absent');
    expect(messages).toContain('the error NOT_FOUND is absent');
    expect(messages).toContain('the limit arrayTasks is absent');
    expect(messages).toContain('a link to docs/absent.md, which is absent');
  });
});

describe('the ratchet', () => {
  const long: Finding = { rule: 'file-lines', path: 'a.ts', amount: 350, message: '350 lines' };

  test('bears what is listed and nothing beyond', () => {
    expect(judge([long], { 'file-lines': { 'a.ts': 350 } })).toEqual([]);
    expect(judge([long], { 'file-lines': { 'a.ts': 340 } })).toEqual([
      'a.ts: 350 lines [file-lines]',
    ]);
    expect(judge([long], {})).toHaveLength(1);
  });

  test('asks for an exception that was outgrown to be lowered, and lowers it', () => {
    const allowed = { 'file-lines': { 'a.ts': 400, 'gone.ts': 310 } };
    expect(judge([long], allowed)).toHaveLength(2);
    expect(shrink([long], allowed)).toEqual({ 'file-lines': { 'a.ts': 350 } });
    expect(shrink([long], { 'file-lines': { 'a.ts': 340 } })['file-lines']).toEqual({
      'a.ts': 340,
    });
  });
});

/** `~` parts words that this very file must not hold. */
function file(path: string, parted: string): SourceFile {
  const text = parted.replaceAll('~', '');
  return { path, bytes: text.length, text };
}
