/** Measuring attempts: at one beat, from real output of nvidia-smi, and what is told at the end. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ManualClock } from '../../../test/support/manualClock.ts';
import { silentLog } from '../../lib/log.ts';
import type { AttemptOrder } from '../../protocol/agent.ts';
import { openPlainFile } from '../plainFile.ts';
import type { Started } from '../runtimes/around.ts';
import { sumOf, useOf } from '../runtimes/use.ts';
import { createDeviceReader, parseDevices, parseProcesses, type DeviceUses } from './devices.ts';
import { createMetrics } from './metrics.ts';
import { sampleLine } from './sample.ts';

const PERIOD_MS = 10_000;
const MIB = 1024 ** 2;
let home: string;
let clock: ManualClock;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'drover-metrics-'));
  clock = new ManualClock();
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const file = (): string => join(home, 'system-metrics.jsonl');
const lines = (): Record<string, number>[] =>
  readFileSync(file(), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, number>);

function world(order: Partial<AttemptOrder> = {}, percent: () => number = () => 50) {
  const told: unknown[] = [];
  const asked = { devices: 0, looks: 0 };
  const use = { cpuMs: 0, memoryBytes: 3 * MIB };
  const step = createMetrics({
    periodMs: PERIOD_MS,
    clock,
    log: silentLog,
    look: () => void asked.looks++,
    readDevices: async () => {
      asked.devices++;
      const one = { percent: percent(), memoryBytes: 7 * MIB };
      return { devices: new Map([[0, one]]), memoryOf: new Map() };
    },
  });
  const started = {
    order: { uid: 'a', devices: [], share: 1000, ...order },
    home,
    pids: () => [],
    use: () => ({ ...use }),
    tellIdle: (idle: unknown) => told.push(idle),
  } as unknown as Started;
  writeFileSync(join(home, 'pid'), '');
  return { step, started, told, asked, use };
}

async function beats(count: number): Promise<void> {
  for (let n = 0; n < count; n++) {
    await clock.advance(PERIOD_MS);
    await clock.settle();
  }
}

test('nvidia-smi as it speaks: an H200 at work, one that does not tell, one shared by two', () => {
  expect(parseDevices('0, 100, 1395\n1, [N/A], [N/A]\n')).toEqual(
    new Map([
      [0, { percent: 100, memoryBytes: 1395 * MIB }],
      [1, { percent: undefined, memoryBytes: undefined }],
    ]),
  );
  expect(parseProcesses('427, 1386\n427, 14\n9, [N/A]\n')).toEqual(new Map([[427, 1400 * MIB]]));
  expect(parseProcesses('')).toEqual(new Map());
});

test('without nvidia-smi nothing is known, and that is no failure', async () => {
  const read = createDeviceReader({ PATH: home }, silentLog);
  expect(await read()).toEqual({ devices: new Map(), memoryOf: new Map() });
});

test('a line: CPU since the last, memory now, devices by name where there are several', () => {
  const uses: DeviceUses = {
    devices: new Map([
      [2, { percent: 10, memoryBytes: MIB }],
      [3, { percent: 50, memoryBytes: 2 * MIB }],
    ]),
    memoryOf: new Map([[7, 5 * MIB]]),
  };
  const measured = {
    atMs: 20_000,
    use: { cpuMs: 16_000, memoryBytes: 100 },
    before: { atMs: 10_000, cpuMs: 1000 },
    pids: () => [7, 8],
    devices: undefined,
    order: { devices: [], share: 1000 },
  };
  const device = (index: number) => ({ index, kind: 'gpu' });
  expect(sampleLine(measured)).toEqual({
    atMs: 20_000,
    'system.cpuPercent': 150,
    'system.memoryBytes': 100,
  });
  const whole = { devices: [device(2), device(3)], share: 1000 };
  expect(sampleLine({ ...measured, devices: uses, order: whole })).toMatchObject({
    'system.devicePercent': 30,
    'system.deviceMemoryBytes': 3 * MIB,
    'system.device.2.percent': 10,
    'system.device.3.memoryBytes': 2 * MIB,
  });
  // Of a shared one only its own processes' memory counts.
  const shared = { devices: [device(2)], share: 500 };
  expect(sampleLine({ ...measured, devices: uses, order: shared })).toMatchObject({
    'system.devicePercent': 10,
    'system.deviceMemoryBytes': 5 * MIB,
  });
});

test('what ends before its first beat leaves no file, and asks no device', async () => {
  const { step, started, asked } = world();
  const end = step.watch!(started);
  await clock.advance(PERIOD_MS - 1);
  end!();
  await beats(3);
  expect(existsSync(file())).toBe(false);
  expect(step.needsFinish!(started.order, home, {})).toBe(false);
  expect([clock.waiting, asked.devices]).toEqual([0, 0]);
});

test('measured at each beat, with its devices; at the end its peak and its mean', async () => {
  let percent = 80;
  const order = { devices: [{ index: 0, kind: 'gpu' }] };
  const { step, started, asked, use } = world(order, () => percent);
  const end = step.watch!(started);
  await beats(1);
  percent = 40;
  use.memoryBytes = 9 * MIB;
  use.cpuMs = 5000;
  await beats(1);
  use.memoryBytes = MIB;
  await beats(1);
  end!();
  expect(asked).toEqual({ devices: 3, looks: 3 });
  expect(lines().map((line) => line['system.devicePercent'])).toEqual([80, 40, 40]);
  expect(lines()[1]).toMatchObject({ 'system.cpuPercent': 50, 'system.memoryBytes': 9 * MIB });
  expect(step.needsFinish!(started.order, home, {})).toBe(true);
  const { facts } = await step.finish!({ home } as never);
  expect(facts).toEqual({
    'used.peakMemoryBytes': String(9 * MIB),
    'used.meanDevicePercent': '53.3',
    'used.metricsFileBytes': '0',
    'used.systemFileBytes': String(readFileSync(file()).length),
  });
});

test('idle is told when it begins and ends; a new agent knows what the last one saw', async () => {
  let percent = 0;
  const idle = { belowPercent: 5, forMs: 30_000, action: 'stop' as const };
  const order = { devices: [{ index: 0, kind: 'gpu' }], idle };
  const first = world(order, () => percent);
  const end = first.step.watch!(first.started);
  await beats(2);
  end!();
  expect(first.told).toEqual([]);
  // The agent died while it wrote.
  writeFileSync(file(), `${readFileSync(file(), 'utf8')}{"atMs": 1`);
  const second = world(order, () => percent);
  second.step.watch!(second.started);
  await beats(2);
  const message = '0 % used on average for 30s, below 5 %';
  expect(second.told).toEqual([{ message, stop: true }]);
  percent = 100;
  await beats(1);
  expect(second.told.at(-1)).toBeUndefined();
  expect(second.told).toHaveLength(2);
  expect(readFileSync(file(), 'utf8').split('\n')).toHaveLength(7);
});

test('a job that puts a link or a pipe in their place gains and stops nothing', async () => {
  const { step, started } = world();
  const secret = join(home, 'secret');
  writeFileSync(secret, '{"a": 1}\n');
  symlinkSync(secret, file());
  execFileSync('mkfifo', [join(home, 'metrics.jsonl')]);
  step.watch!(started);
  await beats(2);
  expect(readFileSync(secret, 'utf8')).toBe('{"a": 1}\n');
  expect(openPlainFile(file())).toBeUndefined();
  expect(openPlainFile(join(home, 'metrics.jsonl'))).toBeUndefined();
  expect(openPlainFile(home)).toBeUndefined();
  expect((await step.finish!({ home } as never)).facts).toEqual({
    'used.metricsFileBytes': '0',
    'used.systemFileBytes': '0',
  });
});

test('without a cgroup it is the sum of its processes', () => {
  const own = sumOf([process.pid]);
  expect(own.memoryBytes).toBeGreaterThan(10 * MIB);
  expect(own.cpuMs).toBeGreaterThan(0);
  expect(useOf(undefined, [], () => [process.pid]).memoryBytes).toBeGreaterThan(10 * MIB);
  expect(sumOf([2 ** 30])).toEqual({ cpuMs: 0, memoryBytes: 0 });
});
