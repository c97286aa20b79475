/** The spool on real files, with a controller that takes, refuses or is away. */
import {
  appendFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
} from 'node:fs';
import { rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../lib/clock.ts';
import { DroverError } from '../lib/errors.ts';
import { silentLog } from '../lib/log.ts';
import type { LogAck, LogChunk } from '../protocol/agent.ts';
import { decodeLogFrames } from '../protocol/logFrames.ts';
import { createSpool, type Spool, type SpoolAttempt } from './spool.ts';
import type { SpoolLimits } from './spool/limits.ts';

let dir: string;
let attempts: SpoolAttempt[];
let controller: FakeController;
const spools: Spool[] = [];

/** Takes chunks as the log store does: what is new, in order, nothing across a gap. */
class FakeController {
  readonly output = new Map<string, string>();
  readonly requests: LogChunk[][] = [];
  away = false;
  takes: (chunk: LogChunk) => boolean = () => true;
  delayMs = 0;

  send = async (body: Uint8Array): Promise<LogAck[]> => {
    if (this.away) throw new DroverError('UNAVAILABLE', 'nobody there');
    // A copy, as on a wire: the spool uses its buffer again.
    const chunks = decodeLogFrames(Buffer.from(body));
    this.requests.push(chunks);
    if (this.delayMs > 0) await new Promise((resolve) => setTimeout(resolve, this.delayMs));
    return chunks.map((chunk) => {
      const key = `${chunk.uid}/${chunk.stream}`;
      const known = this.output.get(key) ?? '';
      const had = known.length - chunk.offset;
      if (had >= 0 && this.takes(chunk)) {
        this.output.set(key, known + Buffer.from(chunk.bytes.subarray(had)).toString('latin1'));
      }
      const offset = this.output.get(key)?.length ?? 0;
      return { uid: chunk.uid, stream: chunk.stream, offset };
    });
  };

  stdout(uid: string): string {
    return this.output.get(`${uid}/stdout`) ?? '';
  }
}

function start(limits: Partial<SpoolLimits> = {}): Spool {
  const spool = createSpool({
    source: { list: () => attempts },
    send: controller.send,
    clock: systemClock,
    log: silentLog,
    limits: { flushMs: 5, retryMs: 5, longestRetryMs: 20, refusedMs: 20, ...limits },
  });
  spools.push(spool);
  return spool;
}

function attempt(uid: string, output = '', ended = false): SpoolAttempt {
  const path = (name: string): string => join(dir, `${uid}.${name}`);
  const made = {
    uid,
    stdoutPath: path('out'),
    stderrPath: path('err'),
    offsetsPath: path('offsets'),
    ended,
  };
  writeFileSync(made.stdoutPath, output);
  writeFileSync(made.stderrPath, '');
  attempts.push(made);
  return made;
}

async function until(condition: () => boolean): Promise<void> {
  const end = Date.now() + 10_000;
  while (!condition()) {
    if (Date.now() > end) throw new Error('it did not happen in 10 s');
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'drover-spool-'));
  attempts = [];
  controller = new FakeController();
});

afterEach(async () => {
  for (const spool of spools.splice(0)) await spool.close();
  rmSync(dir, { recursive: true, force: true });
});

