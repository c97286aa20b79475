/** Writes content into a new file, checks that it is what was stated, and waits for the disk. */
import { HashingWriter } from '../../lib/hashingWriter.ts';
import type { HashThread } from '../../lib/hashThread.ts';
import type { BlobContent } from '../contract.ts';
import type { Stated } from '../verify.ts';
import { onDisk } from './diskErrors.ts';

const DOING = 'store the blob';

export async function writeAll(
  path: string,
  content: BlobContent,
  stated: Stated,
  thread: HashThread,
): Promise<void> {
  const { size } = stated;
  const hasher = thread.hasher(size);
  const writer = await onDisk(DOING, () => HashingWriter.open(path, { hasher, size }));
  try {
    for await (const chunk of content) {
      stated.saw(chunk.length);
      const writing = writer.add(chunk);
      if (writing) await onDisk(DOING, () => writing);
    }
    stated.ended();
    stated.isHash(await onDisk(DOING, () => writer.finish()));
  } finally {
    await writer.close();
  }
}
