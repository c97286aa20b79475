/**
 * DIR/connection.json: where the server is and the first user's token, for the command line beside
 * it.
 */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { newSecret } from '../control/secrets.ts';
import { DroverError } from '../lib/errors.ts';
import { systemRandom } from '../lib/random.ts';

export interface Connection {
  url: string;
  token: string;
  joinToken: string;
  /** Where the gateway's certificate is of an authority of one's own. */
  caFile?: string;
  certFile?: string;
  keyFile?: string;
}

export function prepareDataFolder(dir: string): void {
  try {
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    writeFileSync(join(dir, '.writable'), '');
  } catch (cause) {
    throw new DroverError('UNAVAILABLE', `cannot write to the data folder ${dir}`, {
      hint: `make it writable for this user, or choose another with --data (${reason(cause)})`,
      cause,
    });
  }
}

/** The tokens of an earlier start, or new ones. */
export function loadTokens(dir: string): Pick<Connection, 'token' | 'joinToken'> {
  const known = readConnection(dir);
  return {
    token: known?.token ?? newSecret('drv', systemRandom),
    joinToken: known?.joinToken ?? newSecret('drj', systemRandom),
  };
}

export function readConnection(dir: string): Connection | null {
  try {
    return JSON.parse(readFileSync(join(dir, 'connection.json'), 'utf8')) as Connection;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw new DroverError('INVALID_ARGUMENT', `${dir}/connection.json cannot be read`, {
      hint: 'remove it; the next start writes a new one with new tokens',
      cause: error,
    });
  }
}

export function writeConnection(dir: string, connection: Connection): void {
  const path = join(dir, 'connection.json');
  writeFileSync(`${path}.new`, `${JSON.stringify(connection, null, 2)}\n`, { mode: 0o600 });
  renameSync(`${path}.new`, path);
}

function reason(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
