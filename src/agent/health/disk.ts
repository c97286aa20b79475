/** Whether attempts can write: room and inodes left, and whether a file still reaches the disk. */
import { open, statfs, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { Check, Finding } from './check.ts';

/** Of a small disk less is enough. */
const LEAST_SHARE = 0.02;
/** An attempt has dozens of files, and its code may have thousands. */
const LEAST_INODES = 2000;
const PROBE_FILE = '.health-probe';
const PROBE_BYTES = 4096;

export interface Room {
  totalBytes: number;
  freeBytes: number;
  /** 0: such a disk does not count them. */
  totalInodes: number;
  freeInodes: number;
}

export type ReadRoom = (folder: string) => Promise<Room>;

/** Of the disk a folder is on, for those without privileges. */
const readRoom: ReadRoom = async (folder) => {
  const { bsize, blocks, bavail, files, ffree } = await statfs(folder);
  return {
    totalBytes: blocks * bsize,
    freeBytes: bavail * bsize,
    totalInodes: files,
    freeInodes: ffree,
  };
};

export function createRoomCheck(
  folders: readonly string[],
  minFreeBytes: number,
  read: ReadRoom = readRoom,
): Check {
  return {
    name: 'disk',
    around: 'every',
    async look() {
      const found: Finding[] = [];
      for (const folder of new Set(folders)) {
        // A cache that nothing was put into yet is no folder yet.
        const room = await read(folder).catch(ignoreMissing);
        if (room) found.push(...roomFindings(folder, room, minFreeBytes));
      }
      return found;
    },
  };
}

function roomFindings(folder: string, room: Room, minFreeBytes: number): Finding[] {
  const found: Finding[] = [];
  // Nobody is blamed: it may be the attempt itself that filled it.
  const add = (key: string, words: string): void => {
    const message = `the disk of ${folder} ${words}`;
    found.push({ check: 'disk', key, severity: 'drain', message, blames: 'nobody' });
  };
  const least = Math.min(minFreeBytes, room.totalBytes * LEAST_SHARE);
  if (room.freeBytes < least) {
    const [free, wanted] = [mebibytes(room.freeBytes), mebibytes(least)];
    add(`bytes ${folder}`, `has ${free} left, and less than ${wanted} (agent.health.minFreeBytes)`);
  }
  if (room.totalInodes > 0 && room.freeInodes < Math.min(LEAST_INODES, room.totalInodes / 10)) {
    add(`inodes ${folder}`, `has room for ${room.freeInodes} more files only`);
  }
  return found;
}

/** On the period only: a sync of a busy disk takes its time. */
export function createWriteCheck(folder: string): Check {
  return {
    name: 'disk',
    around: 'none',
    async look() {
      try {
        await probe(join(folder, PROBE_FILE));
        return [];
      } catch (error) {
        return [unwritable(folder, error as NodeJS.ErrnoException)];
      }
    },
  };
}

async function probe(path: string): Promise<void> {
  const file = await open(path, 'w', 0o600);
  try {
    await file.write(Buffer.alloc(PROBE_BYTES, 0x2e));
    await file.sync();
  } finally {
    await file.close();
  }
  await unlink(path);
}

const FULL = new Set<string | undefined>(['ENOSPC', 'EDQUOT']);

function unwritable(folder: string, { code, message: said }: NodeJS.ErrnoException): Finding {
  const blames = FULL.has(code) ? 'nobody' : 'everybody';
  const message = `nothing can be written to ${folder}: ${wordsOf(code) ?? said}`;
  return { check: 'disk', key: `write ${code ?? said}`, severity: 'drain', message, blames };
}

function wordsOf(code: string | undefined): string | undefined {
  if (code === 'EROFS') return 'the file system is read-only';
  if (code === 'EIO') return 'the disk reports an error';
  if (code === 'ENOSPC') return 'it is full';
  if (code === 'EDQUOT') return 'the quota is used up';
  return undefined;
}

function ignoreMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code === 'ENOENT') return undefined;
  throw error;
}

const mebibytes = (bytes: number): string => `${Math.floor(bytes / 2 ** 20)} MiB`;
