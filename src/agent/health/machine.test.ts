/** Disk, memory, clock and a site's own command. */
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { ManualClock } from '../../../test/support/manualClock.ts';
import { systemClock } from '../../lib/clock.ts';
import type { Finding } from './check.ts';
import { CLOCK_STEP_SHOWN_MS, createClockCheck } from './clock.ts';
import { createRoomCheck, createWriteCheck, type Room } from './disk.ts';
import { createMemoryCheck } from './memory.ts';
import { COMMAND_LINES, createCommandCheck } from './siteCommand.ts';

const GIB = 2 ** 30;
const folder = mkdtempSync(join(tmpdir(), 'drover-health-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const brief = (found: Finding[]): string[] =>
  found.map(({ severity, message }) => `${severity}: ${message}`);

describe('a disk', () => {
  const disk: Room = { totalBytes: 500 * GIB, freeBytes: 9 * GIB, totalInodes: 0, freeInodes: 0 };
  const look = (more: Partial<Room>, minFreeBytes = GIB): Promise<Finding[]> =>
    createRoomCheck(['/d', '/d'], minFreeBytes, async () => ({ ...disk, ...more })).look();

  test('with room is well; without drains and blames nobody, who may have filled it', async () => {
    expect(await look({})).toEqual([]);
    const found = await look({ freeBytes: GIB / 2 });
    expect(brief(found)).toEqual([
      'drain: the disk of /d has 512 MiB left, and less than 1024 MiB (agent.health.minFreeBytes)',
    ]);
    expect(found[0]?.blames).toBe('nobody');
    expect(await look({ freeBytes: 0 }, 0)).toEqual([]);
  });

  test('that is small needs less', async () => {
    expect(await look({ totalBytes: GIB, freeBytes: GIB / 20 })).toEqual([]);
    expect(await look({ totalBytes: GIB, freeBytes: GIB / 100 })).toHaveLength(1);
  });

  test('needs inodes, where there are such', async () => {
    expect(await look({ totalInodes: 1e6, freeInodes: 1e5 })).toEqual([]);
    expect(brief(await look({ totalInodes: 1e6, freeInodes: 3 }))).toEqual([
      'drain: the disk of /d has room for 3 more files only',
    ]);
  });

  test('of this machine is read, and a folder that is not there yet is none', async () => {
    expect(await createRoomCheck([folder, join(folder, 'later')], 1).look()).toEqual([]);
  });

  test('takes a file, and leaves none; one that cannot be written to drains', async () => {
    const place = join(folder, 'data');
    mkdirSync(place);
    expect(await createWriteCheck(place).look()).toEqual([]);
    expect(existsSync(join(place, '.health-probe'))).toBe(false);
    // As root nothing is read-only by its mode, but /proc is to everybody.
    const found = await createWriteCheck('/proc').look();
    expect(found).toMatchObject([{ check: 'disk', severity: 'drain', blames: 'everybody' }]);
    expect(brief(found)[0]).toContain('nothing can be written to /proc');
  });
});

describe('memory', () => {
  const look = (files: Record<string, string>): Promise<Finding[]> => {
    const proc = mkdtempSync(join(folder, 'proc-'));
    mkdirSync(join(proc, 'pressure'));
    for (const [name, text] of Object.entries(files)) writeFileSync(join(proc, name), text);
    return createMemoryCheck(proc).look();
  };
  const meminfo = (kb: number): string => `MemTotal:  1000000 kB\nMemAvailable: ${kb} kB\n`;
  const pressure = (full: string): string =>
    'some avg10=0.00 avg60=99.00 avg300=0.00 total=0\n' +
    `full avg10=0.00 avg60=${full} avg300=0.00 total=1\n`;

  test('that is short is told, and never drains', async () => {
    expect(await look({ meminfo: meminfo(500_000), 'pressure/memory': pressure('0.00') })).toEqual(
      [],
    );
    expect(
      brief(await look({ meminfo: meminfo(5000), 'pressure/memory': pressure('31.50') })),
    ).toEqual([
      'warn: nothing went on for want of memory in 31.5 % of the last minute',
      "warn: 0.5 % of the machine's memory is left",
    ]);
  });

  test('is read without pressure figures too, and on this machine', async () => {
    expect(await look({ meminfo: meminfo(500_000) })).toEqual([]);
    await expect(createMemoryCheck().look()).resolves.toBeInstanceOf(Array);
  });
});

describe('the clock', () => {
  function world() {
    const clock = new ManualClock();
    const { check, heard } = createClockCheck(clock);
    const serverIs = (aheadMs: number): void =>
      heard(new Date(clock.now() + aheadMs).toUTCString());
    return { clock, serverIs, look: async () => brief(await check.look()) };
  }

  test('is compared with the server, once that has said what time it is', async () => {
    const { look, serverIs } = world();
    expect(await look()).toEqual([]);
    serverIs(1500);
    expect(await look()).toEqual([]);
  });

  test.each([
    [30_000, /^warn: the clock is (29|30|31) s behind the server's$/],
    [-3_600_000, /^drain: the clock is (3599|3600|3601) s ahead of the server's$/],
  ])('that is %d ms off is told', async (aheadMs, words) => {
    const { clock, look, serverIs } = world();
    for (let second = 0; second < 3; second++) {
      serverIs(aheadMs);
      await clock.advance(1000);
    }
    const found = await look();
    expect(found).toHaveLength(1);
    expect(found[0]).toMatch(words);
  });

  test("does not stop machines where it is the server's that was set", async () => {
    const { clock, look, serverIs } = world();
    serverIs(0);
    await clock.advance(1000);
    serverIs(7_200_000);
    const found = await look();
    expect(found[0]).toMatch(/^warn: the clock is 7\d\d\d s behind.*itself set meanwhile$/);
    await clock.advance(1000);
    serverIs(0);
    expect(await look()).toEqual([]);
  });

  test('that is set is seen by itself, and told for a while', async () => {
    const { clock, serverIs, look } = world();
    serverIs(0);
    await clock.advance(60_000);
    expect(await look()).toEqual([]);
    clock.step(-7000);
    expect(await look()).toEqual(['warn: the clock was set back by 7 s']);
    await clock.advance(CLOCK_STEP_SHOWN_MS + 1);
    expect(await look()).toEqual([]);
    clock.step(600_000);
    expect((await look()).map((line) => line.slice(0, 25))).toEqual([
      'warn: the clock was set f',
      'drain: the clock is 593 s',
    ]);
  });

  test('of a proxy that speaks nonsense is not listened to', async () => {
    const clock = new ManualClock();
    const { check, heard } = createClockCheck(clock);
    heard('yesterday');
    expect(await check.look()).toEqual([]);
  });
});

describe("a site's command", () => {
  const run = (command: string, more: { limitMs?: number; env?: Record<string, string> } = {}) =>
    createCommandCheck({
      ...{ command, limitMs: more.limitMs ?? 10_000, clock: systemClock },
      env: { PATH: process.env['PATH'] ?? '', ...more.env },
    }).look();

  test('that is content says nothing that counts', async () => {
    expect(await run('echo all is well; echo DRAINAGE; exit 0')).toEqual([]);
  });

  test('drains by a line, warns by a line, and drains by its exit code', async () => {
    expect(
      brief(await run('echo "DRAIN /scratch is not mounted"; echo "WARN: fan 3 is slow"')),
    ).toEqual(['drain: /scratch is not mounted', 'warn: fan 3 is slow']);
    expect(brief(await run('echo DRAIN no ib0; exit 1'))).toEqual(['drain: no ib0']);
    expect(brief(await run('echo checking; echo "ib0 is down" >&2; exit 3'))).toEqual([
      'drain: echo checking; echo "ib0 is down" >&2; exit 3 ended with exit code 3: ib0 is down',
    ]);
  });

  test('that is not there says so', async () => {
    expect(brief(await run('/no/such/nhc'))[0]).toMatch(
      /^drain: \/no\/such\/nhc ended with exit code 127/,
    );
  });

  test('is stopped in time, with what it started, and its lines are bounded', async () => {
    const found = await run('sleep 60 & sleep 60', { limitMs: 200 });
    expect(brief(found)[0]).toContain('was stopped: it took longer than');
    expect(await run('for i in $(seq 99); do echo WARN $i; done')).toHaveLength(COMMAND_LINES);
  });

  test('is a file that may be run', async () => {
    const file = join(folder, 'site check');
    writeFileSync(file, '#!/bin/sh\necho DRAIN $0\n');
    chmodSync(file, 0o755);
    expect(await run(`'${file}'`)).toMatchObject([{ severity: 'drain', message: file }]);
  });
});
