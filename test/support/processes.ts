/** Real processes of a test: started, watched, signalled by pid, and found when left behind. */
import { spawn, type ChildProcess } from 'node:child_process';
import { readFileSync, readdirSync, readlinkSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

export const DROVER = path.resolve(import.meta.dirname, '../../drover');

/** How long a process may take to end after it was asked to: a loaded machine included. */
const END_LIMIT_MS = 30_000;
/** Enough to explain a failure. */
const KEPT_OUTPUT = 2_000_000;

interface Ended {
  code: number | null;
  signal: NodeJS.Signals | null;
}

export interface TestProcess {
  pid: number;
  /** Everything it has printed so far, both streams. */
  output(): string;
  ended: Promise<Ended>;
  /** Undefined while it lives. */
  end(): Ended | undefined;
  send(signal: NodeJS.Signals): void;
  /** Sends the signal and waits until it is gone. */
  stop(signal?: NodeJS.Signals): Promise<Ended>;
}

export interface StartOptions {
  cwd: string;
  env?: Record<string, string>;
}

const living = new Set<ChildProcess>();
// The last resort, for a test that was interrupted.
process.on('exit', () => {
  for (const child of living) child.kill('SIGKILL');
});

export function startProcess(command: string[], options: StartOptions): TestProcess {
  const child = spawn(command[0] ?? '', command.slice(1), {
    cwd: options.cwd,
    env: cleanEnvironment(options.env ?? {}),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  living.add(child);
  let output = '';
  let how: Ended | undefined;
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8');
    stream.on('data', (text: string) => (output = (output + text).slice(-KEPT_OUTPUT)));
  }
  const ended = new Promise<Ended>((resolve, reject) => {
    child.on('error', reject);
    child.on('exit', (code, signal) => {
      living.delete(child);
      how = { code, signal };
      resolve(how);
    });
  });
  const send = (signal: NodeJS.Signals): void => void child.kill(signal);
  return {
    pid: child.pid ?? 0,
    output: () => output,
    ended,
    end: () => how,
    send,
    async stop(signal = 'SIGTERM') {
      if (how) return how;
      send(signal);
      const late = new AbortController();
      const limit = delay(END_LIMIT_MS, undefined, { signal: late.signal }).then(() => {
        send('SIGKILL');
        throw new Error(`process ${child.pid} did not end after ${signal}:\n${tail(output)}`);
      });
      limit.catch(() => undefined);
      const first = await Promise.race([ended, limit]);
      late.abort();
      return first;
    },
  };
}

/** Settings of the person who runs the tests must not reach what is tested. */
function cleanEnvironment(extra: Record<string, string>): Record<string, string> {
  const env: Record<string, string> = {};
  for (const name of ['PATH', 'LANG', 'TMPDIR', 'NODE_COMPILE_CACHE']) {
    const value = process.env[name];
    if (value !== undefined) env[name] = value;
  }
  return { ...env, ...extra };
}

export function tail(text: string, lines = 40): string {
  return text.split('\n').slice(-lines).join('\n');
}

export interface Found {
  pid: number;
  command: string;
}

/** Every process that belongs to a folder: works in it, or names it in arguments or environment. */
export function processesOf(folders: string[]): Found[] {
  const found: Found[] = [];
  const isOurs = (mark: string): boolean => folders.some((folder) => mark.includes(folder));
  for (const name of readdirSync('/proc')) {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid === process.pid) continue;
    const command = readText(`/proc/${pid}/cmdline`).replaceAll('\0', ' ').trim();
    const marks = [command, readText(`/proc/${pid}/environ`), readLink(`/proc/${pid}/cwd`)];
    if (isZombie(pid) || !marks.some(isOurs)) continue;
    found.push({ pid, command });
  }
  return found;
}

export function isAlive(pid: number): boolean {
  return readText(`/proc/${pid}/stat`) !== '' && !isZombie(pid);
}

/** Ended, but its parent has not asked how: holds nothing any more. */
function isZombie(pid: number): boolean {
  const stat = readText(`/proc/${pid}/stat`);
  return stat.slice(stat.lastIndexOf(')') + 2).startsWith('Z');
}

export function killPid(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    // Gone already, which is what was wanted.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'latin1');
  } catch {
    // It ended between the listing and the read.
    return '';
  }
}

function readLink(file: string): string {
  try {
    return readlinkSync(file);
  } catch {
    // The same.
    return '';
  }
}
