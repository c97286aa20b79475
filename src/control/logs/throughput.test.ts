/** How fast the log store takes bytes; prints MB/s. */
import { describe, expect, it } from 'vitest';
import { decodeLogFrames, encodeLogFrames } from '../../protocol/logFrames.ts';
import { chunk, withStore } from './testLogs.ts';

const TASKS = 100;
const ROUNDS = 20;
const CHUNK_BYTES = 48 * 1024;
/** Far below what an idle machine does (100 to 280): it must hold beside all other tests. */
const LEAST_MB_PER_S = 10;

describe('log bytes per second', () => {
  for (const jobs of [1, TASKS]) {
    it(`of ${TASKS} tasks in ${jobs} jobs, through frames to fsynced segments`, async () => {
      await withStore({}, async (store) => {
        let line = 0;
        const text = (): string => {
          const lines: string[] = [];
          for (let size = 0; size < CHUNK_BYTES; size += 56) {
            lines.push(
              `step ${String(line++).padStart(9)} loss=0.${(line * 7919) % 99991} lr=3e-4`,
            );
          }
          return `${lines.join('\n')}\n`;
        };
        const output = Buffer.from(text());
        const started = performance.now();
        for (let round = 0; round < ROUNDS; round++) {
          const owned = Array.from({ length: TASKS }, (_, index) =>
            chunk(output, round * output.length, { index, job: `j${index % jobs}` }),
          );
          const decoded = decodeLogFrames(encodeLogFrames(owned));
          const acks = await store.append(
            owned.map((c, n) => ({ ...c, ...decoded[n], stream: c.stream })),
          );
          expect(acks.every((ack) => ack.offset === (round + 1) * output.length)).toBe(true);
        }
        const seconds = (performance.now() - started) / 1000;
        const rate = (TASKS * ROUNDS * output.length) / 1e6 / seconds;
        console.log(`log store, ${TASKS} tasks in ${jobs} jobs: ${rate.toFixed(0)} MB/s`);
        expect(rate).toBeGreaterThan(LEAST_MB_PER_S);
      });
    }, 60_000);
  }
});
