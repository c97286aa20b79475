/** A job's environment from --env K=V, --env K and files of such lines. */
import { readFileSync } from 'node:fs';
import { UsageError } from './args.ts';

export type Environment = Record<string, string | undefined>;

/** `K=V` is itself; `K` alone takes the value from this shell. */
export function envFromList(
  entries: string[],
  what: string,
  env: Environment,
): Record<string, string> {
  const result: Record<string, string> = {};
  for (const entry of entries) {
    const equals = entry.indexOf('=');
    const key = equals < 0 ? entry : entry.slice(0, equals);
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(key)) {
      throw new UsageError(`${what}: ${JSON.stringify(key)} is not a variable name`);
    }
    const value = equals < 0 ? env[key] : entry.slice(equals + 1);
    if (value === undefined) {
      throw new UsageError(`${what} ${key}: it is not set here`, `write ${what} ${key}=VALUE`);
    }
    result[key] = value;
  }
  return result;
}

/** One entry per line; `#` starts a comment line, `export` and one pair of quotes are taken off. */
export function envFileEntries(
  file: string,
  what: string,
  env: Environment,
): Record<string, string> {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw new UsageError(`${what} ${file} cannot be read: ${(error as Error).message}`);
  }
  const entries = text
    .split(/\r?\n/)
    .map((line) => line.trim().replace(/^export\s+/, ''))
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => line.replace(/^([^=]+=)(["'])(.*)\2$/, '$1$3'));
  return envFromList(entries, `${what} ${file}`, env);
}

/** NAME=VALUE pairs that are not variables: labels. */
export function labelsFromList(entries: string[], what: string): Record<string, string> {
  const pairs = entries.map((entry): [string, string] => {
    const equals = entry.indexOf('=');
    if (equals < 1) throw new UsageError(`${what} ${entry}: write ${what} NAME=VALUE`);
    return [entry.slice(0, equals), entry.slice(equals + 1)];
  });
  return Object.fromEntries(pairs);
}
