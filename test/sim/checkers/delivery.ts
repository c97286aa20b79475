/**
 * L5: whoever follows a log or the events of a job gets each once, in order, without a gap, also
 * over lost answers and restarts; and a follow ends when all has come, not before.
 */
import type { LogPage } from '../../../src/protocol/coordinator.ts';
import type { EventView } from '../../../src/protocol/jobs.ts';
import type { LogDisk } from '../logs.ts';
import type { Commit, Mirror } from './mirror.ts';
import { must } from './violation.ts';

/** Where somebody is in what he follows. */
export interface Position {
  job: string;
  at: number;
}

export class DeliveryChecker {
  readonly #mirror: Mirror;
  readonly #disk: LogDisk;
  readonly #events = new Map<string, number[]>();
  /** Machines that lost their disk: what they announced may never come. */
  readonly #wiped = new Set<string>();

  /** Jobs whose tail a controller may have given up: its clock has leapt since their end. */
  readonly #excused = new Set<string>();

  constructor(mirror: Mirror, disk: LogDisk) {
    this.#mirror = mirror;
    this.#disk = disk;
  }

  committed({ events }: Commit): void {
    for (const { job, seq } of events) {
      if (job === null) continue;
      const known = this.#events.get(job);
      if (known) known.push(seq);
      else this.#events.set(job, [seq]);
    }
  }

  wiped(machine: string): void {
    this.#wiped.add(machine);
  }

  /** How long ago a job ended is told by the wall clock; its end may not be committed yet. */
  leapt(): void {
    for (const id of this.#mirror.jobs.keys()) this.#excused.add(id);
  }

  events(follower: Position, page: EventView[]): void {
    const all = this.#events.get(follower.job) ?? [];
    for (const { seq } of page) {
      const next = all[follower.at++];
      must(seq === next, 'L5', () => `event ${seq} of ${follower.job} came, ${next} is next`);
    }
  }

  eventsEnded({ job, at }: Position): void {
    const { length } = this.#events.get(job) ?? [];
    must(at === length, 'L5', () => `${at} of ${length} events of ${job} came`);
  }

  logs(follower: Position, { records }: LogPage): void {
    const all = this.#disk.records(follower.job);
    for (const { seq, text } of records) {
      const next = all[follower.at++];
      const right = seq === next?.seq && text === next.text;
      must(right, 'L5', () => `record ${seq} of ${follower.job} came, ${next?.seq} is next`);
    }
  }

  /** Nothing will come after this one, it was said. */
  logComplete(job: string, last: number): void {
    const { length } = this.#disk.records(job);
    must(last === length, 'L5', () => `the log of ${job} ended at ${last} of ${length}`);
    if (this.#excused.has(job)) return;
    for (const row of this.#mirror.attempts.values()) {
      if (row.job !== job) continue;
      must(row.state === 'ENDED', 'L5', () => `the log of ${job} ended before ${row.uid}`);
      const worker = this.#mirror.workers.get(row.worker);
      // A machine that is gone brings nothing any more.
      if (!worker || worker.ended_at_ms !== null || this.#wiped.has(worker.machine)) continue;
      const [stored, said] = [this.#disk.stored(row.uid), row.stdout_bytes ?? 0];
      must(
        stored >= said,
        'L5',
        () => `the log of ${job} ended, ${row.uid} has ${stored} of ${said}`,
      );
    }
  }
}
