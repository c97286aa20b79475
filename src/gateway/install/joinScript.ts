/** The script by which a bare machine joins, with the address of this gateway in it. */
import { readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import type { TLSSocket } from 'node:tls';
import { DroverError } from '../../lib/errors.ts';

const SCRIPT = readFileSync(new URL('./join.sh', import.meta.url), 'utf8');
/** A name or an address with its port, and nothing that a shell could take for more. */
const HOST = /^(?:[A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?$/;

/** `publicUrl` where there is one; else the address under which the caller found us. */
export function joinScript(publicUrl: string, request: IncomingMessage): string {
  const url = publicUrl || callersUrl(request);
  return SCRIPT.replace('@URL@', () => url.replace(/\/$/, '').replaceAll("'", '%27'));
}

function callersUrl({ headers: { host = '' }, socket }: IncomingMessage): string {
  if (HOST.test(host)) return `http${(socket as TLSSocket).encrypted ? 's' : ''}://${host}`;
  throw new DroverError('INVALID_ARGUMENT', 'The header Host does not name this gateway', {
    hint: 'Ask by its name or address, or set server.publicUrl.',
  });
}
