/** GPUs as nvidia-smi shows them: its real answers, written by programs of the same name. */
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { ManualClock } from '../../../test/support/manualClock.ts';
import { systemClock, type Clock } from '../../lib/clock.ts';
import type { Finding } from './check.ts';
import { createGpuCheck, placeOf } from './gpus.ts';
import { createSmi, NVIDIA_SMI_LIMIT_MS } from './nvidiaSmi.ts';

const folder = mkdtempSync(join(tmpdir(), 'drover-gpus-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const program = join(folder, 'nvidia-smi');
const env = { PATH: `${folder}${delimiter}${process.env['PATH'] ?? ''}` };

/** As an H200 with driver 580 answers all fields of the question. */
const uuid = (n: number): string => `GPU-f75e2061-802a-b334-5982-704803ba3fd${n}`;
function row(index: number, more: Record<number, string> = {}): string {
  const values = [
    `${index}`,
    uuid(index),
    `00000000:3${index}:00.0`,
    '34',
    '0',
    '[N/A]',
    'No',
    'No',
  ];
  const all = [...values, 'Not Active', 'Not Active', 'Not Active', 'None'];
  return all.map((value, n) => more[n] ?? value).join(', ');
}

function answer(lines: string[], code = 0): void {
  const text = lines.map((line) => `${line}\n`).join('');
  writeFileSync(join(folder, 'answer'), text);
  script(`cat '${join(folder, 'answer')}'; exit ${code}`);
}

function script(body: string): void {
  writeFileSync(program, `#!/bin/sh\n${body}\n`);
  chmodSync(program, 0o755);
}

beforeEach(() => rmSync(program, { force: true }));

const checkOf = (indices: number[], clock: Clock = systemClock) =>
  createGpuCheck(indices, createSmi(env, clock)).check;
const brief = (found: Finding[]): string[] =>
  found.map(({ check, severity, message }) => `${check} ${severity}: ${message}`);

test('sound ones give nothing to say', async () => {
  answer([row(0), row(1)]);
  expect(await checkOf([0, 1]).look()).toEqual([]);
});

test.each([
  [
    'uncorrected errors',
    { 4: '3' },
    'ecc drain: GPU 0 has 3 uncorrected memory errors since its last reset',
  ],
  ['pages to retire', { 5: 'Yes' }, 'ecc drain: GPU 0 has memory pages to retire at a reset'],
  ['rows to remap', { 6: 'Yes' }, 'ecc drain: GPU 0 has memory rows to remap at a reset'],
  ['no spare rows', { 7: 'Yes' }, 'ecc drain: GPU 0 has no spare memory row left'],
  ['heat', { 3: '91', 8: 'Active' }, 'throttle warn: GPU 0 is slowed down by heat, at 91 C'],
  ['power', { 10: 'Active' }, 'throttle warn: GPU 0 is slowed down by the power supply'],
  [
    'a driver that wants a reset',
    { 11: 'Reset' },
    'devices drain: GPU 0 must be recovered, says its driver: Reset',
  ],
  [
    'one that is lost',
    { 3: '[GPU is lost]' },
    'devices drain: GPU 0 does not answer: [GPU is lost]',
  ],
])('%s', async (_, more, expected) => {
  answer([row(0, more)]);
  const found = await checkOf([0]).look();
  expect(brief(found)).toEqual([expected]);
  expect(found[0]?.device).toBe(0);
});

test('what a device does not tell is not held against it', async () => {
  answer([row(0, { 3: '[N/A]', 4: '[N/A]', 6: '[N/A]', 7: '[N/A]', 8: '[N/A]', 11: '[N/A]' })]);
  expect(await checkOf([0]).look()).toEqual([]);
  answer([row(0, { 4: '[Not Supported]', 11: '[Insufficient Permissions]' })]);
  expect(await checkOf([0]).look()).toEqual([]);
});

describe('one that was there', () => {
  test('and is missing drains, by its number; the others are still seen', async () => {
    const check = checkOf([0, 1]);
    answer([row(0), row(1)]);
    await check.look();
    answer([row(0, { 4: '1' })]);
    expect(brief(await check.look())).toEqual([
      'ecc drain: GPU 0 has 1 uncorrected memory errors since its last reset',
      `devices drain: GPU 1 is missing (${uuid(1)})`,
    ]);
    answer([row(0), row(1)]);
    expect(await check.look()).toEqual([]);
  });

  test('and cannot be reached is known by its place', async () => {
    const check = checkOf([0, 1]);
    answer([row(0), row(1)]);
    await check.look();
    const line = 'Unable to determine the device handle for GPU0000:31:00.0: Unknown Error';
    answer([line], 255);
    expect(await check.look()).toMatchObject([
      { check: 'devices', severity: 'drain', device: 1, message: `GPU 1 is lost: ${line}` },
    ]);
  });

  test('under another number is another one', async () => {
    const check = checkOf([0, 1]);
    answer([row(0), row(1)]);
    await check.look();
    answer([row(0, { 1: uuid(1) })]);
    expect(brief(await check.look())[0]).toContain('GPU 0 is GPU-');
    expect(brief(await check.look())[0]).toContain('devices were renumbered');
  });

  test('with a driver that went away, or without the program', async () => {
    const check = checkOf([0]);
    answer([row(0)]);
    await check.look();
    answer(
      [
        'Failed to initialize NVML: No supported GPUs were found',
        'Unable to determine the number of GPUs',
      ],
      255,
    );
    expect(brief(await check.look())).toEqual([
      'devices drain: nvidia-smi failed: Failed to initialize NVML: No supported GPUs were found ' +
        'Unable to determine the number of GPUs',
    ]);
    rmSync(program);
    expect(brief(await check.look())[0]).toContain('devices drain: nvidia-smi is gone');
  });
});

test('declared ones that cannot be asked are left alone; unseen ones are told', async () => {
  expect(await checkOf([0, 1]).look()).toEqual([]);
  answer([row(0)]);
  expect(brief(await checkOf([0, 1]).look())).toEqual([
    'devices warn: GPU 1 is declared, and nvidia-smi does not show it',
  ]);
});

const refuse = (field: string): string =>
  `case "$1" in *${field}*) ` +
  `echo 'Field "${field}" is not a valid field to query.'; exit 2;; esac\n`;

test('a driver that does not know all fields is asked without them, once', async () => {
  const calls = join(folder, 'calls');
  script(
    `echo "$1" >>'${calls}'\n` +
      ['gpu_recovery_action', 'remapped_rows.pending'].map(refuse).join('') +
      `echo '${row(0, { 4: '2' }).split(', ').toSpliced(11, 1).toSpliced(6, 1).join(', ')}'`,
  );
  const check = checkOf([0]);
  expect(brief(await check.look())[0]).toContain('2 uncorrected memory errors');
  await check.look();
  expect(readFileSync(calls, 'utf8').trim().split('\n')).toHaveLength(4);
});

test('one that does not answer is told, and drains when it happens again', async () => {
  const clock = new ManualClock();
  const check = checkOf([0], clock);
  script('exec sleep 60');
  for (const severity of ['warn', 'drain'] as const) {
    const look = check.look();
    await clock.settle();
    await clock.advance(NVIDIA_SMI_LIMIT_MS);
    expect(await look).toMatchObject([{ check: 'devices', severity }]);
  }
  answer([row(0)]);
  expect(await check.look()).toEqual([]);
});

test('places are the same however they are written', () => {
  expect(placeOf('00000000:3B:00.0')).toBe(placeOf('0000:3b:00'));
  expect(placeOf('00010000:3B:00.0')).not.toBe(placeOf('0000:3b:00'));
  expect(placeOf('nonsense')).toBeUndefined();
});
