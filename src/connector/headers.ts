/** Headers as they are passed on: all but those that are about one connection only. */
import type { IncomingMessage } from 'node:http';
import { HOP_BY_HOP } from '../lib/hopByHop.ts';

const DROPPED = [
  ...HOP_BY_HOP,
  // Answered by the relay itself.
  'expect',
  // For whom it is, the relay says.
  'forwarded',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
];

export function passedHeaders(
  message: IncomingMessage,
  without: readonly string[] = [],
): Record<string, string[]> {
  const named = (message.headers.connection ?? '')
    .split(',')
    .map((name) => name.trim().toLowerCase());
  const dropped = new Set([...DROPPED, ...named, ...without]);
  const headers: Record<string, string[]> = {};
  for (const [name, values] of Object.entries(message.headersDistinct)) {
    if (!dropped.has(name) && values) headers[name] = values;
  }
  return headers;
}
