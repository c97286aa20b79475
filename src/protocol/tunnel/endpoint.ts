/**
 * What a running task serves, named as in `/proxy/{endpoint}/`: `TASK:PORT` for a TCP port of its
 * machine, `TASK:NAME` for the Unix socket NAME.sock in its directory.
 */
import { DroverError } from '../../lib/errors.ts';
import type { InsideRequest } from './inside.ts';

export interface Endpoint {
  task: string;
  place: Extract<InsideRequest, { kind: 'tcp' | 'unix' }>;
}

export const ENDPOINT =
  /^([A-Za-z0-9-]{1,100}(?:\.\d{1,9})?):(?:(\d{1,5})|([A-Za-z][A-Za-z0-9_-]{0,99}))$/;
const LARGEST_PORT = 65_535;

export function parseEndpoint(text: string): Endpoint {
  const [, task = '', port, name] = ENDPOINT.exec(text) ?? [];
  if (name !== undefined) return { task, place: { kind: 'unix', socket: `${name}.sock` } };
  const number = Number(port);
  if (number >= 1 && number <= LARGEST_PORT) return { task, place: { kind: 'tcp', port: number } };
  throw new DroverError('INVALID_ARGUMENT', `"${text}" names nothing that a task serves`, {
    hint: 'write TASK:PORT, or TASK:NAME for the socket NAME.sock in its directory',
  });
}

export function endpointPath(endpoint: string): string {
  return `/proxy/${endpoint}/`;
}
