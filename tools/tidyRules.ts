/** The single rules of tidy.ts. Each takes files as data and returns what it finds. */
import { posix } from 'node:path';
import { ERRORS } from '../src/lib/errors.ts';
import { JOB_LIMITS } from '../src/protocol/jobSpec.ts';
import type { Finding, SourceFile } from './tidy.ts';

const LIMITS = { fileLines: 300, lineColumns: 100, fileBytes: 512 * 1024 } as const;
const SOURCE = /\.(ts|js|tsx|py|sh)$|(^|\/)Makefile$|^\.ci\/run$/;
const GENERATED = /^src\/protocol\/gen\/|(^|\/)package-lock\.json$/;
/** Names that refuse nothing, so that everything ends up in them. */
const VAGUE_NAME =
  /^(index|utils?|helpers?|managers?|common|misc|shared)\.|(Utils?|Helpers?|Managers?)\./;

/** Patterns that no file may hold. Written in pieces where this file would match itself. */
const BANNED: { rule: string; pattern: RegExp; files: RegExp; message: string }[] = [
  {
    rule: 'unfinished',
    pattern: /\b(T[O]DO|F[I]XME|X[X]X|H[A]CK)\b/g,
    files: /./,
    message: 'an unfinished mark: do it, or open an issue',
  },
  {
    rule: 'focused-test',
    pattern:
      /\b(it|test|describe|suite|bench)(\.\w+)*\.(only|skip|todo)\b|(?<!\.)\b(xit|xtest|fit)\(/g,
    files: /\.(test|spec)\.tsx?$/,
    message: 'a focused or skipped test',
  },
  {
    rule: 'machine-path',
    pattern: /(?<![\w.~$}/-])\/(work|home|root|Users)\/[\w.-]+/g,
    files: /./,
    message: 'a path of one machine',
  },
  {
    rule: 'authorship',
    pattern: new RegExp(
      `\\b(${[
        'co-auth[o]red-by|clau[d]e|anthrop[i]c|chatg[p]t|copil[o]t',
        'as an a[i]\\b|ai-gener[a]ted|generated (by|with) (an? )?(a[i]|ll[m])\\b',
      ].join('|')})`,
      'gi',
    ),
    files: /./,
    message: 'words about how the code was written; say what it does',
  },
  {
    rule: 'registry-host',
    pattern: /^\s*(registry|@[\w-]+:registry|\/\/.*_auth\w*)\s*=/gm,
    files: /(^|\/)\.npmrc$/,
    message: 'a registry of one machine',
  },
];

export function nameRules({ path }: SourceFile): Finding[] {
  if (GENERATED.test(path) || !SOURCE.test(path)) return [];
  if (!VAGUE_NAME.test(posix.basename(path))) return [];
  return [{ rule: 'vague-name', path, amount: 1, message: 'a name that says nothing' }];
}

export function sizeRules({ path, bytes, text }: SourceFile): Finding[] {
  const findings: Finding[] = [];
  if (bytes > LIMITS.fileBytes) {
    const message = `${bytes} bytes; the limit is ${LIMITS.fileBytes}`;
    findings.push({ rule: 'file-bytes', path, amount: bytes, message });
  }
  if (GENERATED.test(path) || !SOURCE.test(path)) return findings;
  const lines = text.split('\n');
  const count = text.endsWith('\n') ? lines.length - 1 : lines.length;
  if (count > LIMITS.fileLines) {
    const message = `${count} lines; the limit is ${LIMITS.fileLines}`;
    findings.push({ rule: 'file-lines', path, amount: count, message });
  }
  const long = lines.flatMap((line, at) => (line.length > LIMITS.lineColumns ? [at + 1] : []));
  if (long.length > 0) {
    const message = `lines over ${LIMITS.lineColumns} columns: ${long.slice(0, 10).join(', ')}`;
    findings.push({ rule: 'line-columns', path, amount: long.length, message });
  }
  return findings;
}

export function textRules({ path, text }: SourceFile): Finding[] {
  if (GENERATED.test(path)) return [];
  const findings: Finding[] = [];
  if (/^src\/.*\.ts$/.test(path) && !/^(#!.*\n)?\s*\/[*/]/.test(text)) {
    const message = 'no header comment: one sentence that says what the file is for';
    findings.push({ rule: 'header', path, amount: 1, message });
  }
  for (const { rule, pattern, files, message } of BANNED) {
    if (!files.test(path)) continue;
    const found = [...text.matchAll(pattern)];
    const first = found[0];
    if (!first) continue;
    const line = text.slice(0, first.index).split('\n').length;
    const told = `line ${line}: ${message} (${first[0].trim()})`;
    findings.push({ rule, path, amount: found.length, message: told });
  }
  return findings;
}

/** A lock must install anywhere: no address of the registry it was made with. */
export function lockRules({ path, text }: SourceFile): Finding[] {
  if (posix.basename(path) !== 'package-lock.json') return [];
  const found = text.match(/"resolved":/g) ?? [];
  if (found.length === 0) return [];
  const message = `${found.length} addresses of packages; run \`make lock\``;
  return [{ rule: 'lock-resolved', path, amount: found.length, message }];
}

export function documentRules(files: SourceFile[]): Finding[] {
  const textOf = (path: string): string => files.find((file) => file.path === path)?.text ?? '';
  const absent = (path: string, words: string[], what: string, quote: string): Finding[] =>
    words
      .filter((word) => !textOf(path).includes(`${quote}${word}${quote}`))
      .map((word) => ({
        rule: 'documented',
        path,
        amount: 1,
        message: `${what} ${word} is absent`,
      }));
  return [
    ...absent('ARCHITECTURE.md', sourceFolders(files), 'the folder', ''),
    ...absent('docs/errors.md', Object.keys(ERRORS), 'the error', '`'),
    ...absent('docs/limits.md', Object.keys(JOB_LIMITS), 'the limit', '`'),
    ...files.flatMap((file) => brokenLinks(file, files)),
  ];
}

/** `agent/`, `runtimes/` …: the last part of each folder that holds source. */
function sourceFolders(files: SourceFile[]): string[] {
  const folders = new Set<string>();
  for (const { path } of files) {
    if (!path.startsWith('src/')) continue;
    for (const part of posix.dirname(path).split('/').slice(1)) folders.add(`${part}/`);
  }
  return [...folders].toSorted();
}

/** Relative links of Markdown files to things that are not in the repository. */
function brokenLinks({ path, text }: SourceFile, files: SourceFile[]): Finding[] {
  if (!path.endsWith('.md')) return [];
  const links = [...text.matchAll(/(?:\]\(|src="|srcset="|href=")([^)"#\s]+)/g)];
  return links.flatMap(([, link = '']) => {
    if (/^[a-z]+:/.test(link)) return [];
    const target = posix.join(posix.dirname(path), link).replace(/\/$/, '');
    if (files.some((file) => file.path === target || file.path.startsWith(`${target}/`))) return [];
    return [
      { rule: 'broken-link', path, amount: 1, message: `a link to ${link}, which is absent` },
    ];
  });
}
