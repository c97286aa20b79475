/** Metrics go the way of output: apart from it, and only whole lines of them. */
import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { systemClock } from '../../lib/clock.ts';
import { silentLog } from '../../lib/log.ts';
import type { LogAck } from '../../protocol/agent.ts';
import { decodeLogFrames } from '../../protocol/logFrames.ts';
import { createSpool, type SpoolAttempt } from '../spool.ts';

test('half a line waits for its rest; at the end all of it goes', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'drover-spool-metrics-'));
  const [stdoutPath, stderrPath] = [join(dir, 'metrics'), join(dir, 'never-written')];
  const one = { uid: 'a', stdoutPath, stderrPath, offsetsPath: join(dir, 'offsets') };
  const attempts: SpoolAttempt[] = [{ ...one, metrics: true, ended: false }];
  const sent: string[] = [];
  let metrics = '';
  writeFileSync(stdoutPath, '{"a": 1}\n{"a"');
  const spool = createSpool({
    source: { list: () => attempts },
    async send(body): Promise<LogAck[]> {
      return decodeLogFrames(Buffer.from(body)).map(({ uid, stream, bytes }) => {
        metrics += Buffer.from(bytes).toString();
        sent.push(`${uid} ${stream}`);
        return { uid, stream, offset: metrics.length };
      });
    },
    clock: systemClock,
    log: silentLog,
    limits: { flushMs: 5, quietMs: 10 },
  });
  await vi.waitFor(() => expect(metrics).toBe('{"a": 1}\n'));
  await new Promise((resolve) => setTimeout(resolve, 60));
  expect(metrics).toBe('{"a": 1}\n');
  appendFileSync(stdoutPath, ': 2}\n{"a": 3}');
  await vi.waitFor(() => expect(metrics).toBe('{"a": 1}\n{"a": 2}\n'));
  attempts[0]!.ended = true;
  spool.changed();
  await spool.whenDrained('a/metrics');
  expect(metrics).toBe('{"a": 1}\n{"a": 2}\n{"a": 3}');
  expect(new Set(sent)).toEqual(new Set(['a metrics']));
  await spool.close();
  rmSync(dir, { recursive: true });
});
