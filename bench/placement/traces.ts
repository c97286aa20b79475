/** Reads lists of nodes and tasks, and makes the stream of arrivals of the published experiment. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface TraceNode {
  name: string;
  cpuMillis: number;
  memoryMiB: number;
  devices: number;
  model: string;
}

export interface TraceTask {
  cpuMillis: number;
  memoryMiB: number;
  devices: number;
  /** Thousandths of one device; 1000: whole ones. */
  share: number;
  /** Any of these; empty: all. */
  models: string[];
}

export interface Traces {
  nodes: TraceNode[];
  lists: { name: string; tasks: TraceTask[] }[];
}

/** Demand that arrives, as a part of all devices. */
const ARRIVING = 1.3;
const WHOLE = 1000;

export function readTraces(folder: string): Traces {
  const files = readdirSync(folder).toSorted();
  const nodes = files
    .filter((file) => /^node_list.*\.csv$/.test(file))
    .flatMap((file) => rowsOf(join(folder, file)).map(nodeOf));
  const lists = files.flatMap((file) => {
    const name = /^pod_list_(.*)\.csv$/.exec(file)?.[1];
    if (!name) return [];
    const tasks = rowsOf(join(folder, file)).map(taskOf);
    return [{ name, tasks: shareAlike(tasks) }];
  });
  if (nodes.length === 0) throw new Error(`${folder} has no node_list*.csv`);
  if (lists.length === 0) throw new Error(`${folder} has no pod_list_*.csv`);
  return { nodes, lists };
}

/** In thousandths of a device. */
export function demandOf({ devices, share }: TraceTask): number {
  return devices * share;
}

export function capacityOf(nodes: readonly TraceNode[]): number {
  return nodes.reduce((sum, { devices }) => sum + devices * WHOLE, 0);
}

/**
 * Random copies are added until the next would pass 1.3 times the capacity, or random tasks dropped
 * until the rest fits it; then all are shuffled.
 */
export function arrivals(tasks: readonly TraceTask[], capacity: number, seed: number): TraceTask[] {
  const random = randomFrom(seed);
  const pick = (count: number): number => Math.floor(random() * count);
  const stream = [...tasks];
  const limit = ARRIVING * capacity;
  let demand = stream.reduce((sum, task) => sum + demandOf(task), 0);
  while (demand > limit) {
    const at = pick(stream.length);
    demand -= demandOf(stream[at] as TraceTask);
    stream[at] = stream.at(-1) as TraceTask;
    stream.pop();
  }
  if (stream.length === tasks.length) {
    for (;;) {
      const task = tasks[pick(tasks.length)] as TraceTask;
      if (demand + demandOf(task) > limit) break;
      demand += demandOf(task);
      stream.push(task);
    }
  }
  for (let left = stream.length - 1; left > 0; left--) {
    const other = pick(left + 1);
    [stream[left], stream[other]] = [stream[other] as TraceTask, stream[left] as TraceTask];
  }
  return stream;
}

function rowsOf(file: string): Record<string, string>[] {
  const [header = '', ...lines] = readFileSync(file, 'utf8').trim().split(/\r?\n/);
  const names = header.split(',');
  return lines.map((line) => {
    const cells = line.split(',');
    return Object.fromEntries(names.map((name, at) => [name, cells[at] ?? '']));
  });
}

function nodeOf(row: Record<string, string>): TraceNode {
  return {
    name: row['sn'] ?? '',
    cpuMillis: Number(row['cpu_milli']),
    memoryMiB: Number(row['memory_mib']),
    devices: Number(row['gpu']),
    model: row['model'] ?? '',
  };
}

function taskOf(row: Record<string, string>): TraceTask {
  const models = (row['gpu_spec'] ?? '').split('|').filter((model) => model !== '');
  return {
    cpuMillis: Number(row['cpu_milli']),
    memoryMiB: Number(row['memory_mib']),
    devices: Number(row['num_gpu']),
    share: Number(row['gpu_milli']),
    models: [...new Set(models)],
  };
}

/** Equal tasks become one object, so that policies can tell classes by identity. */
function shareAlike(tasks: TraceTask[]): TraceTask[] {
  const classes = new Map<string, TraceTask>();
  return tasks.map((task) => {
    const key = JSON.stringify(task);
    const known = classes.get(key) ?? task;
    classes.set(key, known);
    return known;
  });
}

/** Mulberry32: small, even enough, the same everywhere. */
function randomFrom(seed: number): () => number {
  let state = seed * 2_654_435_769;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
