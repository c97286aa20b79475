/** Reads a job's folder back into memory, after a restart or when it was not used for a while. */
import { open, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Log } from '../../lib/log.ts';
import { stateOf, type JobState } from './jobState.ts';
import { openSealed } from './sealed.ts';
import { scanSegment, type Segment } from './segment.ts';

const NAME = /^(\d{6})\.(log|zst)$/;

export function segmentPath(folder: string, ordinal: number, suffix: 'log' | 'zst'): string {
  return join(folder, `${String(ordinal).padStart(6, '0')}.${suffix}`);
}

export async function loadJob(folder: string, blockBytes: number, log: Log): Promise<JobState> {
  const { open: openOnes, sealed } = await listSegments(folder);
  const ordinals = [...new Set([...openOnes, ...sealed])].toSorted((a, b) => a - b);
  const segments: Segment[] = [];
  for (const ordinal of ordinals) {
    const path = segmentPath(folder, ordinal, 'log');
    if (sealed.has(ordinal)) {
      segments.push(await openSealed(ordinal, segmentPath(folder, ordinal, 'zst')));
      // Sealing ended between publishing its result and removing its source.
      if (openOnes.has(ordinal)) await rm(path, { force: true });
      continue;
    }
    const { segment, tornBytes } = await scanSegment(ordinal, path, blockBytes);
    const isLast = ordinal === ordinals.at(-1);
    if (tornBytes > 0) reportTorn(log, path, tornBytes, isLast);
    // Written before a crash is not yet on disk: nobody may see what a power cut could still take.
    if (isLast) await syncFile(path);
    else segment.phase = 'closed';
    segments.push(segment);
  }
  return stateOf(segments);
}

/** A torn end is how a crash looks; the agents have the bytes still. Anywhere else it is damage. */
function reportTorn(log: Log, path: string, tornBytes: number, isLast: boolean): void {
  if (isLast) log.warn({ path, tornBytes }, 'a log segment ends in an unfinished write: cut off');
  else log.error({ path, tornBytes }, 'a log segment is damaged: records are missing');
}

async function listSegments(folder: string): Promise<{ open: Set<number>; sealed: Set<number> }> {
  const found = { open: new Set<number>(), sealed: new Set<number>() };
  let names: string[];
  try {
    names = await readdir(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return found;
    throw error;
  }
  for (const name of names) {
    const parts = NAME.exec(name);
    if (parts) (parts[2] === 'log' ? found.open : found.sealed).add(Number(parts[1]));
    else if (name.endsWith('.tmp')) await rm(join(folder, name), { force: true });
  }
  return found;
}

async function syncFile(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.datasync();
  } finally {
    await handle.close();
  }
}
