/** What the log store's tests share: a store in a fresh folder, chunks, reading all back. */
import { mkdtempSync, readdirSync, readlinkSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock, type Clock } from '../../lib/clock.ts';
import { silentLog } from '../../lib/log.ts';
import type { LogRecordView } from '../../protocol/jobs.ts';
import type { LogRead, LogStore, OwnedChunk } from '../logs.ts';
import { createFileLogStore } from './fileLogStore.ts';
import type { LogStoreLimits } from './limits.ts';

export function freshFolder(): { dir: string; remove: () => void } {
  const dir = mkdtempSync(join(tmpdir(), 'drover-logs-'));
  return { dir, remove: () => rmSync(dir, { recursive: true, force: true }) };
}

export function openStore(
  dir: string,
  limits: Partial<LogStoreLimits> = {},
  clock: Clock = systemClock,
): LogStore {
  return createFileLogStore({
    dir,
    clock,
    log: silentLog,
    // At once: no test waits for what only saves time.
    limits: { sealAfterMs: 0, ...limits },
  });
}

/** Runs with a store in a folder of its own. */
export async function withStore(
  limits: Partial<LogStoreLimits>,
  use: (store: LogStore, dir: string) => Promise<void>,
): Promise<void> {
  const { dir, remove } = freshFolder();
  const store = openStore(dir, limits);
  try {
    await use(store, dir);
  } finally {
    await store.close();
    remove();
  }
}

export function chunk(
  bytes: string | Uint8Array,
  offset: number,
  more: Partial<OwnedChunk> = {},
): OwnedChunk {
  const index = more.index ?? 0;
  const job = more.job ?? 'j1';
  return {
    uid: `u${index}`,
    job,
    task: `${job}.${index}`,
    index,
    attempt: 1,
    stream: 'stdout',
    offset,
    atMs: 1000,
    bytes: typeof bytes === 'string' ? Buffer.from(bytes) : bytes,
    ...more,
  };
}

export function bytesOf(record: LogRecordView): Buffer {
  if (record.text !== undefined) return Buffer.from(record.text);
  return Buffer.from(record.base64 ?? '', 'base64');
}

export const textOf = (records: LogRecordView[]): string =>
  Buffer.concat(records.map(bytesOf)).toString();

/** Every page to the end. */
export async function readAll(
  store: LogStore,
  job = 'j1',
  query: Partial<LogRead> = {},
): Promise<LogRecordView[]> {
  const all: LogRecordView[] = [];
  let after = query.after ?? 0;
  for (;;) {
    const page = await store.read(job, { limitBytes: 1000, ...query, after });
    all.push(...page.records);
    if (page.next === after || query.tailLines !== undefined) return all;
    after = page.next;
  }
}

/** The names of a job's files. */
export function filesOf(dir: string): string[] {
  return readdirSync(dir, { recursive: true, encoding: 'utf8' }).filter((name) =>
    /\.(log|zst|tmp)$/.test(name),
  );
}

/** Waits for something that happens in the background, for at most ten seconds. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 1000; tries++) {
    if (await condition()) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error('it did not happen in 10 s');
}

/** Small enough that a few kilobytes make many records, blocks and segments. */
export const TINY = {
  recordBytes: 16,
  lineBytes: 32,
  blockBytes: 64,
  segmentBytes: 400,
  roundBytes: 200,
  readBlocks: 3,
};

/** How many files of the store this process holds open. */
export function openFilesIn(dir: string): number {
  const targets = readdirSync('/proc/self/fd').map((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`);
    } catch {
      return '';
    }
  });
  return targets.filter((target) => target.startsWith(dir)).length;
}
