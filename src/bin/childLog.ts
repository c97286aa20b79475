/**
 * DIR/drover.log: what the children of `drover up` write about themselves, one JSON line each.
 * Warnings and errors are told on the terminal too, in a person's words. The children write to the
 * file themselves, so that nothing they say waits for this process or is lost with it.
 */
import { closeSync, copyFileSync, fstatSync, ftruncateSync, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { createLineReader } from './lines.ts';

/** How soon a warning is seen on the terminal. */
const LOOK_MS = 200;
const READ_BYTES = 64 * 1024;
/** At this size the file is moved aside as drover.log.1, in place of an older one. */
const FILE_LIMIT_BYTES = 64 * 1024 * 1024;
/** The same words of the same part are told once in this time; the file has them all. */
const REPEAT_MS = 30_000;
const WARN = 40;
const ERROR = 50;

export interface ChildLog {
  path: string;
  /** For a child's stdout and stderr. */
  fd: number;
  /** Lines of this process are told; another `drover up` may write to the same file. */
  follow(pid: number): void;
  /** Tells what was written until now. */
  catchUp(): void;
  close(): void;
}

interface Entry {
  level: number;
  pid: number;
  part: string;
  msg: string;
  [field: string]: unknown;
}

export function openChildLog(dir: string, tell: (text: string) => void): ChildLog {
  const path = join(dir, 'drover.log');
  const fd = openSync(path, 'a+', 0o600);
  const pids = new Set<number>();
  const toldAt = new Map<string, number>();
  const buffer = Buffer.alloc(READ_BYTES);
  let position = fstatSync(fd).size;

  const lines = createLineReader((line) => {
    const entry = parse(line);
    if (!entry || entry.level < WARN || !pids.has(entry.pid)) return;
    const text = describe(entry);
    const key = `${entry.part} ${entry.msg}`;
    const now = performance.now();
    if (now - (toldAt.get(key) ?? -Infinity) < REPEAT_MS) return;
    toldAt.set(key, now);
    tell(text);
  });
  const catchUp = (): void => {
    for (;;) {
      const count = readSync(fd, buffer, 0, READ_BYTES, position);
      if (count === 0) break;
      position += count;
      lines.push(buffer.subarray(0, count));
    }
    if (position > FILE_LIMIT_BYTES) {
      // A line written between the two calls is lost to the file; the terminal may have it.
      copyFileSync(path, `${path}.1`);
      ftruncateSync(fd, 0);
      position = 0;
    }
  };
  const timer = setInterval(catchUp, LOOK_MS);
  return {
    path,
    fd,
    follow: (pid) => void pids.add(pid),
    catchUp,
    close() {
      clearInterval(timer);
      catchUp();
      closeSync(fd);
    },
  };
}

/** Lines that are not ours (a crash of Node itself) stay in the file. */
function parse(line: string): Entry | null {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null && 'level' in value
      ? (value as Entry)
      : null;
  } catch {
    return null;
  }
}

function describe({ level, pid, part, msg, code, try: hint, ...rest }: Entry): string {
  const word = level >= ERROR ? 'error' : 'warning';
  // A refusal with a code reads as it would without `drover up` around it.
  if (typeof code === 'string') {
    return `${word} ${code}: ${msg}${typeof hint === 'string' ? `\ntry: ${hint}` : ''}`;
  }
  const facts = Object.entries(rest).flatMap(([name, value]) => {
    const text = name === 'time' ? '' : textOf(value);
    return text === '' ? [] : [`${name}: ${text}`];
  });
  const more = facts.length > 0 ? ` (${facts.join(', ')})` : '';
  return `${word} from the ${part} (pid ${pid}): ${msg}${more}`;
}

function textOf(value: unknown): string {
  // Only what it is: where it was thrown is in the file.
  if (typeof value === 'string') return value.split('\n', 1)[0] ?? '';
  if (value instanceof Object && 'message' in value) return textOf(value.message);
  return value === null || value === undefined ? '' : JSON.stringify(value);
}
