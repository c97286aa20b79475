/**
 * Headers that tell a browser what our answers are not: a page, a frame, a script. They are made
 * once and written on every reply, so that a request pays for a few assignments only.
 */
import type { FastifyReply } from 'fastify';

/** Answers are data. A route that serves a page sets a policy of its own, which then counts. */
const DATA_POLICY = "default-src 'none'; frame-ancestors 'none'";

const COMMON: readonly [string, string][] = [
  ['x-content-type-options', 'nosniff'],
  ['referrer-policy', 'no-referrer'],
  ['content-security-policy', DATA_POLICY],
  ['cross-origin-resource-policy', 'same-origin'],
];

/** A year: browsers that saw the gateway by HTTPS come back by HTTPS. */
const HSTS: [string, string] = ['strict-transport-security', 'max-age=31536000'];

/** For answers that are written by hand, where there is no reply: each ends its line. */
export const RAW_HEADERS = COMMON.map(([name, value]) => `${name}: ${value}\r\n`).join('');

/** The same for answers that take names and values in turn; they are for one caller. */
export const PAIRED_HEADERS = [...COMMON.flat(), 'cache-control', 'no-store'];

export type Stamp = (reply: FastifyReply) => void;

export interface Stamps {
  /** What anybody may ask for. */
  open: Stamp;
  /** What is for one caller, and for no cache. */
  personal: Stamp;
}

export function createStamps(options: { hsts: boolean; insecure: boolean }): Stamps {
  const headers = [...COMMON];
  if (options.hsts) headers.push(HSTS);
  if (options.insecure) headers.push(['x-drover-insecure', 'true']);
  return {
    open: stampOf(headers),
    personal: stampOf([...headers, ['cache-control', 'no-store']]),
  };
}

function stampOf(headers: readonly [string, string][]): Stamp {
  const names = headers.map(([name]) => name);
  const values = headers.map(([, value]) => value);
  return (reply) => {
    for (let i = 0; i < names.length; i++) reply.header(names[i]!, values[i]);
  };
}
