/** Where the server is and how to speak to it: flags, environment, `drover login`, `drover up`. */
import path from 'node:path';
import { UsageError } from './args.ts';
import { contextPath, damaged, findContext, home, listContexts, readJson } from './contexts.ts';
import type { Environment } from './environment.ts';

export interface Connection {
  url: string;
  token: string | undefined;
  /** Where the URL was found, for a person. */
  source: string;
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
  const named = env['DROVER_CONTEXT'];
  const source = contextPath(env);
  const contexts = named ? [findContext(env, named)] : listContexts(env);
  const servers = contexts.map(({ url, token }): Connection => ({ url, token, source }));
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
