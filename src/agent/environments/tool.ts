/** Runs programs that fetch and build: with progress, an end at any time, and their last words. */
import { spawn } from 'node:child_process';
import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { sleep, type Clock } from '../../lib/clock.ts';

/** What is kept of a tool's output to say why it failed, and of its answer. */
const LAST_LINES = 6;
const LINE_CHARACTERS = 300;
const ANSWER_BYTES = 4 * 1024 * 1024;
/** No image and no environment takes longer. */
const LIMIT_MS = 2 * 3_600_000;
/** A tool that was told to stop gets so long to tidy up. */
const STOP_MS = 2000;

export interface ToolCall {
  program: string;
  args: readonly string[];
  env: Record<string, string>;
  cwd?: string;
  clock: Clock;
  signal?: AbortSignal | undefined;
  limitMs?: number;
  /** Each line it writes, of either stream. */
  onLine?: (line: string) => void;
}

export interface ToolEnd {
  /** Null: a signal ended it. */
  code: number | null;
  stdout: string;
  lastLines: string[];
}

/** Rejects when it cannot be started, or was stopped; a failure of its own is its exit code. */
export async function runTool(call: ToolCall): Promise<ToolEnd> {
  const { program, args, env, cwd, clock, signal, limitMs = LIMIT_MS, onLine } = call;
  signal?.throwIfAborted();
  const child = spawn(program, [...args], {
    env,
    ...(cwd === undefined ? {} : { cwd }),
    // A group of its own, so that what it starts is stopped with it.
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const lastLines: string[] = [];
  const answer: Buffer[] = [];
  let answerBytes = 0;
  child.stdout.on('data', (chunk: Buffer) => {
    answerBytes += chunk.length;
    if (answerBytes <= ANSWER_BYTES) answer.push(chunk);
  });
  for (const stream of [child.stdout, child.stderr]) {
    splitLines(stream, (line) => {
      lastLines.push(line);
      if (lastLines.length > LAST_LINES) lastLines.shift();
      onLine?.(line);
    });
  }
  const closed = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  let late = false;
  const stop = (): void => void stopGroup(child.pid, clock);
  const timer = clock.setTimer(limitMs, () => {
    late = true;
    stop();
  });
  signal?.addEventListener('abort', stop, { once: true });
  try {
    const code = await closed;
    signal?.throwIfAborted();
    if (late) lastLines.push(`it took longer than ${Math.round(limitMs / 1000)} s`);
    return { code: late ? null : code, stdout: Buffer.concat(answer).toString(), lastLines };
  } finally {
    timer.cancel();
    signal?.removeEventListener('abort', stop);
  }
}

function splitLines(stream: NodeJS.ReadableStream, tell: (line: string) => void): void {
  let rest = '';
  const say = (line: string): void => {
    const text = line.trim();
    if (text !== '') tell(text.slice(0, LINE_CHARACTERS));
  };
  stream.on('data', (chunk: Buffer) => {
    const lines = (rest + chunk.toString()).split(/[\r\n]+/);
    rest = lines.pop()!.slice(-LINE_CHARACTERS);
    lines.forEach(say);
  });
  stream.on('end', () => say(rest));
}

async function stopGroup(pid: number | undefined, clock: Clock): Promise<void> {
  if (pid === undefined) return;
  signalTools(pid, 'SIGTERM');
  await sleep(clock, STOP_MS);
  signalTools(pid, 'SIGKILL');
}

function signalTools(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** For texts that others will read: a tool may repeat what it was given. */
export function withoutSecrets(text: string, secrets: Readonly<Record<string, string>>): string {
  let clean = text;
  for (const value of Object.values(secrets)) {
    // Also its parts: a password within user:password.
    for (const part of [value, ...value.split(':')]) {
      if (part.trim().length >= 4) clean = clean.replaceAll(part, '***');
    }
  }
  return clean;
}

/** Tells a person what goes on, not more often than they can read. */
export function sayNowAndThen(
  clock: Clock,
  say: (progress: string) => void,
  everyMs = 1000,
): (progress: string) => void {
  let saidAt = Number.NEGATIVE_INFINITY;
  return (progress) => {
    const now = clock.bootMs();
    if (now - saidAt < everyMs) return;
    saidAt = now;
    say(progress);
  };
}

/** Where a program is; undefined: nowhere on this path. */
export function findProgram(name: string, path: string): string | undefined {
  for (const folder of path.split(delimiter)) {
    const file = join(folder, name);
    try {
      accessSync(file, constants.X_OK);
      if (folder !== '' && statSync(file).isFile()) return file;
    } catch {
      // Not in this one.
    }
  }
  return undefined;
}