describe('the spool', () => {
  it('sends both streams as they grow and tells when an ended attempt is sent', async () => {
    const one = attempt('a', 'first\n');
    const spool = start();
    await until(() => controller.stdout('a') === 'first\n');
    appendFileSync(one.stdoutPath, 'second\n');
    appendFileSync(one.stderrPath, 'oh\n');
    await until(() => controller.stdout('a') === 'first\nsecond\n');
    await until(() => controller.output.get('a/stderr') === 'oh\n');
    expect(spool.drained('a')).toBe(false);
    appendFileSync(one.stdoutPath, 'no newline at the end');
    one.ended = true;
    spool.changed();
    await spool.whenDrained('a');
    expect(spool.drained('a')).toBe(true);
    expect(controller.stdout('a')).toBe('first\nsecond\nno newline at the end');
  });

  it('goes on after a restart where it was acknowledged', async () => {
    const one = attempt('a', 'first\n');
    const spool = start();
    await until(() => controller.stdout('a') === 'first\n');
    await spool.close();
    expect(readFileSync(one.offsetsPath, 'utf8')).toBe('6 0');
    appendFileSync(one.stdoutPath, 'second\n');
    controller.requests.length = 0;
    start();
    await until(() => controller.stdout('a') === 'first\nsecond\n');
    expect(controller.requests[0]?.[0]?.offset).toBe(6);
  });

  it('sends all again when its offsets are unreadable, and none is doubled', async () => {
    const one = attempt('a', 'first\nsecond\n', true);
    controller.output.set('a/stdout', 'first\n');
    writeFileSync(one.offsetsPath, '\0\0garbage');
    await start().whenDrained('a');
    expect(controller.stdout('a')).toBe('first\nsecond\n');
  });

  it('goes back when the controller has less than it once acknowledged', async () => {
    const one = attempt('a', 'first\nsecond\n', true);
    writeFileSync(one.offsetsPath, '6 0');
    await start().whenDrained('a');
    expect(controller.stdout('a')).toBe('first\nsecond\n');
  });

  it('keeps everything while the controller is away', async () => {
    controller.away = true;
    const one = attempt('a', 'first\n');
    const spool = start();
    await pause(50);
    appendFileSync(one.stdoutPath, 'second\n');
    one.ended = true;
    spool.changed();
    await pause(30);
    expect(spool.drained('a')).toBe(false);
    controller.away = false;
    await spool.whenDrained('a');
    expect(controller.stdout('a')).toBe('first\nsecond\n');
  });

  it('closes although the controller is away', async () => {
    controller.away = true;
    attempt('a', 'first\n');
    const spool = start({ retryMs: 60_000, longestRetryMs: 60_000 });
    await pause(30);
    await spool.close();
  });

  it('sends many attempts in one request and lets a chatty one starve nobody', async () => {
    attempt('chatty', `${'x'.repeat(99)}\n`.repeat(20_000));
    for (let n = 0; n < 50; n++) attempt(`quiet${n}`, 'hello\n');
    start({ batchBytes: 64 * 1024, chunkBytes: 16 * 1024 });
    await until(() => controller.requests.length >= 2);
    const heard = new Set(
      controller.requests
        .slice(0, 2)
        .flat()
        .map((chunk) => chunk.uid),
    );
    expect(heard.size).toBe(51);
    await until(() => controller.stdout('chatty').length === 2_000_000);
    for (const sent of controller.requests) {
      const bytes = sent.reduce((sum, chunk) => sum + chunk.bytes.length, 0);
      expect(bytes).toBeLessThanOrEqual(64 * 1024);
    }
  });

  it('serves everybody in turn when all of them are chatty', async () => {
    for (let n = 0; n < 8; n++) attempt(`a${n}`, 'y'.repeat(99_999).concat('\n'));
    controller.delayMs = 1;
    start({ batchBytes: 8 * 1024, chunkBytes: 4 * 1024 });
    await until(() => controller.requests.length >= 40);
    const lengths = attempts.map(({ uid }) => controller.stdout(uid).length);
    expect(Math.min(...lengths)).toBeGreaterThan(Math.max(...lengths) / 3);
  });

  it('holds an attempt to its rate', async () => {
    attempt('fast', 'z\n'.repeat(500_000), true);
    attempt('slow', 'z\n', true);
    const spool = start({ attemptBytesPerSecond: 200_000, chunkBytes: 50_000 });
    await spool.whenDrained('slow');
    await pause(300);
    expect(controller.stdout('fast').length).toBeGreaterThan(150_000);
    expect(controller.stdout('fast').length).toBeLessThan(600_000);
  });

  it('sends whole lines and whole characters while more may come', async () => {
    const one = attempt('a', 'one\ntw');
    start();
    await until(() => controller.stdout('a') === 'one\ntw');
    const euro = Buffer.from('€');
    appendFileSync(one.stdoutPath, euro.subarray(0, 2));
    await pause(40);
    expect(controller.stdout('a')).toBe('one\ntw');
    appendFileSync(one.stdoutPath, euro.subarray(2));
    await until(() => Buffer.from(controller.stdout('a'), 'latin1').toString() === 'one\ntw€');
    expect(controller.requests[0]?.[0]?.bytes).toEqual(Buffer.from('one\n'));
  });

  it('leaves a refused stream alone for a while and others go on', async () => {
    attempt('bad', 'x\n', true);
    const good = attempt('good', 'y\n');
    controller.takes = (chunk) => chunk.uid !== 'bad';
    const spool = start({ refusedMs: 100 });
    await until(() => controller.stdout('good') === 'y\n');
    const refusals = (): number =>
      controller.requests.flat().filter((chunk) => chunk.uid === 'bad').length;
    appendFileSync(good.stdoutPath, 'z\n');
    await until(() => controller.stdout('good') === 'y\nz\n');
    await pause(50);
    expect(refusals()).toBeLessThanOrEqual(2);
    controller.takes = () => true;
    await spool.whenDrained('bad');
  });

  it('holds no file of quiet attempts, and hears at once when one writes again', async () => {
    const one = attempt('a', 'first\n');
    for (let n = 0; n < 20; n++) attempt(`b${n}`);
    start({ quietMs: 20, recheckMs: 60_000 });
    await until(() => controller.stdout('a') === 'first\n');
    await until(() => openFiles() === 0);
    await pause(50);
    expect(openFiles()).toBe(0);
    const before = performance.now();
    appendFileSync(one.stdoutPath, 'second\n');
    await until(() => controller.stdout('a') === 'first\nsecond\n');
    expect(performance.now() - before).toBeLessThan(1000);
  });

  it('finds output of files that come into being late', async () => {
    const one = attempt('a');
    rmSync(one.stdoutPath);
    start({ quietMs: 10, unwatchedMs: 20 });
    await pause(60);
    writeFileSync(one.stdoutPath, 'late\n');
    await until(() => controller.stdout('a') === 'late\n');
  });

  it('lets go of an attempt that is gone from the source', async () => {
    attempt('a', 'first\n');
    const spool = start();
    await until(() => controller.stdout('a') === 'first\n');
    const waiting = spool.whenDrained('a');
    attempts = [];
    spool.changed();
    await waiting;
    await until(() => openFiles() === 0);
  });

  it('is drained at once when an ended attempt wrote nothing or has no files', async () => {
    const one = attempt('a', '', true);
    rmSync(one.stdoutPath);
    rmSync(one.stderrPath);
    await start().whenDrained('a');
    expect(existsSync(one.stdoutPath)).toBe(false);
    expect(controller.requests).toEqual([]);
  });
});

function openFiles(): number {
  return readdirSync('/proc/self/fd').filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`).startsWith(dir);
    } catch {
      return false;
    }
  }).length;
}
