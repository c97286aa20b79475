/** Secrets from files: FOLDER/TENANT/NAME, as Kubernetes, systemd and Docker lay them out. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { SecretSource } from './contract.ts';

export function fileSecrets(folder: string): SecretSource {
  return {
    name: `the folder ${folder}`,
    async get(tenant, secret) {
      if (!isName(tenant) || !isName(secret)) return undefined;
      try {
        const text = await readFile(join(folder, tenant, secret), 'utf8');
        // Editors and echo end a file with a newline that is not part of the secret.
        return text.replace(/\r?\n$/, '');
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException;
        if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
        throw error;
      }
    },
  };
}

/** Names become parts of a path. */
function isName(text: string): boolean {
  return /^[^./\0][^/\0]*$/.test(text);
}
