/**
 * The NVIDIA driver's numbered errors in the kernel's log. One that is the machine's counts until
 * the next boot: a reset leaves no trace, so that whoever made one says so by touching a file.
 */
import { stat } from 'node:fs/promises';
import type { Clock } from '../../lib/clock.ts';
import type { Log } from '../../lib/log.ts';
import type { Check, Finding } from './check.ts';
import { placeOf, type KnownGpus } from './gpus.ts';
import type { KernelLine, KernelLog } from './kernelLog.ts';
import { XIDS } from './xidTable.ts';

interface XidOptions {
  kernelLog: KernelLog;
  gpus: KnownGpus;
  /** What was said before this file was last written does not count. */
  clearedFile: string;
  clock: Clock;
  log: Log;
}

export interface Xid {
  number: number;
  /** The device's place, see `placeOf`; undefined: it was not said. */
  place: string | undefined;
  bootMs: number;
  /** As the driver put it. */
  text: string;
}

/** Of different ones; a machine with more is no longer worth telling apart. */
const KEPT = 200;
const TEXT_LENGTH = 300;
const LOST = 79;

export function createXidCheck(options: XidOptions): Check {
  const { kernelLog, gpus, clearedFile, clock, log } = options;
  /** The newest of each number and place. */
  const kept = new Map<string, Xid>();
  let unreadable = false;

  return {
    name: 'xid',
    around: 'every',
    async look() {
      const lines = await kernelLog.read();
      if (!lines && !unreadable) {
        unreadable = true;
        log.info({}, 'the kernel log cannot be read: errors of GPUs are seen by nvidia-smi alone');
      }
      for (const xid of (lines ?? []).flatMap(parseXid)) {
        const key = `${xid.number} ${xid.place}`;
        if (kept.has(key) || kept.size < KEPT) kept.set(key, xid);
      }
      if (kept.size === 0) return [];
      const clearedBootMs = (await writtenMs(clearedFile)) - (clock.now() - clock.bootMs());
      const counting = [...kept.values()].filter(({ bootMs }) => bootMs > clearedBootMs);
      return counting.flatMap((xid) => findingOf(xid, gpus));
    },
  };
}

/** `NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU has fallen off the bus.` */
export function parseXid({ bootMs, text }: KernelLine): Xid[] {
  if (!text.includes('NVRM')) return [];
  const match = /NVRM: Xid \((?:PCI:)?([0-9a-f:.]+)[^)]*\): (\d+)/i.exec(text);
  const words = text.slice(text.indexOf('NVRM')).slice(0, TEXT_LENGTH);
  if (match) {
    return [{ number: Number(match[2]), place: placeOf(match[1]!), bootMs, text: words }];
  }
  // At the driver's start it is said without a number.
  if (!/fallen off the bus/.test(text)) return [];
  const address = /([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2})/i.exec(text)?.[1];
  const place = address === undefined ? undefined : placeOf(address);
  return [{ number: LOST, place, bootMs, text: words }];
}

function findingOf({ number, place, text }: Xid, gpus: KnownGpus): Finding[] {
  const meaning = XIDS[number];
  if (meaning?.fault === 'program') return [];
  const device = place === undefined ? undefined : gpus.byPlace.get(place);
  // Others may have the rest of the machine's devices.
  if (place !== undefined && device === undefined && gpus.complete()) return [];
  const where = device === undefined ? 'a GPU' : `GPU ${device}`;
  const words = meaning?.words ?? 'an error that is not known here';
  return [
    {
      check: 'xid',
      key: `${number} ${place}`,
      severity: meaning ? 'drain' : 'warn',
      message: `${where}: Xid ${number}, ${words} (${text})`,
      ...(device !== undefined && { device }),
      blames: 'gpu',
    },
  ];
}

async function writtenMs(file: string): Promise<number> {
  try {
    return (await stat(file)).mtimeMs;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 0;
    throw error;
  }
}
