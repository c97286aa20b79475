/**
 * What this machine has for work: CPUs and memory within its cgroup, and the GPUs nvidia-smi names.
 */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Device, WorkerResources } from '../../model/resources.ts';
import { ownCgroupFolders } from './cgroupFolders.ts';
import { DEFAULT_PORT_RANGE } from './parse.ts';

/**
 * nvidia-smi takes seconds on a machine with many GPUs and no persistence daemon; a broken one
 * hangs.
 */
const NVIDIA_SMI_TIMEOUT_MS = 30_000;
const NVIDIA_SMI_ARGUMENTS = [
  '--query-gpu=index,name,memory.total',
  '--format=csv,noheader,nounits',
];

export interface Detected {
  resources: WorkerResources;
  /** What could not be read, for a person. Never silently "none". */
  problems: string[];
}

export interface DetectOptions {
  /** What the user declared (see parseResources); only the rest is detected. */
  declared?: Partial<WorkerResources>;
  /** Where /proc is; tests have their own. */
  proc?: string;
  env?: NodeJS.ProcessEnv;
}

export async function detectResources(options: DetectOptions = {}): Promise<Detected> {
  const { proc = '/proc', env = process.env, declared = {} } = options;
  const gpus = declared.devices
    ? { devices: declared.devices, problems: [] }
    : await detectGpus(env);
  const resources: WorkerResources = {
    cpuMillis: declared.cpuMillis ?? detectCpuMillis(proc),
    memoryBytes: declared.memoryBytes ?? detectMemoryBytes(proc),
    devices: gpus.devices,
    portRange: declared.portRange ?? [...DEFAULT_PORT_RANGE],
  };
  return { resources, problems: gpus.problems };
}

/** The least of affinity and every quota up the tree. */
export function detectCpuMillis(proc = '/proc'): number {
  let millis = availableParallelism() * 1000;
  for (const folder of ownCgroupFolders(proc, 'cpu')) {
    const [quota, period] = readWords(join(folder, 'cpu.max')) ?? [
      readWords(join(folder, 'cpu.cfs_quota_us'))?.[0],
      readWords(join(folder, 'cpu.cfs_period_us'))?.[0],
    ];
    const share = (Number(quota) / Number(period)) * 1000;
    if (share > 0) millis = Math.min(millis, Math.max(1, Math.floor(share)));
  }
  return millis;
}

/** The least of the machine's memory and every limit up the tree. */
export function detectMemoryBytes(proc = '/proc'): number {
  const total = /^MemTotal:\s+(\d+) kB$/m.exec(readFileSync(join(proc, 'meminfo'), 'utf8'));
  let bytes = Number(total?.[1]) * 1024;
  for (const folder of ownCgroupFolders(proc, 'memory')) {
    for (const file of ['memory.max', 'memory.limit_in_bytes']) {
      const limit = Number(readWords(join(folder, file))?.[0]);
      if (limit > 0) bytes = Math.min(bytes, limit);
    }
  }
  return bytes;
}

function readWords(path: string): string[] | undefined {
  try {
    return readFileSync(path, 'utf8').trim().split(/\s+/);
  } catch {
    // The root group has no limits, and a version has only its own files.
    return undefined;
  }
}

/** No nvidia-smi means no GPUs; one that fails means we do not know, and says so. */
export async function detectGpus(
  env: NodeJS.ProcessEnv = process.env,
): Promise<{ devices: Device[]; problems: string[] }> {
  let text: string;
  try {
    const timeout = NVIDIA_SMI_TIMEOUT_MS;
    const run = await promisify(execFile)('nvidia-smi', NVIDIA_SMI_ARGUMENTS, { timeout, env });
    text = run.stdout;
  } catch (error) {
    const failure = error as NodeJS.ErrnoException & { stdout?: string; stderr?: string };
    if (failure.code === 'ENOENT') return { devices: [], problems: [] };
    // It explains itself on stdout.
    const said = `${failure.stdout ?? ''} ${failure.stderr ?? ''}`.trim() || failure.message;
    return { devices: [], problems: [`nvidia-smi failed: ${said}`] };
  }
  const problems: string[] = [];
  const devices: Device[] = [];
  for (const line of text.split('\n').filter((row) => row.trim() !== '')) {
    const device = parseGpu(line);
    if (device) devices.push(device);
    else problems.push(`nvidia-smi said something we cannot read: ${JSON.stringify(line)}`);
  }
  return keepVisible(devices, problems, env['CUDA_VISIBLE_DEVICES']);
}

const MEBIBYTE = 1024 ** 2;

function parseGpu(line: string): Device | undefined {
  const match = /^\s*(\d+),\s*(.+?),\s*(\S.*?)\s*$/.exec(line);
  if (!match) return undefined;
  // Some devices, with memory shared with the CPU, answer [N/A].
  const mebibytes = Number(match[3]);
  if (!Number.isFinite(mebibytes) && !/N\/A|Not Supported/i.test(match[3]!)) return undefined;
  const memoryBytes = Number.isFinite(mebibytes) ? mebibytes * MEBIBYTE : 0;
  return { index: Number(match[1]), kind: 'gpu', model: match[2]!, memoryBytes };
}

/** An agent inside an allocation (Slurm) was itself given only some of the machine's GPUs. */
function keepVisible(
  devices: Device[],
  problems: string[],
  visible: string | undefined,
): { devices: Device[]; problems: string[] } {
  if (visible === undefined || devices.length === 0) return { devices, problems };
  const names = visible.split(',').filter((name) => name.trim() !== '');
  if (names.some((name) => !/^\s*\d+\s*$/.test(name))) {
    const problem =
      `CUDA_VISIBLE_DEVICES=${visible} names devices other than by number, so none is offered; ` +
      `declare them with --resources gpus=COUNT:MODEL`;
    return { devices: [], problems: [...problems, problem] };
  }
  const indices = new Set(names.map(Number));
  return { devices: devices.filter((device) => indices.has(device.index)), problems };
}
