/** The servers that `drover login` remembers, by name: one file, its owner's only. */
import { chmodSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import { nearest } from '../lib/nearest.ts';
import type { ClientTlsFiles } from '../protocol/clientTls.ts';
import { UsageError } from './args.ts';
import type { Environment } from './environment.ts';

export interface Context {
  name: string;
  url: string;
  token: string;
  tls: ClientTlsFiles;
  current: boolean;
}

/** As it is stored; other programs read it too. */
interface ContextFile {
  /** A URL of `servers`, or empty. */
  current: string;
  servers: Record<string, { token: string; name?: string } & ClientTlsFiles>;
}

/** The current one first. */
export function listContexts(env: Environment): Context[] {
  const file = contextPath(env);
  const { current, servers } = readContexts(file);
  const all = Object.entries(servers).map(([url, { token, name, ...rest }]) => ({
    ...{ name: name ?? defaultName(url), url, token, tls: savedTlsFiles(rest, file) },
    current: url === current,
  }));
  return all.toSorted((one, other) => Number(other.current) - Number(one.current));
}

/** Where no name is given: the host, and the port where there is one. */
function defaultName(url: string): string {
  return URL.parse(url)?.host ?? url;
}

/** A name is one server's: the one that had it before is refused, not replaced. */
export function saveContext(
  env: Environment,
  saved: { url: string; token: string; name?: string | undefined; tls?: ClientTlsFiles },
): string {
  const { url, token, name, tls } = saved;
  const file = contextPath(env);
  const { servers } = readContexts(file);
  const kept = name ?? servers[url]?.name ?? defaultName(url);
  const other = listContexts(env).find((one) => one.name === kept && one.url !== url);
  if (other) {
    throw new UsageError(
      `${JSON.stringify(kept)} is the name of ${other.url}`,
      `choose another --name, or \`drover context rm ${kept}\` first`,
    );
  }
  write(file, { current: url, servers: { ...servers, [url]: { token, name: kept, ...tls } } });
  return file;
}

export function useContext(env: Environment, name: string): Context {
  const found = findContext(env, name);
  const file = contextPath(env);
  write(file, { ...readContexts(file), current: found.url });
  return { ...found, current: true };
}

export function removeContext(env: Environment, name: string): Context {
  const found = findContext(env, name);
  const file = contextPath(env);
  const { current, servers } = readContexts(file);
  const { [found.url]: _, ...rest } = servers;
  write(file, { current: found.current ? '' : current, servers: rest });
  return { ...found, current: false };
}

/** By its name, or by its URL. */
export function findContext(env: Environment, name: string): Context {
  const all = listContexts(env);
  const found = all.find((one) => one.name === name || one.url === name);
  if (found) return found;
  const names = all.map((one) => one.name);
  const close = nearest(name, names);
  const hint = close ? `did you mean ${close}?` : names.join(', ') || 'drover login URL';
  throw new UsageError(`there is no context ${JSON.stringify(name)}`, hint);
}

export function contextPath(env: Environment): string {
  const config = env['XDG_CONFIG_HOME'] || path.join(home(env), '.config');
  return path.join(config, 'drover', 'context.json');
}

function readContexts(file: string): ContextFile {
  const { current = '', servers = {} } = (readJson(file) ?? {}) as Partial<ContextFile>;
  for (const server of Object.values(servers)) {
    if (typeof server?.token !== 'string') throw damaged(file);
  }
  return { current, servers };
}

/** Replaced whole and readable by its owner only from the first byte on. */
function write(file: string, content: ContextFile): void {
  mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
  const fresh = `${file}.${process.pid}`;
  writeFileSync(fresh, `${JSON.stringify(content, null, 2)}\n`, { mode: 0o600 });
  chmodSync(fresh, 0o600);
  renameSync(fresh, file);
}

/** The names of files beside a token. */
export function savedTlsFiles(entry: Record<string, unknown>, file: string): ClientTlsFiles {
  const found: ClientTlsFiles = {};
  for (const key of ['caFile', 'certFile', 'keyFile'] as const) {
    const value = entry[key];
    if (value === undefined) continue;
    if (typeof value !== 'string') throw damaged(file);
    found[key] = value;
  }
  return found;
}

export function home(env: Environment): string {
  return env['HOME'] || homedir();
}

export function readJson(file: string): Record<string, unknown> | undefined {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) {
      return undefined;
    }
    throw new UsageError(`${file} cannot be read: ${(error as Error).message}`);
  }
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null) return value as Record<string, unknown>;
  } catch (error) {
    throw damaged(file, error);
  }
  throw damaged(file);
}

export function damaged(file: string, cause?: unknown): UsageError {
  const why = cause instanceof Error ? `: ${cause.message}` : '';
  const hint = 'remove it, then `drover login URL` or start `drover up` again';
  return new UsageError(`${file} is damaged${why}`, hint);
}
