/**
 * The repository's rules, run as a test: what it finds beyond tidy.allow.json is an error, and an
 * entry there that is no longer needed is one too, so the list of exceptions only shrinks.
 *
 *   node tools/tidy.ts            says what is wrong, exits 1 if anything is
 *   node tools/tidy.ts --shrink   lowers and removes exceptions that were outgrown
 */
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { documentRules, lockRules, nameRules, sizeRules, textRules } from './tidyRules.ts';

export interface SourceFile {
  /** Relative to the root, with forward slashes. */
  path: string;
  bytes: number;
  /** Empty for a binary file. */
  text: string;
}

/** `amount` is what the ratchet compares: a number of lines, or of places. */
export interface Finding {
  rule: string;
  path: string;
  amount: number;
  message: string;
}

/** Rule, then path, then the amount that is still borne. */
export type Allowed = Record<string, Record<string, number>>;

const ALLOW_FILE = 'tools/tidy.allow.json';
const FUNCTION_LINES = 70;
const FUNCTIONS_IN = /\.tsx?$/;
const FUNCTIONS_NOT_IN = /\.test\.tsx?$|^src\/protocol\/gen\//;

export function findAll(root: string): Finding[] {
  const files = listFiles(root);
  return [
    ...files.flatMap((file) => [
      ...nameRules(file),
      ...sizeRules(file),
      ...textRules(file),
      ...lockRules(file),
    ]),
    ...longFunctions(root, files),
    ...documentRules(files),
  ];
}

/** What to tell: findings beyond the exceptions, and exceptions that are larger than needed. */
export function judge(findings: Finding[], allowed: Allowed): string[] {
  const problems: string[] = [];
  for (const finding of findings) {
    const { rule, path, amount, message } = finding;
    const limit = allowed[rule]?.[path] ?? 0;
    if (amount > limit) problems.push(`${path}: ${message} [${rule}]`);
  }
  for (const [rule, paths] of Object.entries(allowed)) {
    for (const [path, limit] of Object.entries(paths)) {
      const amount = amountOf(findings, rule, path);
      if (amount >= limit) continue;
      const told = `${rule} is down from ${limit} to ${amount}`;
      problems.push(`${path}: ${told}; keep it so by node tools/tidy.ts --shrink`);
    }
  }
  return problems;
}

/** The exceptions lowered to what is found now; never one more, never one higher. */
export function shrink(findings: Finding[], allowed: Allowed): Allowed {
  const smaller: Allowed = {};
  for (const [rule, paths] of Object.entries(allowed)) {
    for (const [path, limit] of Object.entries(paths)) {
      const amount = Math.min(limit, amountOf(findings, rule, path));
      if (amount > 0) (smaller[rule] ??= {})[path] = amount;
    }
  }
  return smaller;
}

export function readAllowed(root: string): Allowed {
  return JSON.parse(readFileSync(join(root, ALLOW_FILE), 'utf8')) as Allowed;
}

function amountOf(findings: Finding[], rule: string, path: string): number {
  const own = findings.filter((finding) => finding.rule === rule && finding.path === path);
  return Math.max(0, ...own.map((finding) => finding.amount));
}

/** Tracked files and new ones that git does not ignore. */
function listFiles(root: string): SourceFile[] {
  const listing = ['ls-files', '-z', '--cached', '--others', '--exclude-standard'];
  const git = spawnSync('git', listing, { cwd: root, encoding: 'utf8' });
  if (git.status !== 0) throw new Error(`git ls-files failed: ${git.stderr}`);
  const paths = [...new Set(git.stdout.split('\0'))].filter((path) => path !== '');
  return paths.flatMap((path) => {
    const content = readIfThere(join(root, path));
    if (content === undefined) return [];
    const text = content.includes(0) ? '' : content.toString('utf8');
    return [{ path, bytes: content.length, text }];
  });
}

/** Undefined for a file deleted but not yet committed so, and for a link to a folder. */
function readIfThere(path: string): Buffer | undefined {
  try {
    return readFileSync(path);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === 'ENOENT' || code === 'EISDIR') return undefined;
    throw error;
  }
}

/** Own lines, see lint/functions.ts. Tests are left out: a `describe` is a list. */
function longFunctions(root: string, files: SourceFile[]): Finding[] {
  const paths = files.map((file) => file.path);
  const checked = paths.filter((path) => FUNCTIONS_IN.test(path) && !FUNCTIONS_NOT_IN.test(path));
  const oxlint = spawnSync(
    join(root, 'node_modules/.bin/oxlint'),
    ['-c', 'tools/lint/functions.json', '-f', 'json', ...checked],
    { cwd: root, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 },
  );
  const { diagnostics } = JSON.parse(oxlint.stdout) as { diagnostics: Diagnostic[] };
  const longest = new Map<string, Finding>();
  for (const { filename, message, labels } of diagnostics) {
    const amount = Number(/\((\d+)\)/.exec(message)?.[1]);
    const line = labels[0]?.span.line ?? 0;
    if (amount <= (longest.get(filename)?.amount ?? 0)) continue;
    const told = `a function of ${amount} lines at line ${line}; the limit is ${FUNCTION_LINES}`;
    longest.set(filename, { rule: 'function-lines', path: filename, amount, message: told });
  }
  return [...longest.values()];
}

interface Diagnostic {
  message: string;
  filename: string;
  labels: { span: { line: number } }[];
}

if (import.meta.main) {
  const root = resolve(import.meta.dirname, '..');
  const findings = findAll(root);
  if (process.argv.includes('--shrink')) {
    const allowed = shrink(findings, readAllowed(root));
    writeFileSync(join(root, ALLOW_FILE), `${JSON.stringify(allowed, null, 2)}\n`);
  }
  const problems = judge(findings, readAllowed(root));
  for (const problem of problems) console.error(problem);
  if (problems.length > 0) process.exitCode = 1;
}
