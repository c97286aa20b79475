/**
 * Whether the machine itself is short of memory. Told and no more: an attempt within its limits may
 * take all there is, and goes again.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Check, Finding } from './check.ts';

/** Of a minute, in which nothing at all went on for want of memory. */
const STALLED_PERCENT = 20;
const LEAST_AVAILABLE_PERCENT = 2;

export function createMemoryCheck(proc = '/proc'): Check {
  return {
    name: 'memory',
    around: 'none',
    async look() {
      const found: Finding[] = [];
      const add = (key: string, message: string): void => {
        found.push({ check: 'memory', key, severity: 'warn', message, blames: 'nobody' });
      };
      const pressure = await readIfThere(join(proc, 'pressure/memory'));
      const stalled = Number(/^full .*avg60=([\d.]+)/m.exec(pressure)?.[1] ?? 0);
      if (stalled >= STALLED_PERCENT) {
        add('pressure', `nothing went on for want of memory in ${stalled} % of the last minute`);
      }
      const sizes = await readIfThere(join(proc, 'meminfo'));
      const [total, available] = ['MemTotal', 'MemAvailable'].map((name) =>
        Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(sizes)?.[1]),
      );
      const percent = (available! / total!) * 100;
      if (percent < LEAST_AVAILABLE_PERCENT) {
        add('available', `${percent.toFixed(1)} % of the machine's memory is left`);
      }
      return found;
    },
  };
}

/** Kernels without pressure figures are still in use. */
async function readIfThere(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'EOPNOTSUPP') return '';
    throw error;
  }
}
