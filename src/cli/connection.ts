/** Where the server is and how to speak to it: flags, environment, `drover login`, `drover up`. */
import { chmodSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import { UsageError } from './args.ts';
import type { Environment } from './environment.ts';

export interface Connection {
  url: string;
  token: string | undefined;
  /** Where the URL was found, for a person. */
  source: string;
}

interface Contexts {
  current: string;
  servers: Record<string, { token: string }>;
}

/** The URL of the first source that names one; the token of DROVER_TOKEN or of the same URL. */
export function findConnection(env: Environment, urlFlag: string | undefined): Connection {
  const known = knownServers(env);
  const wanted: [string | undefined, string][] = [
    [urlFlag, '--url'],
    [env['DROVER_URL'], 'DROVER_URL'],
  ];
  for (const [text, source] of wanted) {
    if (!text) continue;
    const url = normalUrl(text, source);
    const token = env['DROVER_TOKEN'] || known.find((server) => server.url === url)?.token;
    return { url, token, source };
  }
  const first = known[0];
  if (first) return { ...first, token: env['DROVER_TOKEN'] || first.token };
  throw new UsageError(
    'no server is known here',
    'start one with `make up`, or name one with `drover login URL` or DROVER_URL',
  );
}

export function normalUrl(text: string, what: string): string {
  const url = URL.parse(text.includes('://') ? text : `http://${text}`);
  if (!url || !['http:', 'https:'].includes(url.protocol) || url.username || url.search) {
    throw new UsageError(
      `${what} ${JSON.stringify(text)} is not a server's address`,
      'write http://HOST:PORT',
    );
  }
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '');
}

function knownServers(env: Environment): Connection[] {
  const servers: Connection[] = [];
  const contextFile = contextPath(env);
  const contexts = readContexts(contextFile);
  for (const [url, { token }] of Object.entries(contexts.servers)) {
    const entry = { url, token, source: contextFile };
    if (url === contexts.current) servers.unshift(entry);
    else servers.push(entry);
  }
  const upFile = path.join(
    env['DROVER_DATA'] || path.join(home(env), '.drover'),
    'connection.json',
  );
  const up = readJson(upFile);
  if (up) {
    const { url, token } = up;
    if (typeof url !== 'string' || typeof token !== 'string') throw damaged(upFile);
    servers.push({ url: normalUrl(url, upFile), token, source: upFile });
  }
  return servers;
}

function readContexts(file: string): Contexts {
  const { current = '', servers = {} } = (readJson(file) ?? {}) as Partial<Contexts>;
  for (const server of Object.values(servers)) {
    if (typeof server?.token !== 'string') throw damaged(file);
  }
  return { current, servers };
}

function contextPath(env: Environment): string {
  const config = env['XDG_CONFIG_HOME'] || path.join(home(env), '.config');
  return path.join(config, 'drover', 'context.json');
}

/** Replaced whole and readable by its owner only from the first byte on. */
export function saveContext(env: Environment, url: string, token: string): string {
  const file = contextPath(env);
  const servers = { ...readContexts(file).servers, [url]: { token } };
  mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
  const fresh = `${file}.${process.pid}`;
  writeFileSync(fresh, `${JSON.stringify({ current: url, servers }, null, 2)}\n`, { mode: 0o600 });
  chmodSync(fresh, 0o600);
  renameSync(fresh, file);
  return file;
}

function home(env: Environment): string {
  return env['HOME'] || homedir();
}

function readJson(file: string): Record<string, unknown> | undefined {
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

function damaged(file: string, cause?: unknown): UsageError {
  const why = cause instanceof Error ? `: ${cause.message}` : '';
  const hint = 'remove it, then `drover login URL` or start `drover up` again';
  return new UsageError(`${file} is damaged${why}`, hint);
}
