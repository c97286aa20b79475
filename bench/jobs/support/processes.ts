/**
 * Child processes of the benchmark: started, watched for a line, measured and stopped by their
 * id.
 */
import { spawn, type ChildProcess, type StdioOptions } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { performance } from 'node:perf_hooks';

const STOP_LIMIT_MS = 10_000;
const READY_LIMIT_MS = 60_000;
/** The kernel's USER_HZ, fixed at 100 on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100;
const PAGE_BYTES = 4096;

export interface Child {
  pid: number;
  /**
   * Resolves with the first line of stdout that holds `text`; rejects when the process ends
   * first.
   */
  line(text: string): Promise<string>;
  /** Writes one line to the process's stdin. */
  say(text: string): void;
  /** Resolves with how it ended, and never before. */
  exited: Promise<string>;
  stop(signal?: NodeJS.Signals): Promise<void>;
}

export interface StartOptions {
  cwd?: string;
  env?: Record<string, string>;
  uid?: number;
  gid?: number;
}

const alive = new Set<ChildProcess>();
// The last resort: nothing that was started here outlives the benchmark.
process.on('exit', () => {
  for (const child of alive) child.kill('SIGKILL');
});

export function start(command: string, args: string[], options: StartOptions = {}): Child {
  const stdio: StdioOptions = ['pipe', 'pipe', 'pipe'];
  const { env, ...rest } = options;
  const child = spawn(command, args, { ...rest, stdio, env: { ...process.env, ...env } });
  alive.add(child);
  const lines: string[] = [];
  const errors: string[] = [];
  const waiting = new Set<() => void>();
  const exited = Promise.withResolvers<string>();
  let ended: string | undefined;
  const end = (how: string): void => {
    ended ??= how;
    alive.delete(child);
    for (const wake of waiting) wake();
    exited.resolve(`${ended}: ${errors.slice(-5).join(' | ')}`);
  };
  const keep = (into: string[]) => (line: string) => {
    into.push(line);
    // Servers may talk for the whole run; only the latest is of use.
    if (into.length > 200) into.shift();
    for (const wake of waiting) wake();
  };
  if (child.stdout) createInterface({ input: child.stdout }).on('line', keep(lines));
  if (child.stderr) createInterface({ input: child.stderr }).on('line', keep(errors));
  child.on('error', (error) => end(error.message));
  child.on('exit', (code, signal) => end(signal ?? `exit code ${code}`));

  const line = (text: string): Promise<string> =>
    new Promise((resolve, reject) => {
      const settle = (): void => {
        const found = lines.find((l) => l.includes(text));
        if (found === undefined && ended === undefined) return;
        finish();
        if (found !== undefined) resolve(found);
        else reject(new Error(`${command} ended (${ended}): ${errors.slice(-5).join(' | ')}`));
      };
      const finish = (): void => {
        waiting.delete(settle);
        clearTimeout(timer);
      };
      const timer = setTimeout(() => {
        finish();
        reject(new Error(`${command} did not print "${text}": ${errors.slice(-5).join(' | ')}`));
      }, READY_LIMIT_MS);
      waiting.add(settle);
      settle();
    });

  return {
    pid: child.pid ?? 0,
    line,
    exited: exited.promise,
    say: (text) => void child.stdin?.write(`${text}\n`),
    stop: (signal = 'SIGTERM') => (ended === undefined ? stop(child, signal) : Promise.resolve()),
  };
}

/** Runs a TypeScript file of this folder in its own process. */
export function startScript(file: URL, args: string[], options: StartOptions = {}): Child {
  return start(process.execPath, [file.pathname, ...args], options);
}

async function stop(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  child.kill(signal);
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_LIMIT_MS);
  await gone;
  clearTimeout(timer);
}

export interface Usage {
  atMs: number;
  cpuMs: number;
  residentBytes: number;
}

/** What a process and everything below it uses now, by /proc. */
export function treeUsage(root: number): Usage {
  const stats = readStats();
  const usage: Usage = { atMs: performance.now(), cpuMs: 0, residentBytes: 0 };
  for (const pid of below(root, stats)) {
    usage.cpuMs += stats.get(pid)?.cpuMs ?? 0;
    usage.residentBytes += stats.get(pid)?.residentBytes ?? 0;
  }
  return usage;
}

/** Ends a process that was started here, and everything below it, without warning. */
export function killTree(root: number): void {
  for (const pid of below(root, readStats())) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch (error) {
      // Gone already, which is what was wanted.
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }
}

interface Stat {
  parent: number;
  cpuMs: number;
  residentBytes: number;
}

function below(root: number, stats: Map<number, Stat>): Set<number> {
  const tree = new Set([root]);
  // A child's id may be lower than its parent's after the ids wrap, hence the repeated pass.
  for (let grew = true; grew;) {
    grew = false;
    for (const [pid, stat] of stats) {
      if (!tree.has(stat.parent) || tree.has(pid)) continue;
      tree.add(pid);
      grew = true;
    }
  }
  return tree;
}

function readStats(): Map<number, Stat> {
  const stats = new Map<number, Stat>();
  for (const name of readdirSync('/proc')) {
    const pid = Number(name);
    const stat = Number.isInteger(pid) ? readStat(pid) : undefined;
    if (stat) stats.set(pid, stat);
  }
  return stats;
}

function readStat(pid: number): Stat | undefined {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch {
    // It ended between the listing and the read.
    return undefined;
  }
  // The command's name may hold spaces and brackets; fields count from behind the last bracket.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const ticks = [11, 12, 13, 14].reduce((sum, i) => sum + Number(fields[i]), 0);
  return {
    parent: Number(fields[1]),
    cpuMs: (ticks / TICKS_PER_SECOND) * 1000,
    residentBytes: Number(fields[21]) * PAGE_BYTES,
  };
}
