/** Writes a stream into a new file and waits until it is on disk. */
import { open } from 'node:fs/promises';
import { BatchWriter } from '../../lib/batchWriter.ts';
import { onDisk } from './diskErrors.ts';

const DOING = 'store the blob';

export async function writeAll(path: string, content: AsyncIterable<Uint8Array>): Promise<void> {
  const file = await onDisk(DOING, () => open(path, 'wx', 0o600));
  const writer = new BatchWriter(file);
  try {
    for await (const chunk of content) {
      const writing = writer.add(chunk);
      if (writing) await onDisk(DOING, () => writing);
    }
    await onDisk(DOING, () => writer.flush());
    await onDisk(DOING, () => file.sync());
  } finally {
    await writer.settle();
    await file.close();
  }
}
