/** What the planner is measured on: the machines and tasks of the openb traces, or their like. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { PlannerWorker } from '../../src/core/placement/request.ts';
import type { Random } from '../../src/lib/random.ts';
import type { WorkerId } from '../../src/model/ids.ts';
import { OPEN_TERMS } from '../../src/model/placement.ts';
import type { ResourceRequest } from '../../src/model/resources.ts';

const MIB = 2 ** 20;

interface Machine {
  cpuMillis: number;
  memoryMiB: number;
  devices: number;
  model: string;
}

export interface Mix {
  /** For the row: where it comes from. */
  name: string;
  machines: Machine[];
  tasks: ResourceRequest[];
}

export function tracedMix(folder: string): Mix {
  const machines = rows(join(folder, 'node_list_gpu_node.csv')).map((row) => ({
    cpuMillis: Number(row['cpu_milli']),
    memoryMiB: Number(row['memory_mib']),
    devices: Number(row['gpu']),
    model: row['model'] ?? '',
  }));
  const tasks = rows(join(folder, 'pod_list_default.csv')).map((row) =>
    request(
      Number(row['cpu_milli']),
      Number(row['memory_mib']),
      Number(row['num_gpu']),
      Number(row['gpu_milli']),
      (row['gpu_spec'] ?? '').split('|').filter((model) => model !== ''),
    ),
  );
  return { name: 'openb default', machines, tasks };
}

/** Of the same shape: mostly shares and single devices, some of eight, some without any. */
export function likeMix(random: Random): Mix {
  const machines: Machine[] = [];
  const kinds: [number, Machine][] = [
    [0.35, { cpuMillis: 96_000, memoryMiB: 393_216, devices: 8, model: 'G2' }],
    [0.2, { cpuMillis: 64_000, memoryMiB: 262_144, devices: 2, model: 'P100' }],
    [0.25, { cpuMillis: 96_000, memoryMiB: 393_216, devices: 4, model: 'T4' }],
    [0.2, { cpuMillis: 128_000, memoryMiB: 786_432, devices: 8, model: 'V100M32' }],
  ];
  for (let at = 0; at < 1213; at++) machines.push(pick(kinds, random.next()));
  const sizes: [number, [cpuMillis: number, memoryMiB: number, count: number, share: number]][] = [
    [0.13, [8000, 16_384, 0, 0]],
    [0.38, [6000, 12_288, 1, 460]],
    [0.1, [4000, 8192, 1, 250]],
    [0.3, [12_000, 32_768, 1, 1000]],
    [0.04, [16_000, 65_536, 2, 1000]],
    [0.02, [32_000, 131_072, 4, 1000]],
    [0.03, [88_000, 327_680, 8, 1000]],
  ];
  const tasks = Array.from({ length: 8000 }, () => {
    const [cpuMillis, memoryMiB, count, share] = pick(sizes, random.next());
    const scale = 0.5 + Math.floor(random.next() * 4) / 4;
    return request(Math.round(cpuMillis * Math.min(1, scale)), memoryMiB, count, share, []);
  });
  return { name: 'synthetic, like openb', machines, tasks };
}

export function workersOf(mix: Mix, count: number): PlannerWorker[] {
  return Array.from({ length: count }, (_, at) => {
    const machine = mix.machines[at % mix.machines.length] as Machine;
    const { cpuMillis, memoryMiB, devices, model } = machine;
    return {
      id: `w${String(at).padStart(6, '0')}` as WorkerId,
      name: `m${at}`,
      pool: 'default',
      network: 'lan',
      attributes: {},
      resources: {
        cpuMillis,
        memoryBytes: memoryMiB * MIB,
        devices: Array.from({ length: devices }, (_unused, index) => ({
          index,
          kind: 'gpu' as const,
          model,
          memoryBytes: 0,
        })),
        portRange: [20_000, 29_999],
      },
      terms: OPEN_TERMS,
      deviceHourMicros: 0,
      cpuHourMicros: 0,
      lasts: null,
      open: true,
    };
  });
}

function request(
  cpuMillis: number,
  memoryMiB: number,
  count: number,
  share: number,
  models: string[],
): ResourceRequest {
  const device =
    count > 0
      ? { kind: 'gpu' as const, count, share: share || 1000, models, memoryBytes: 0 }
      : null;
  return { cpuMillis, memoryBytes: memoryMiB * MIB, device, ports: 0 };
}

/** The first whose part of the whole the point falls into. */
function pick<Item>(parts: [part: number, item: Item][], point: number): Item {
  let sum = 0;
  for (const [part, item] of parts) if (point < (sum += part)) return item;
  return (parts.at(-1) as [number, Item])[1];
}

function rows(file: string): Record<string, string>[] {
  const [head = '', ...lines] = readFileSync(file, 'utf8').trim().split(/\r?\n/);
  const names = head.split(',');
  return lines.map((line) => {
    const values = line.split(',');
    return Object.fromEntries(names.map((name, at) => [name, values[at] ?? '']));
  });
}
