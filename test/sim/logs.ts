/**
 * The logs of the simulated cluster: a store that keeps the contract and outlives controllers, and
 * on each machine a spool that sends what tasks wrote until somebody has it.
 */
import type { LogStore, OwnedChunk } from '../../src/control/logs.ts';
import type { LogAck, LogChunk } from '../../src/protocol/agent.ts';
import type { LogRecordView } from '../../src/protocol/jobs.ts';
import type { Process, World } from './world.ts';

const MOST_APPEND_MS = 5;
const SEND_EVERY_MS = 1500;
const MOST_CHUNK = 40;

/** What is on the controller's disk. */
export class LogDisk {
  readonly #jobs = new Map<string, (LogRecordView & { uid: string })[]>();
  readonly #stored = new Map<string, number>();
  readonly #waiting = new Set<() => void>();

  records(job: string): (LogRecordView & { uid: string })[] {
    return this.#jobs.get(job) ?? [];
  }

  stored(uid: string): number {
    return this.#stored.get(uid) ?? 0;
  }

  /** The store as one controller process has it. */
  open(world: World, process: Process): LogStore {
    const later = (run: () => void): void => {
      world.after(world.between(0, MOST_APPEND_MS), () => world.inside(process, run));
    };
    return {
      append: (chunks) =>
        new Promise((resolve) => {
          later(() => {
            const acks = chunks.map((chunk) => this.#append(chunk));
            // On disk, but nobody knows yet.
            later(() => resolve(acks));
            for (const wake of [...this.#waiting]) wake();
          });
        }),
      read: async (job, { after, task }) => {
        const records = this.records(job).filter(
          ({ seq, index }) => seq > after && (task === undefined || task === index),
        );
        return {
          records: records.map(({ uid: _uid, ...record }) => record),
          next: records.at(-1)?.seq ?? after,
        };
      },
      wait: (job, after, waitMs) => this.#wait(world, process, job, after, waitMs),
      offsets: async (job) => {
        const found: Record<string, { stdout: number; stderr: number }> = {};
        for (const { uid } of this.records(job)) {
          found[uid] = { stdout: this.stored(uid), stderr: 0 };
        }
        return found;
      },
      close: async () => undefined,
    };
  }

  #append({ uid, job, bytes, offset, ...chunk }: OwnedChunk): LogAck {
    const had = this.stored(uid);
    const fresh = bytes.subarray(Math.max(0, had - offset));
    // A gap is refused: what lies before it must come first.
    if (offset <= had && fresh.length > 0) {
      const records = this.#jobs.get(job) ?? [];
      this.#jobs.set(job, records);
      const { task, index, attempt, stream, atMs } = chunk;
      const text = Buffer.from(fresh).toString();
      const seq = records.length + 1;
      records.push({ uid, seq, task, index, attempt, stream, atMs, offset: had, text });
      this.#stored.set(uid, had + fresh.length);
    }
    return { uid, stream: chunk.stream, offset: Math.min(this.stored(uid), offset + bytes.length) };
  }

  #wait(
    world: World,
    process: Process,
    job: string,
    after: number,
    waitMs: number,
  ): Promise<boolean> {
    return new Promise((resolve) => {
      const look = (): void => {
        if (this.records(job).length > after) done(true);
      };
      const done = (news: boolean): void => {
        this.#waiting.delete(look);
        timer.cancel();
        world.after(0, () => world.inside(process, () => resolve(news)));
      };
      const timer = world.after(waitMs, () => done(false));
      this.#waiting.add(look);
      look();
    });
  }
}

/** What the tasks of a machine wrote; lost only with its disk. */
export class Spool {
  readonly #world: World;
  readonly #written = new Map<string, string>();
  readonly #acknowledged = new Map<string, number>();

  constructor(world: World) {
    this.#world = world;
  }

  write(uid: string, text: string): void {
    this.#written.set(uid, (this.#written.get(uid) ?? '') + text);
  }

  bytesOf(uid: string): number {
    return this.#written.get(uid)?.length ?? 0;
  }

  wipe(): void {
    this.#written.clear();
    this.#acknowledged.clear();
  }

  /** Sends what nobody has yet, again and again, as long as the agent lives. */
  start(agent: Process, send: (chunks: LogChunk[]) => Promise<LogAck[]>): void {
    const turn = (): void => {
      this.#world.after(SEND_EVERY_MS, () => this.#world.inside(agent, () => void step()));
    };
    const step = async (): Promise<void> => {
      const chunks = this.#chunks();
      try {
        for (const { uid, offset } of chunks.length > 0 ? await send(chunks) : []) {
          this.#acknowledged.set(uid, Math.max(this.#acknowledged.get(uid) ?? 0, offset));
          if (offset >= this.bytesOf(uid)) this.#forget(uid);
        }
      } catch {
        // Not heard, or heard and not answered: it is sent again either way.
      }
      turn();
    };
    turn();
  }

  /** Nothing is kept that everybody has, unless more may come. */
  #forget(uid: string): void {
    if (!this.#ended.delete(uid)) return;
    this.#written.delete(uid);
    this.#acknowledged.delete(uid);
  }

  readonly #ended = new Set<string>();

  ended(uid: string): void {
    if (this.#written.has(uid)) this.#ended.add(uid);
  }

  #chunks(): LogChunk[] {
    const chunks: LogChunk[] = [];
    for (const [uid, text] of this.#written) {
      const offset = this.#acknowledged.get(uid) ?? 0;
      if (offset >= text.length) continue;
      const part = text.slice(offset, offset + this.#world.between(1, MOST_CHUNK));
      const bytes = new TextEncoder().encode(part);
      chunks.push({ uid, stream: 'stdout', offset, atMs: this.#world.nowMs, bytes });
    }
    return chunks;
  }
}
