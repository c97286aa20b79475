/** Headers on their way through the proxy: ours stay here, theirs pass. */
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http';
import { HOP_BY_HOP } from '../../lib/hopByHop.ts';
import { SESSION_COOKIE } from './sessions.ts';

/** There are two connections, and these speak of one. */
const DROPPED: ReadonlySet<string> = new Set(HOP_BY_HOP);

export function sessionOf(cookies: string | undefined): string | undefined {
  return cookiePairs(cookies).find(([name]) => name === SESSION_COOKIE)?.[1];
}

/** What the task gets to see: never our cookie, nor a token of ours. */
export function requestHeaders(
  headers: IncomingHttpHeaders,
  options: { withAuthorization: boolean; prefix: string; address: string },
): OutgoingHttpHeaders {
  const passed: OutgoingHttpHeaders = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined && !DROPPED.has(name)) passed[name] = value;
  }
  const cookies = cookiePairs(headers.cookie).filter(([name]) => name !== SESSION_COOKIE);
  delete passed['cookie'];
  if (cookies.length > 0) passed['cookie'] = cookies.map((pair) => pair.join('=')).join('; ');
  if (!options.withAuthorization) delete passed['authorization'];
  passed['x-forwarded-for'] = options.address;
  passed['x-forwarded-host'] = headers.host;
  passed['x-forwarded-prefix'] = options.prefix;
  return passed;
}

/** A task may set cookies of its own, and not the one that lets people in. */
export function responseHeaders(headers: IncomingHttpHeaders): OutgoingHttpHeaders {
  const passed: OutgoingHttpHeaders = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined && !DROPPED.has(name)) passed[name] = value;
  }
  const own = `${SESSION_COOKIE}=`;
  const cookies = headers['set-cookie']?.filter((cookie) => !cookie.trimStart().startsWith(own));
  delete passed['set-cookie'];
  if (cookies !== undefined && cookies.length > 0) passed['set-cookie'] = cookies;
  return passed;
}

function cookiePairs(cookies: string | undefined): [string, string][] {
  return (cookies ?? '')
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair !== '')
    .map((pair) => {
      const equals = pair.indexOf('=');
      return equals < 0 ? [pair, ''] : [pair.slice(0, equals), pair.slice(equals + 1)];
    });
}
