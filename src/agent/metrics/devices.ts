/** How busy the machine's devices are, as nvidia-smi tells it. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Log } from '../../lib/log.ts';

/** One that hangs must not pile up: the next sample goes without. */
const NVIDIA_SMI_TIMEOUT_MS = 8000;
const MEBIBYTE = 1024 ** 2;

export interface DeviceUse {
  /** Undefined: it does not tell, as some devices do not. */
  percent: number | undefined;
  memoryBytes: number | undefined;
}

/** By index. Of processes: memory by pid, where the device is shared. */
export interface DeviceUses {
  devices: Map<number, DeviceUse>;
  memoryOf: Map<number, number>;
}

export type ReadDevices = () => Promise<DeviceUses>;

const NOTHING: DeviceUses = { devices: new Map(), memoryOf: new Map() };

/** A failed read is unknown, never idle; it is told once until it works again. */
export function createDeviceReader(env: NodeJS.ProcessEnv, log: Log): ReadDevices {
  let failing = false;
  const ask = async (query: string): Promise<string> => {
    const format = '--format=csv,noheader,nounits';
    const options = { timeout: NVIDIA_SMI_TIMEOUT_MS, env };
    return (await promisify(execFile)('nvidia-smi', [query, format], options)).stdout;
  };
  return async () => {
    try {
      const [gpus, apps] = await Promise.all([
        ask('--query-gpu=index,utilization.gpu,memory.used'),
        ask('--query-compute-apps=pid,used_memory'),
      ]);
      failing = false;
      return { devices: parseDevices(gpus), memoryOf: parseProcesses(apps) };
    } catch (error) {
      if (!failing) log.warn({ error }, 'nvidia-smi cannot be asked: devices are not measured');
      failing = true;
      return NOTHING;
    }
  };
}

/** `0, 97, 40536`, or `[N/A]` in place of a number. */
export function parseDevices(text: string): Map<number, DeviceUse> {
  const devices = new Map<number, DeviceUse>();
  for (const [index, percent, mebibytes] of rows(text)) {
    if (index === undefined) continue;
    const memoryBytes = mebibytes === undefined ? undefined : mebibytes * MEBIBYTE;
    devices.set(index, { percent, memoryBytes });
  }
  return devices;
}

/** A process on two devices has two rows. */
export function parseProcesses(text: string): Map<number, number> {
  const memoryOf = new Map<number, number>();
  for (const [pid, mebibytes] of rows(text)) {
    if (pid === undefined || mebibytes === undefined) continue;
    memoryOf.set(pid, (memoryOf.get(pid) ?? 0) + mebibytes * MEBIBYTE);
  }
  return memoryOf;
}

function rows(text: string): (number | undefined)[][] {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  return lines.map((line) => line.split(',').map(numberOf));
}

function numberOf(text: string): number | undefined {
  const number = Number.parseFloat(text);
  return Number.isFinite(number) ? number : undefined;
}
