/** Writes a stream into a new file and waits until it is on disk. */
import { type FileHandle, open } from 'node:fs/promises';
import { BLOB_LIMITS } from '../limits.ts';
import { onDisk } from './diskErrors.ts';

const DOING = 'store the blob';

/**
 * One write is under way while the next batch is taken in, so that hashing and the disk work at the
 * same time and no more than two batches are held.
 */
export async function writeAll(path: string, content: AsyncIterable<Uint8Array>): Promise<void> {
  const file = await onDisk(DOING, () => open(path, 'wx', 0o600));
  let writing: Promise<void> = Promise.resolve();
  try {
    let batch: Uint8Array[] = [];
    let bytes = 0;
    for await (const chunk of content) {
      batch.push(chunk);
      bytes += chunk.length;
      if (bytes < BLOB_LIMITS.bufferBytes) continue;
      await writing;
      writing = writeBatch(file, batch);
      // Looked at above; until then it may fail while the content is being waited for.
      writing.catch(() => {});
      batch = [];
      bytes = 0;
    }
    await writing;
    await writeBatch(file, batch);
    await onDisk(DOING, () => file.sync());
  } finally {
    // The file must not be closed under a write.
    await writing.catch(() => {});
    await file.close();
  }
}

/** A write may take less than it was given, just before the disk is full for instance. */
async function writeBatch(file: FileHandle, batch: Uint8Array[]): Promise<void> {
  let left = batch;
  while (left.length > 0) {
    const now = left;
    const { bytesWritten } = await onDisk(DOING, () => file.writev(now));
    left = after(left, bytesWritten);
  }
}

function after(batch: Uint8Array[], bytes: number): Uint8Array[] {
  let skip = bytes;
  const left: Uint8Array[] = [];
  for (const chunk of batch) {
    if (skip < chunk.length) left.push(chunk.subarray(skip));
    skip = Math.max(0, skip - chunk.length);
  }
  return left;
}
