/** Detected and declared resources, with a real script named nvidia-smi and a /proc of our own. */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { DroverError } from '../../lib/errors.ts';
import { joinRequest } from '../../protocol/agent.ts';
import { detectCpuMillis, detectGpus, detectMemoryBytes, detectResources } from './detect.ts';
import { bootId, machineId } from './machine.ts';
import { parseResources } from './parse.ts';

const folder = mkdtempSync(join(tmpdir(), 'drover-devices-'));
const gib = 1024 ** 3;
afterAll(() => rmSync(folder, { recursive: true }));

function nvidiaSmi(script: string, more: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv {
  const path = join(folder, 'nvidia-smi');
  writeFileSync(path, `#!/bin/sh\n${script}\n`);
  chmodSync(path, 0o755);
  return { PATH: `${folder}:/usr/bin:/bin`, ...more };
}

describe('GPUs', () => {
  const asked = '--query-gpu=index,name,memory.total --format=csv,noheader,nounits';
  const two = `[ "$*" = "${asked}" ] || exit 9
    echo "0, NVIDIA A100-SXM4-80GB, 81920"; echo "1, NVIDIA GB10, [N/A]"`;

  test('are what nvidia-smi lists', async () => {
    expect(await detectGpus(nvidiaSmi(two))).toEqual({
      devices: [
        { index: 0, kind: 'gpu', model: 'NVIDIA A100-SXM4-80GB', memoryBytes: 80 * gib },
        { index: 1, kind: 'gpu', model: 'NVIDIA GB10', memoryBytes: 0 },
      ],
      problems: [],
    });
  });

  test('are none without the tool, and a problem when it fails or talks nonsense', async () => {
    const nowhere = { PATH: join(folder, 'empty') };
    expect(await detectGpus(nowhere)).toEqual({ devices: [], problems: [] });
    const failing = nvidiaSmi(`echo "NVIDIA-SMI has failed because it couldn't talk"; exit 9`);
    expect((await detectGpus(failing)).problems).toEqual([
      "nvidia-smi failed: NVIDIA-SMI has failed because it couldn't talk",
    ]);
    const odd = await detectGpus(nvidiaSmi('echo "No devices were found"'));
    expect(odd.devices).toEqual([]);
    expect(odd.problems[0]).toContain('No devices were found');
  });

  test('are only those the agent itself was given', async () => {
    const some = await detectGpus(nvidiaSmi(two, { CUDA_VISIBLE_DEVICES: '1' }));
    expect(some.devices.map((device) => device.index)).toEqual([1]);
    expect((await detectGpus(nvidiaSmi(two, { CUDA_VISIBLE_DEVICES: '' }))).devices).toEqual([]);
    const unknown = await detectGpus(nvidiaSmi(two, { CUDA_VISIBLE_DEVICES: 'GPU-8f2a' }));
    expect(unknown.devices).toEqual([]);
    expect(unknown.problems[0]).toContain('CUDA_VISIBLE_DEVICES=GPU-8f2a');
  });
});

describe('CPUs and memory', () => {
  const proc = join(folder, 'proc');
  const tree = join(folder, 'cgroup');
  beforeEach(() => {
    rmSync(proc, { recursive: true, force: true });
    rmSync(tree, { recursive: true, force: true });
  });

  function machine(files: Record<string, string>): void {
    const defaults = { [join(proc, 'meminfo')]: `MemTotal:       ${64 * 1024 ** 2} kB\n` };
    for (const [path, content] of Object.entries({ ...defaults, ...files })) {
      mkdirSync(join(path, '..'), { recursive: true });
      writeFileSync(path, content);
    }
  }

  test('are limited by version 2, at any height', () => {
    machine({
      [join(proc, 'self/mountinfo')]: `30 24 0:27 / ${tree} rw - cgroup2 cgroup2 rw\n`,
      [join(proc, 'self/cgroup')]: '0::/user/agent\n',
      [join(tree, 'user/agent/cpu.max')]: 'max 100000\n',
      [join(tree, 'user/cpu.max')]: '150000 100000\n',
      [join(tree, 'user/memory.max')]: `${8 * gib}\n`,
      [join(tree, 'user/agent/memory.max')]: 'max\n',
    });
    expect(detectCpuMillis(proc)).toBe(1500);
    expect(detectMemoryBytes(proc)).toBe(8 * gib);
  });

  test('are limited by version 1, also as a container sees it', () => {
    machine({
      [join(proc, 'self/mountinfo')]:
        `31 24 0:28 /docker/abc ${tree}/memory rw - cgroup cgroup rw,memory\n` +
        `32 24 0:29 /docker/abc ${tree}/cpu rw - cgroup cgroup rw,cpu,cpuacct\n`,
      [join(proc, 'self/cgroup')]: '4:memory:/docker/abc\n3:cpu,cpuacct:/docker/abc\n',
      [join(tree, 'memory/memory.limit_in_bytes')]: `${2 * gib}\n`,
      [join(tree, 'cpu/cpu.cfs_quota_us')]: '50000\n',
      [join(tree, 'cpu/cpu.cfs_period_us')]: '100000\n',
    });
    expect(detectCpuMillis(proc)).toBe(500);
    expect(detectMemoryBytes(proc)).toBe(2 * gib);
  });

  test('are the whole machine without limits', () => {
    machine({
      [join(proc, 'self/mountinfo')]: `32 24 0:29 / ${tree}/cpu rw - cgroup cgroup rw,cpu\n`,
      [join(proc, 'self/cgroup')]: '3:cpu:/\n',
      [join(tree, 'cpu/cpu.cfs_quota_us')]: '-1\n',
      [join(tree, 'cpu/cpu.cfs_period_us')]: '100000\n',
    });
    expect(detectCpuMillis(proc)).toBe(availableParallelism() * 1000);
    expect(detectMemoryBytes(proc)).toBe(64 * gib);
  });

  test('of this very machine can be sent with a join', async () => {
    const { resources } = await detectResources();
    expect(joinRequest.shape.resources.parse(resources)).toEqual(resources);
    expect(resources.cpuMillis).toBeGreaterThan(0);
    expect(resources.memoryBytes).toBeGreaterThan(2 ** 20);
  });
});

describe('declared resources', () => {
  test('say what there is, and leave out what they do not say', () => {
    expect(parseResources('cpus=16,mem=64Gi,gpus=4:A100')).toEqual({
      cpuMillis: 16_000,
      memoryBytes: 64 * gib,
      devices: [0, 1, 2, 3].map((index) => ({ index, kind: 'gpu', model: 'A100', memoryBytes: 0 })),
    });
    expect(parseResources('gpus=1:A100:80Gi').devices?.[0]?.memoryBytes).toBe(80 * gib);
    expect(parseResources(' cpus=0.5 , ports=20000-20999 ')).toEqual({
      cpuMillis: 500,
      portRange: [20_000, 20_999],
    });
    expect(parseResources('mem=500MB').memoryBytes).toBe(500e6);
    expect(parseResources('gpus=0').devices).toEqual([]);
  });

  test('stand over what is detected, which fills in the rest', async () => {
    const env = nvidiaSmi('echo "0, NVIDIA L4, 23034"');
    const some = await detectResources({ env, declared: parseResources('cpus=3') });
    expect(some.resources).toMatchObject({ cpuMillis: 3000, devices: [{ model: 'NVIDIA L4' }] });
    const none = await detectResources({ env, declared: parseResources('gpus=0') });
    expect(none.resources).toMatchObject({ devices: [], portRange: [20_000, 29_999] });
  });

  test.each([
    ['', 'unknown key'],
    ['cpu=4', 'did you mean cpus'],
    ['memory=4Gi', 'did you mean mem'],
    ['gpsu=1', 'did you mean gpus'],
    ['port=1-2', 'did you mean ports'],
    ['cpus=', 'missing'],
    ['cpus', 'missing'],
    ['cpus=many', '"cpus=many"'],
    ['cpus=0', 'above 0'],
    ['cpus=1,cpus=2', 'twice'],
    ['mem=64Gx', '"mem=64Gx"'],
    ['mem=-1', 'a size'],
    ['gpus=x:A100', 'COUNT'],
    ['gpus=1:A100:80Gi:more', 'COUNT'],
    ['gpus=5000', 'at most 1024'],
    ['ports=9-1', 'FIRST-LAST'],
    ['ports=0-70000', 'FIRST-LAST'],
  ])('%j is refused: %s', (text, why) => {
    const refusal = (): unknown => parseResources(text);
    expect(refusal).toThrow(DroverError);
    expect(refusal).toThrow(why);
  });
});

test('a machine keeps its identity; another data folder is another worker', () => {
  expect(machineId('/a')).toBe(machineId('/a/'));
  expect(machineId('/a')).not.toBe(machineId('/b'));
  expect(bootId()).toMatch(/^[0-9a-f-]{36}$/);
});
