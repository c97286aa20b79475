/** Which files processes may still write to, and which processes listen to a signal. */
import { readFileSync, readdirSync, statSync } from 'node:fs';
import { constants } from 'node:os';
import type { FoundFile } from '../folders/listFolder.ts';

/** Paths of those that a process has open for writing, or has mapped so. */
export function openForWriting(
  pids: readonly number[],
  files: readonly FoundFile[],
): ReadonlySet<string> {
  const open = new Set<string>();
  if (files.length === 0) return open;
  const byInode = new Map(files.map(({ path, stat }) => [stat.ino, path]));
  for (const pid of pids) {
    for (const inode of writtenInodes(pid, byInode)) open.add(byInode.get(inode)!);
  }
  return open;
}

/** By inode alone: one of the same number on another disk only delays a file. */
function* writtenInodes(pid: number, wanted: ReadonlyMap<bigint, string>): Generator<bigint> {
  for (const descriptor of listOf(`/proc/${pid}/fd`)) {
    const inode = inodeOf(`/proc/${pid}/fd/${descriptor}`);
    if (inode === undefined || !wanted.has(inode)) continue;
    const flags = /^flags:\s*([0-7]+)$/m.exec(textOf(`/proc/${pid}/fdinfo/${descriptor}`))?.[1];
    // Closed meanwhile: then it is not open. Anything but read-only counts as writing.
    if (flags !== undefined && (Number.parseInt(flags, 8) & 3) !== 0) yield inode;
  }
  for (const line of textOf(`/proc/${pid}/maps`).split('\n')) {
    const [, access = '', , , inode = ''] = line.split(/\s+/);
    if (!access.includes('w') || !access.includes('s') || !/^\d+$/.test(inode)) continue;
    if (wanted.has(BigInt(inode))) yield BigInt(inode);
  }
}

/** Those that catch it. To others it could be the end. */
export function listeners(pids: readonly number[], signal: NodeJS.Signals): number[] {
  const bit = 1n << BigInt(constants.signals[signal] - 1);
  return pids.filter((pid) => {
    const caught = /^SigCgt:\s*([0-9a-f]+)$/m.exec(textOf(`/proc/${pid}/status`))?.[1];
    return caught !== undefined && (BigInt(`0x${caught}`) & bit) !== 0n;
  });
}

function listOf(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    // The process has ended, or is another user's and none of ours.
    return [];
  }
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'latin1');
  } catch {
    // The same.
    return '';
  }
}

function inodeOf(descriptor: string): bigint | undefined {
  try {
    return statSync(descriptor, { bigint: true }).ino;
  } catch {
    // The same, or closed meanwhile.
    return undefined;
  }
}
