/** Where the server is and how to speak to it: flags, environment, `drover login`, `drover up`. */
import path from 'node:path';
import { isLoopback } from '../lib/loopback.ts';
import type { ClientTlsFiles } from '../protocol/clientTls.ts';
import { UsageError } from './args.ts';
import { contextPath, damaged, findContext, home, listContexts, readJson } from './contexts.ts';
import { savedTlsFiles } from './contexts.ts';
import type { Environment } from './environment.ts';

export interface Connection {
  url: string;
  token: string | undefined;
  /** Where the URL was found, for a person. */
  source: string;
  /** Whom to trust and what to show, where the server speaks HTTPS. */
  tls: ClientTlsFiles;
}

interface Flags {
  url: string | undefined;
  caFile: string | undefined;
}

/** The URL of the first source that names one; the rest of the environment or of the same URL. */
export function findConnection(env: Environment, flags: Partial<Flags> = {}): Connection {
  const known = knownServers(env);
  const wanted: [string | undefined, string][] = [
    [flags.url, '--url'],
    [env['DROVER_URL'], 'DROVER_URL'],
  ];
  for (const [text, source] of wanted) {
    if (!text) continue;
    const url = normalUrl(text, source);
    const saved = known.find((server) => server.url === url);
    const token = env['DROVER_TOKEN'] || saved?.token;
    return { url, token, source, tls: tlsFiles(env, flags, saved?.tls) };
  }
  const [first] = known;
  if (first) {
    const token = env['DROVER_TOKEN'] || first.token;
    return { ...first, token, tls: tlsFiles(env, flags, first.tls) };
  }
  throw new UsageError(
    'no server is known here',
    'start one with `make up`, or name one with `drover login URL` or DROVER_URL',
  );
}

function tlsFiles(
  env: Environment,
  { caFile }: Partial<Flags>,
  saved: ClientTlsFiles = {},
): ClientTlsFiles {
  return {
    caFile: caFile || env['DROVER_CA_FILE'] || saved.caFile,
    certFile: env['DROVER_CERT_FILE'] || saved.certFile,
    keyFile: env['DROVER_KEY_FILE'] || saved.keyFile,
  };
}

export const READABLE = 'there is no TLS, tokens cross the network readable';

export function isReadable(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  return protocol === 'http:' && !isLoopback(hostname);
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
  const named = env['DROVER_CONTEXT'];
  const source = contextPath(env);
  const contexts = named ? [findContext(env, named)] : listContexts(env);
  const servers = contexts.map(({ url, token, tls }): Connection => ({ url, token, source, tls }));
  const upFile = path.join(
    env['DROVER_DATA'] || path.join(home(env), '.drover'),
    'connection.json',
  );
  const up = readJson(upFile);
  if (up) {
    const { url, token } = up;
    if (typeof url !== 'string' || typeof token !== 'string') throw damaged(upFile);
    const tls = savedTlsFiles(up, upFile);
    servers.push({ url: normalUrl(url, upFile), token, source: upFile, tls });
  }
  return servers;
}
