/** Who this machine is: an identity that survives restarts, and one that does not. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { resolve } from 'node:path';

/**
 * The same after every restart of agent and machine; another for each data folder, so that two
 * agents on one machine are two workers. Hashed: the system asks not to show its machine id around.
 */
export function machineId(dataDir: string): string {
  return createHash('sha256')
    .update(`${systemId()}\n${resolve(dataDir)}`)
    .digest('hex')
    .slice(0, 32);
}

function systemId(): string {
  for (const path of ['/etc/machine-id', '/var/lib/dbus/machine-id']) {
    try {
      const id = readFileSync(path, 'utf8').trim();
      if (id !== '') return id;
    } catch {
      // Images without an init system often have none: the next source.
    }
  }
  return hostname();
}

/** Another after each boot: what was running before it is gone for certain. */
export function bootId(): string {
  return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
}
