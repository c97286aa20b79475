/** One attempt's output files as the spool sees them: how far they are sent, when to look again. */
import { closeSync, existsSync, fstatSync, readFileSync, readSync, watch } from 'node:fs';
import type { FSWatcher } from 'node:fs';
import { rename, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { openPlainFile } from '../plainFile.ts';
import { AttemptMasks } from '../secrets/attemptMasks.ts';
import type { LogStream } from '../../protocol/agent.ts';
import { spoolKey, type SpoolAttempt } from '../spool.ts';

const NEWLINE = 0x0a;

/**
 * Reads one output file forwards. Synchronously: what was just written lies in memory, and waiting
 * for a thread of the pool takes ten times as long as reading it.
 */
export class SpoolStream {
  readonly name: LogStream;
  readonly path: string;
  /** Everything below is on the controller's disk. */
  acked = 0;
  /** Where the next read starts: `acked` plus what is on its way. */
  readAt = 0;
  /** The controller did not take the last bytes: leave it alone until then. */
  pausedUntilMs = 0;
  #fd: number | undefined;

  constructor(name: LogStream, path: string) {
    this.name = name;
    this.path = path;
  }

  /** Bytes that are there and were not yet read; 0 while the file does not exist. */
  waitingBytes(): number {
    this.#fd ??= openPlainFile(this.path);
    if (this.#fd === undefined) return 0;
    return Math.max(0, fstatSync(this.#fd).size - this.readAt);
  }

  /** Bytes read into `target`; 0 at the end, and while the file does not exist. */
  read(target: Buffer): number {
    if (this.waitingBytes() === 0 || this.#fd === undefined) return 0;
    return readSync(this.#fd, target, 0, target.length, this.readAt);
  }

  close(): void {
    const fd = this.#fd;
    this.#fd = undefined;
    if (fd !== undefined) closeSync(fd);
  }
}

/**
 * growing: looked at with every flush, its files open. watched: nothing came for a while; the
 * kernel tells when that changes, and it costs neither time nor open files. drained: all is sent.
 */
export type SpoolPhase = 'growing' | 'watched' | 'drained';

export class SpooledAttempt {
  readonly uid: string;
  readonly key: string;
  /** Half a line means nothing: only whole ones are sent. */
  readonly wholeLines: boolean;
  readonly streams: readonly [SpoolStream, SpoolStream];
  readonly #masks: AttemptMasks;
  ended: boolean;
  phase: SpoolPhase = 'growing';
  grewAtMs: number;
  /** When to look at it next although nobody said that it grew. */
  dueAtMs = 0;
  /** Its share of the rate is used up until then. */
  allowedAtMs = 0;
  readonly #offsetsPath: string;
  #watchers: FSWatcher[] = [];
  #remembered = '';

  constructor(found: SpoolAttempt, nowMs: number) {
    this.uid = found.uid;
    this.key = spoolKey(found);
    this.wholeLines = found.metrics ?? false;
    const [first, second] = found.metrics
      ? (['metrics', 'system'] as const)
      : (['stdout', 'stderr'] as const);
    this.ended = found.ended;
    this.streams = [
      new SpoolStream(first, found.stdoutPath),
      new SpoolStream(second, found.stderrPath),
    ];
    this.#masks = new AttemptMasks(dirname(found.offsetsPath));
    this.#offsetsPath = found.offsetsPath;
    this.grewAtMs = nowMs;
  }

  /** What its output must not show. To be asked after that was read: see AttemptMasks. */
  masks(): readonly Buffer[] {
    return this.#masks.now();
  }

  /** Offsets that cannot be read only mean that output is sent once more. */
  recall(): void {
    const [stdout, stderr] = this.streams;
    try {
      const text = readFileSync(this.#offsetsPath, 'utf8');
      const [first, second] = text.split(' ').map(Number);
      if (Number.isSafeInteger(first)) stdout.acked = stdout.readAt = first ?? 0;
      if (Number.isSafeInteger(second)) stderr.acked = stderr.readAt = second ?? 0;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
  }

  async remember(): Promise<void> {
    const text = this.streams.map((stream) => stream.acked).join(' ');
    if (text === this.#remembered) return;
    this.#remembered = text;
    await writeFile(`${this.#offsetsPath}.tmp`, text);
    await rename(`${this.#offsetsPath}.tmp`, this.#offsetsPath);
  }

  /** False where the kernel cannot tell that it grew: no file yet, or too many watches. */
  get isWatched(): boolean {
    return this.#watchers.length > 0;
  }

  watchFiles(grew: () => void): void {
    this.phase = 'watched';
    this.closeFiles();
    try {
      for (const { path } of this.streams) {
        // Of metrics one of the files may never come; it is looked for now and then.
        if (this.wholeLines && !existsSync(path)) continue;
        const watcher = watch(path, { persistent: false }, grew);
        watcher.on('error', grew);
        this.#watchers.push(watcher);
      }
    } catch {
      // Being told is a convenience: without it the files are looked at more often.
      this.unwatchFiles();
    }
  }

  unwatchFiles(): void {
    for (const watcher of this.#watchers.splice(0)) watcher.close();
  }

  closeFiles(): void {
    for (const stream of this.streams) stream.close();
  }
}

/**
 * How much of what was read to send: whole lines where there are any, else whole characters, or
 * nothing where these do not help. The rest goes with the next flush; of an ended attempt
 * everything goes.
 */
export function sendableLength(bytes: Buffer, isEnd: boolean, wholeLines = false): number {
  if (isEnd) return bytes.length;
  const newline = bytes.lastIndexOf(NEWLINE);
  if (newline !== -1) return newline + 1;
  if (wholeLines) return 0;
  const lowest = Math.max(0, bytes.length - 3);
  for (let at = bytes.length - 1; at >= lowest; at--) {
    const byte = bytes[at] ?? 0;
    if ((byte & 0xc0) === 0x80) continue;
    const wanted = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return bytes.length - at < wanted ? at : bytes.length;
  }
  return bytes.length;
}
