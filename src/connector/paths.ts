/** What a relay passes on: what agents need, written so that no other path looks like it. */
import type { IncomingMessage } from 'node:http';
import { AGENT_PATHS } from '../protocol/agent.ts';
import { TUNNEL_PATH } from '../protocol/tunnel/limits.ts';

const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT']);
/** No dots alone, no escapes, no empty parts: a gateway cannot read them as anything else. */
const PASSED = [
  /^\/drover\.v1\.Agent\/[A-Za-z]+$/,
  /^\/v1\/blobs(?:\/[A-Za-z0-9][A-Za-z0-9:_-]*)*$/,
  /^\/install\/[A-Za-z0-9][A-Za-z0-9._-]*$/,
];

export function isPassed({ method = '', url = '' }: IncomingMessage): boolean {
  const path = pathOf(url);
  // Commands are for the connector itself: whoever fetches them reads the tokens of others.
  if (path.toLowerCase() === AGENT_PATHS.connector.toLowerCase()) return false;
  return METHODS.has(method) && PASSED.some((pattern) => pattern.test(path));
}

export function isPassedUpgrade({ method, url = '', headers }: IncomingMessage): boolean {
  const isSocket = headers.upgrade?.toLowerCase() === 'websocket';
  return method === 'GET' && isSocket && pathOf(url) === TUNNEL_PATH;
}

function pathOf(url: string): string {
  const query = url.indexOf('?');
  return query < 0 ? url : url.slice(0, query);
}
