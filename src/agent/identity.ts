/**
 * The agent's identity on disk: written whole, synced and renamed into place, readable by its owner
 * only.
 */
import { closeSync, fsyncSync, openSync, readFileSync, renameSync } from 'node:fs';
import { rmSync, writeFileSync } from 'node:fs';
import { createHash } from 'node:crypto';
import { dirname } from 'node:path';
import { DroverError } from '../lib/errors.ts';
import type { JoinRequest } from '../protocol/agent.ts';
import type { Identity, IdentityFile } from './agent.ts';

export function identityFile(path: string): IdentityFile {
  return {
    load() {
      const text = read(path);
      if (text === null) return null;
      const identity = parse(text);
      if (identity) return identity;
      throw new DroverError('INVALID_ARGUMENT', `${path} does not hold a worker's identity`, {
        hint: 'remove it and join again with: drover agent --join URL TOKEN',
      });
    },
    save(identity) {
      const temporary = `${path}.new`;
      // One that a crash left behind keeps its own mode.
      rmSync(temporary, { force: true });
      const file = openSync(temporary, 'wx', 0o600);
      writeFileSync(file, JSON.stringify(identity));
      fsyncSync(file);
      closeSync(file);
      renameSync(temporary, path);
      syncFolder(dirname(path));
    },
  };
}

/** A new name is on disk only when its folder is. */
function syncFolder(path: string): void {
  const folder = openSync(path, 'r');
  fsyncSync(folder);
  closeSync(folder);
}

function read(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

function parse(text: string): Identity | null {
  try {
    const value: unknown = JSON.parse(text);
    return isIdentity(value) ? value : null;
  } catch {
    return null;
  }
}

function isIdentity(value: unknown): value is Identity {
  const one = value as Partial<Identity> | null;
  return (
    typeof one?.worker === 'string' &&
    typeof one.token === 'string' &&
    typeof one.clusterId === 'string' &&
    Number.isSafeInteger(one.starts)
  );
}

/** What the controller is told of the machine; the boot id comes with every sync. */
export function describe({ bootId: _bootId, ...lasting }: JoinRequest): string {
  return createHash('sha256').update(JSON.stringify(lasting)).digest('hex');
}
