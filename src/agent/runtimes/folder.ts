/**
 * The agent's data folder as the process runtime lays it out, and the small files of an attempt.
 */
import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  openSync,
  closeSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { DroverError } from '../../lib/errors.ts';
import type { AttemptOrder, Observation, StopOrder } from '../../protocol/agent.ts';
import type { Kept } from './around.ts';
import type { Held } from './hold.ts';
import type { Task } from './task.ts';

export interface DataFolder {
  attempts: string;
  /** One file per attempt that may still have processes: when the watchdog kills it. */
  leases: string;
  spares: string;
  /** What is being prepared for attempts that have not started. */
  stages: string;
  shim: string;
  watchdog: string;
  watchdogPid: string;
  agentPid: string;
  /** FIFO by which shims say that something happened. */
  wake: string;
}

export function openDataFolder(dataDir: string): DataFolder {
  const folder: DataFolder = {
    attempts: join(dataDir, 'attempts'),
    leases: join(dataDir, 'leases'),
    spares: join(dataDir, 'spares'),
    stages: join(dataDir, 'stages'),
    shim: join(dataDir, 'shim.sh'),
    watchdog: join(dataDir, 'watchdog.sh'),
    watchdogPid: join(dataDir, 'watchdog.pid'),
    agentPid: join(dataDir, 'agent.pid'),
    wake: join(dataDir, 'wake'),
  };
  try {
    // What an earlier agent prepared and did not start is of no use to this one.
    rmSync(folder.stages, { recursive: true, force: true });
    for (const path of [folder.attempts, folder.leases, folder.spares, folder.stages]) {
      mkdirSync(path, { recursive: true, mode: 0o700 });
      accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK);
    }
  } catch (error) {
    const why = (error as Error).message;
    throw new DroverError('UNAVAILABLE', `cannot use the data folder ${dataDir}: ${why}`, {
      hint: 'Give it to this user, or choose another with --data.',
      cause: error,
    });
  }
  return folder;
}

/** What the shim wrote down about the processes of an attempt. */
export interface Processes {
  task: number;
  /** Start time in ticks since boot: with the pid it names a process for ever. */
  taskBegan: string;
  shim: number;
  shimBegan: string;
  bootId: string;
}

export interface StopRequest {
  cause: StopOrder['cause'];
  killAtBootMs: number;
  /** True once TERM or KILL was really sent: only then is the end the stop's doing. */
  signalled: boolean;
}

/** What a prepared command runs with. */
export interface Prepared {
  task: Task;
  facts: Record<string, string>;
}

export interface EndRecord {
  observation: Observation;
  attemptLeaseMs: number;
  graceMs: number;
}

export interface Exit {
  code: number;
  /** The shell said that a signal ended it. */
  killed: boolean;
}

export function attemptDirectory(folder: DataFolder, uid: string): string {
  if (isSafeUid(uid)) return join(folder.attempts, uid);
  throw new DroverError('INVALID_ARGUMENT', `not an attempt's uid: ${JSON.stringify(uid)}`);
}

/** A uid becomes a folder name and a word in a script. */
function isSafeUid(uid: string): boolean {
  return /^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$/.test(uid);
}

/** Replaces a file whole: readers see the old content or the new. */
export function replaceFile(path: string, content: string): void {
  const temporary = `${path}.new`;
  writeFileSync(temporary, content, { mode: 0o600 });
  renameSync(temporary, path);
}

/** Undefined when there is no such file; any other failure is thrown. */
export function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}

export function errorCode(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? '';
}

function readJson(path: string): unknown {
  const text = readIfThere(path);
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    // Cut short by a power failure; whoever asks treats it as never written.
    return undefined;
  }
}

export const readOrder = (directory: string): AttemptOrder | undefined =>
  readJson(join(directory, 'order.json')) as AttemptOrder | undefined;
/** Undefined for those that needed no preparation. */
export const readPrepared = (directory: string): Prepared | undefined =>
  readJson(join(directory, 'prepared.json')) as Prepared | undefined;
export const readKept = (directory: string): Kept | undefined =>
  readJson(join(directory, 'kept.json')) as Kept | undefined;
export const readHeld = (directory: string): Held | undefined =>
  readJson(join(directory, 'held.json')) as Held | undefined;
export const readStop = (directory: string): StopRequest | undefined =>
  readJson(join(directory, 'stop.json')) as StopRequest | undefined;
export const readEnd = (directory: string): EndRecord | undefined =>
  readJson(join(directory, 'ended.json')) as EndRecord | undefined;

/**
 * `none`: somebody decided that it shall not run. Undefined: not decided, or still being written.
 */
export function readProcesses(directory: string): Processes | 'none' | undefined {
  const text = readIfThere(join(directory, 'pid'));
  if (!text?.endsWith('\n')) return undefined;
  const [task, taskBegan, shim, shimBegan, bootId] = text.trim().split(' ');
  if (!task || !taskBegan || !shim || !shimBegan || !bootId) return 'none';
  return { task: Number(task), taskBegan, shim: Number(shim), shimBegan, bootId };
}

/** Decides, against the shim, that the attempt shall not run. False: the shim was first. */
export function forbidStart(directory: string): boolean {
  try {
    const descriptor = openSync(join(directory, 'pid'), 'wx', 0o600);
    writeSync(descriptor, 'none\n');
    closeSync(descriptor);
    return true;
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return false;
    throw error;
  }
}

/** `unfinished`: take also the file before its rename, when the shim is known to be gone. */
export function readExit(directory: string, unfinished: boolean): Exit | undefined {
  const text =
    readIfThere(join(directory, 'exit')) ??
    (unfinished ? readIfThere(join(directory, 'exit.tmp')) : undefined);
  const match = /^([^]*?)^code (\d+)$/m.exec(text ?? '');
  if (!match) return undefined;
  return { code: Number(match[2]), killed: match[1]!.trim() !== '' };
}

export function readCgroupDirectories(directory: string): string[] {
  return (readIfThere(join(directory, 'cgroups')) ?? '').split('\n').filter(Boolean);
}

export function outputBytes(path: string): number {
  return existsSync(path) ? statSync(path).size : 0;
}

export function listAttempts(folder: DataFolder): string[] {
  return readdirSync(folder.attempts).filter(isSafeUid);
}

/** Width of a deadline in a lease file: fixed, so that it can be overwritten where it stands. */
const LEASE_DIGITS = 15;

export function writeLease(folder: DataFolder, uid: string, killAtBootMs: number): void {
  const path = join(folder.leases, uid);
  const text = `${String(Math.max(0, Math.floor(killAtBootMs))).padStart(LEASE_DIGITS, '0')}\n`;
  const temporary = join(folder.leases, `.${uid}`);
  try {
    writeFileSync(temporary, text, { mode: 0o600 });
    renameSync(temporary, path);
  } catch (error) {
    // A full disk must not end healthy work: the old file needs no new block. A reader that meets a
    // half-written number finds it whole when it looks again, which the watchdog does before it
    // kills.
    if (errorCode(error) !== 'ENOSPC' || !existsSync(path)) throw error;
    rmSync(temporary, { force: true });
    const descriptor = openSync(path, 'r+');
    writeSync(descriptor, text, 0);
    closeSync(descriptor);
  }
}

export function removeLease(folder: DataFolder, uid: string): void {
  rmSync(join(folder.leases, uid), { force: true });
}
