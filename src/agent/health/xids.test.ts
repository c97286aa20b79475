/** Errors of GPUs in the kernel's log: which are the machine's, and which the program's. */
import { appendFileSync, chmodSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { ManualClock } from '../../../test/support/manualClock.ts';
import { silentLog } from '../../lib/log.ts';
import type { Finding } from './check.ts';
import { placeOf } from './gpus.ts';
import { openKernelLog, type KernelLog } from './kernelLog.ts';
import { createXidCheck, parseXid } from './xids.ts';
import { XIDS } from './xidTable.ts';

const folder = mkdtempSync(join(tmpdir(), 'drover-xids-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const device = join(folder, 'kmsg');
const clearedFile = join(folder, 'health-cleared');
let clock: ManualClock;

beforeEach(() => {
  clock = new ManualClock();
  rmSync(clearedFile, { force: true });
  for (const name of ['dmesg', 'journalctl']) rmSync(join(folder, name), { force: true });
  writeFileSync(
    device,
    '5,0,0,-;Linux version 6.18.44 (builder@host) #1 SMP\n' +
      '6,339,535719,-;NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.159.04\n' +
      ' SUBSYSTEM=pci\n DEVICE=+pci:0000:3b:00.0\n',
  );
});

const LOST =
  'NVRM: Xid (PCI:0000:3b:00): 79, pid=4071838, name=python, GPU has fallen off the bus.';
const say = (text: string, atMs = 500): void =>
  appendFileSync(device, `3,340,${atMs * 1000},-;${text}\n`);

function checkOf(
  places: Record<string, number> = { '0000:3b:00': 2 },
  kernelLog: KernelLog = openKernelLog({ env: {}, clock, device }),
  complete = true,
) {
  const byPlace = new Map(Object.entries(places).map(([at, n]) => [placeOf(at)!, n]));
  const gpus = { byPlace, complete: () => complete };
  return createXidCheck({ kernelLog, gpus, clearedFile, clock, log: silentLog });
}
const brief = (found: Finding[]): string[] =>
  found.map(({ severity, device: at, message }) => `${severity} ${at}: ${message}`);

describe('a check of the log', () => {
  test('finds what was said since the boot, and keeps it in mind', async () => {
    const check = checkOf();
    expect(await check.look()).toEqual([]);
    say(LOST);
    const meaning = 'the device fell off the bus and cannot be reached';
    const words = `drain 2: GPU 2: Xid 79, ${meaning} (${LOST})`;
    expect(brief(await check.look())).toEqual([words]);
    expect(brief(await check.look())).toEqual([words]);
    expect(brief(await checkOf().look())).toEqual([words]);
  });

  test("leaves a program's own faults to the program", async () => {
    say('NVRM: Xid (PCI:0000:3b:00): 13, pid=1, name=a.out, Graphics SM Warp Exception on GPC 7');
    say('NVRM: Xid (PCI:0000:3b:00): 31, pid=1, name=a.out, MMU Fault: ENGINE GRAPHICS');
    say('NVRM: Xid (PCI:0000:3b:00): 43, pid=1, name=a.out, Ch 00000008');
    say('NVRM: Xid (PCI:0000:3b:00): 45, pid=1, name=a.out, Ch 00000008');
    expect(await checkOf().look()).toEqual([]);
  });

  test('warns of what it does not know', async () => {
    say('NVRM: Xid (PCI:0000:3b:00): 999, something new');
    expect(await checkOf().look()).toMatchObject([{ severity: 'warn', device: 2 }]);
  });

  test('ignores devices of others, once its own are all known', async () => {
    say(LOST.replace('3b', '5e'));
    expect(await checkOf().look()).toEqual([]);
    expect(await checkOf({}, undefined, false).look()).toMatchObject([{ severity: 'drain' }]);
  });

  test('does not count what was repaired since, but what came after that', async () => {
    say(LOST, 500);
    await clock.advance(60_000);
    writeFileSync(clearedFile, '');
    const bootWallMs = clock.now() - clock.bootMs();
    utimesSync(clearedFile, 0, (bootWallMs + 30_000) / 1000);
    const check = checkOf();
    expect(await check.look()).toEqual([]);
    say(LOST, 40_000);
    expect(await check.look()).toHaveLength(1);
  });
});

describe('where the device may not be read', () => {
  const script = (name: string, body: string): void => {
    writeFileSync(join(folder, name), `#!/bin/sh\n${body}\n`);
    chmodSync(join(folder, name), 0o755);
  };
  const elsewhere = (): KernelLog =>
    openKernelLog({
      env: { PATH: `${folder}:/usr/bin:/bin` },
      clock,
      device: join(folder, 'none'),
    });

  test('dmesg is asked, each line counting once', async () => {
    script('dmesg', `echo '[    0.535719] NVRM: loading'; echo '[  104.250000] ${LOST}'`);
    const log = elsewhere();
    expect(await log.read()).toHaveLength(2);
    expect(await log.read()).toEqual([]);
    expect(await checkOf(undefined, elsewhere()).look()).toMatchObject([{ device: 2 }]);
  });

  test('then the journal', async () => {
    script('dmesg', 'echo "dmesg: read kernel buffer failed: Operation not permitted" >&2; exit 1');
    script('journalctl', `echo '[  104.250000] node7 kernel: ${LOST}'`);
    expect(await checkOf(undefined, elsewhere()).look()).toMatchObject([{ device: 2 }]);
  });

  test('and without any of them nothing is known, which is no problem to report', async () => {
    for (const name of ['dmesg', 'journalctl']) script(name, 'exit 1');
    const log = elsewhere();
    expect(await log.read()).toBeUndefined();
    expect(await checkOf(undefined, log).look()).toEqual([]);
  });
});

test("this machine's own log is read where it may be, and each line once", async () => {
  const log = openKernelLog({ env: { PATH: '/usr/bin:/bin' }, clock });
  const lines = await log.read();
  if (lines === undefined) return;
  expect(lines.length).toBeGreaterThan(0);
  expect(lines.every(({ bootMs, text }) => bootMs >= 0 && text !== undefined)).toBe(true);
  expect((await log.read())!.length).toBeLessThan(lines.length);
});

test('lines of several drivers are understood', () => {
  const number = (text: string): unknown =>
    parseXid({ bootMs: 1, text }).map(({ number: n, place }) => [n, place]);
  const place = placeOf('0000:01:00');
  expect(number('NVRM: Xid (0000:01:00): 31, Ch 0000000b, engmask 00000120')).toEqual([
    [31, place],
  ]);
  expect(number('NVRM: Xid (PCI:0000:01:00 GPU-I:05): 94, pid=7, Contained')).toEqual([
    [94, place],
  ]);
  expect(
    number("NVRM: Xid (PCI:0000:01:00): 119, pid='<unknown>', name=<unknown>, Timeout"),
  ).toEqual([[119, place]]);
  const unnumbered =
    'NVRM: The NVIDIA GPU 0000:01:00.0 NVRM: (PCI ID: 10de:26b5) installed in this system has ' +
    'NVRM: fallen off the bus and is not responding to commands.';
  expect(number(unnumbered)).toEqual([[79, place]]);
  expect(number('usb 1-1: Xid (PCI:0000:01:00): 79')).toEqual([]);
});

test("the table says of the usual ones whose they are, and every one's words stand alone", () => {
  const faults = (fault: string): number[] =>
    Object.entries(XIDS).flatMap(([n, one]) => (one.fault === fault ? [Number(n)] : []));
  expect(faults('host')).toEqual(
    expect.arrayContaining([48, 63, 64, 74, 79, 92, 94, 95, 119, 120]) as number[],
  );
  expect(faults('program')).toEqual(expect.arrayContaining([13, 31, 43, 45]) as number[]);
  for (const { words } of Object.values(XIDS)) expect(words).toMatch(/^[a-z].{15,}[^.]$/);
});
