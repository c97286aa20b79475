/**
 * The agent's identity on disk: written whole, synced and renamed into place, readable by its owner
 * only.
 */
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs';
import { DroverError } from '../lib/errors.ts';
import type { Identity, IdentityFile } from './agent.ts';

export function identityFile(path: string): IdentityFile {
  return {
    load() {
      const text = read(path);
      if (text === null) return null;
      const value: unknown = JSON.parse(text);
      if (isIdentity(value)) return value;
      throw new DroverError('INVALID_ARGUMENT', `${path} does not hold a worker's identity`, {
        hint: 'remove it and join again with: drover agent --join URL TOKEN',
      });
    },
    save(identity) {
      const temporary = `${path}.new`;
      const file = openSync(temporary, 'w', 0o600);
      writeSync(file, JSON.stringify(identity));
      fsyncSync(file);
      closeSync(file);
      renameSync(temporary, path);
    },
  };
}

function read(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
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
