/**
 * Temporary files say which process writes them, so that a start removes what a crash left and
 * nothing that another process, here or on a machine that shares the folder, is still writing.
 */
import { hash } from 'node:crypto';
import { readFileSync, readlinkSync } from 'node:fs';
import { readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../lib/clock.ts';
import { BLOB_LIMITS } from '../limits.ts';

/** `<boot and process namespace>-<pid>-<its start>`. */
export function leftoverPrefix(): string {
  return `${bootTag()}-${process.pid}-${startOf(process.pid) ?? 0}`;
}

export async function sweepLeftovers(folder: string, clock: Clock): Promise<void> {
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    if (isDead(name) || (await isOld(path, clock))) await rm(path, { force: true });
  }
}

/** True only where it is certain: its process ran in this boot, in this namespace, and is gone. */
function isDead(name: string): boolean {
  const [tag, pid, start] = name.split('-');
  if (tag === undefined || tag === UNKNOWN_BOOT || tag !== bootTag()) return false;
  return startOf(Number(pid)) !== start;
}

async function isOld(path: string, clock: Clock): Promise<boolean> {
  try {
    const { mtimeMs } = await stat(path);
    return clock.now() - mtimeMs > BLOB_LIMITS.leftoverMs;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
}

const UNKNOWN_BOOT = '0';

/** Elsewhere than on Linux nothing is certain, and age decides. */
function bootTag(): string {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8');
    return hash('sha256', boot + readlinkSync('/proc/self/ns/pid'), 'hex').slice(0, 16);
  } catch {
    return UNKNOWN_BOOT;
  }
}

/** When the process started, in ticks since boot: field 22, counted after the name's bracket. */
function startOf(pid: number): string | undefined {
  try {
    const line = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return line.slice(line.lastIndexOf(')') + 2).split(' ')[19];
  } catch {
    return undefined;
  }
}
