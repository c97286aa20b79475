/** A log store without a disk, for tests of what lies above it. */
import type { LogRead, LogStore, OwnedChunk } from '../../src/control/logs.ts';
import type { Clock } from '../../src/lib/clock.ts';
import type { LogAck } from '../../src/protocol/agent.ts';
import type { LogRecordView } from '../../src/protocol/jobs.ts';

export class MemoryLogStore implements LogStore {
  readonly clock: () => Clock;
  readonly #chunks: OwnedChunk[] = [];
  #waiting: (() => void)[] = [];

  constructor(clock: () => Clock) {
    this.clock = clock;
  }

  async append(chunks: OwnedChunk[]): Promise<LogAck[]> {
    const acks = chunks.map((chunk) => {
      const { uid, stream, offset, bytes } = chunk;
      if (offset === this.#stored(uid, stream)) this.#chunks.push(chunk);
      return { uid, stream, offset: offset + bytes.length };
    });
    for (const wake of this.#waiting.splice(0)) wake();
    return acks;
  }

  async read(job: string, { after, task }: LogRead) {
    const records = this.#chunks.flatMap((chunk, at): LogRecordView[] => {
      if (chunk.job !== job || at + 1 <= after) return [];
      if (task !== undefined && chunk.index !== task) return [];
      const { uid: _uid, job: _job, bytes, ...record } = chunk;
      return [{ ...record, seq: at + 1, text: Buffer.from(bytes).toString() }];
    });
    return { records, next: records.at(-1)?.seq ?? after };
  }

  wait(_job: string, _after: number, waitMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = this.clock().setTimer(waitMs, () => resolve(false));
      this.#waiting.push(() => {
        timer.cancel();
        resolve(true);
      });
    });
  }

  async offsets(job: string) {
    const stored: Record<string, { stdout: number; stderr: number }> = {};
    for (const { uid, stream, bytes, ...chunk } of this.#chunks) {
      if (chunk.job !== job) continue;
      stored[uid] ??= { stdout: 0, stderr: 0 };
      stored[uid][stream] += bytes.length;
    }
    return stored;
  }

  async close(): Promise<void> {}

  #stored(uid: string, stream: string): number {
    const own = this.#chunks.filter((chunk) => chunk.uid === uid && chunk.stream === stream);
    return own.reduce((sum, { bytes }) => sum + bytes.length, 0);
  }
}
