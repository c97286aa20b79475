/** In which order output gets into a request. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { silentLog } from '../../lib/log.ts';
import { SpooledAttempt } from './attempt.ts';
import { SpoolBatch } from './batch.ts';
import { fillBatch } from './fill.ts';
import { SPOOL_LIMITS } from './limits.ts';

let dir: string;
let attempts: Map<string, SpooledAttempt>;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'drover-fill-'));
  attempts = new Map();
});

afterEach(() => {
  for (const attempt of attempts.values()) attempt.closeFiles();
  rmSync(dir, { recursive: true, force: true });
});

function add(uid: string, output: string): void {
  const [stdoutPath, stderrPath, offsetsPath] = ['out', 'err', 'offsets'].map((name) =>
    join(dir, `${uid}.${name}`),
  ) as [string, string, string];
  writeFileSync(stdoutPath, output);
  const found = { uid, stdoutPath, stderrPath, offsetsPath, ended: false };
  attempts.set(uid, new SpooledAttempt(found, 0));
}

/** The uids of one request, in its order. */
function fill(): string[] {
  const batch = new SpoolBatch(8 * 1024);
  fillBatch({
    attempts,
    batch,
    limits: { ...SPOOL_LIMITS, chunkBytes: 4 * 1024, shortBytes: 100 },
    nowMs: 0,
    wallMs: 0,
    log: silentLog,
    grew: () => {},
    finish: () => {},
  });
  return batch.filled.map(({ chunk }) => chunk.uid);
}

const bulk = 'x'.repeat(99).concat('\n').repeat(1000);

it('sends a line before the bulk of others', () => {
  for (const uid of ['a', 'b', 'c']) add(uid, bulk);
  add('quiet', 'a line\n');
  expect(fill().slice(0, 3)).toEqual(['quiet', 'a', 'b']);
  writeFileSync(join(dir, 'quiet.out'), 'a line\nanother\n');
  expect(fill()[0]).toBe('quiet');
});

it('takes short output in turn when there is more of it than a request holds', () => {
  for (let n = 0; n < 150; n++) add(`short${n}`, 'x'.repeat(80).concat('\n'));
  const first = fill();
  expect(first.length).toBeLessThan(150);
  for (const uid of attempts.keys())
    writeFileSync(join(dir, `${uid}.out`), 'y'.repeat(9), { flag: 'a' });
  // The last one's standard error had no room any more.
  expect(fill()[0]).toBe(first.at(-1));
});
