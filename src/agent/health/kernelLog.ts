/**
 * What the kernel has said since the boot, each line once: from its own device where that may be
 * read, else from dmesg or the journal. Few agents without privileges may read any of them.
 */
import { constants, openSync, readSync } from 'node:fs';
import type { Clock } from '../../lib/clock.ts';
import { runTool } from '../environments/tool.ts';

export interface KernelLine {
  /** On the kernel's clock, which begins at the boot. */
  bootMs: number;
  text: string;
}

export interface KernelLog {
  /** What is new since the last read; undefined: this agent may not read it. */
  read(): Promise<KernelLine[] | undefined>;
}

/** No record is longer, as the kernel cuts them. */
const RECORD_BYTES = 8192;
/** In one go; the rest comes with the next read. */
const RECORDS_AT_ONCE = 20_000;
const TOOL_LIMIT_MS = 20_000;
const TOOLS: readonly (readonly [string, ...string[]])[] = [
  ['dmesg'],
  ['journalctl', '-k', '-b', '-q', '--no-pager', '-o', 'short-monotonic', '-n', '5000'],
];

interface Options {
  env: Record<string, string>;
  clock: Clock;
  /** Tests have their own. */
  device?: string;
}

export function openKernelLog({ env, clock, device = '/dev/kmsg' }: Options): KernelLog {
  const records = openRecords(device);
  if (records) return { read: async () => records() };
  let tools = TOOLS;
  let untilBootMs = -1;
  return {
    async read() {
      for (const [program, ...args] of tools) {
        const text = await printed(program, args, env, clock);
        if (text === undefined) {
          // Whoever may not read it now will not be allowed to later.
          tools = tools.filter(([name]) => name !== program);
          continue;
        }
        const lines = text.split('\n').flatMap(parsePrinted);
        const fresh = lines.filter(({ bootMs }) => bootMs > untilBootMs);
        for (const { bootMs } of fresh) untilBootMs = Math.max(untilBootMs, bootMs);
        return fresh;
      }
      return undefined;
    },
  };
}

/** Each read of the device is one record; at the end it would block, and says so. */
function openRecords(path: string): (() => KernelLine[]) | undefined {
  let file: number;
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch {
    // Not in a container, and not for everybody: the tools may be allowed more.
    return undefined;
  }
  const buffer = Buffer.alloc(RECORD_BYTES);
  return () => {
    const lines: KernelLine[] = [];
    for (let n = 0; n < RECORDS_AT_ONCE; n++) {
      const text = readRecord(file, buffer);
      if (text === undefined) break;
      lines.push(...text.split('\n').flatMap(parseRecord));
    }
    return lines;
  };
}

/** Undefined at the end. */
function readRecord(file: number, buffer: Buffer): string | undefined {
  try {
    const length = readSync(file, buffer);
    return length === 0 ? undefined : buffer.toString('utf8', 0, length);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EAGAIN') return undefined;
    // Overwritten before it was read: the next read goes on with the oldest there is.
    if (code === 'EPIPE') return '';
    throw error;
  }
}

/** `6,339,5140900,-;text`: level, number, microseconds, flags. Lines with a blank add to it. */
function parseRecord(line: string): KernelLine[] {
  const match = /^\d+,\d+,(\d+),[^;]*;(.*)$/.exec(line);
  if (!match) return [];
  return [{ bootMs: Number(match[1]) / 1000, text: match[2]!.replaceAll('\\x0a', ' ') }];
}

/** `[   12.345678] text`, and in the journal `[   12.345678] HOST kernel: text`. */
function parsePrinted(line: string): KernelLine[] {
  const match = /^(?:<\d+>)?\[\s*(\d+\.\d+)\] (.*)$/.exec(line);
  return match ? [{ bootMs: Number(match[1]) * 1000, text: match[2]! }] : [];
}

/** Undefined: not there, not allowed, or nothing to read, which no kernel says. */
async function printed(
  program: string,
  args: readonly string[],
  env: Record<string, string>,
  clock: Clock,
): Promise<string | undefined> {
  try {
    const end = await runTool({ program, args, env, clock, limitMs: TOOL_LIMIT_MS });
    return end.code === 0 && end.stdout.trim() !== '' ? end.stdout : undefined;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
