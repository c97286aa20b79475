/**
 * I2: what was answered is on disk, then and after every crash. I3: a key names the same jobs for
 * ever.
 */
import type { SyncReply } from '../../../src/protocol/agent.ts';
import type { Disk } from './disk.ts';
import type { Commit, Mirror } from './mirror.ts';
import { must, Violation } from './violation.ts';

export class SubmissionChecker {
  readonly #mirror: Mirror;
  readonly #disk: () => Disk | null;
  readonly acknowledged = new Set<string>();
  readonly #answers = new Map<string, string>();
  readonly #keys = new Set<string>();

  constructor(mirror: Mirror, disk: () => Disk | null) {
    this.#mirror = mirror;
    this.#disk = disk;
  }

  committed({ submissions }: Commit): void {
    for (const { tenant, idempotency_key: key, jobs } of submissions) {
      const name = nameOf(tenant, key);
      must(!this.#keys.has(name), 'I3', () => `key ${name} made jobs twice, again as ${jobs}`);
      this.#keys.add(name);
    }
  }

  submitted(tenant: string, key: string, ids: string[]): void {
    const disk = this.#disk();
    // The process died since: nobody will hear this answer.
    if (!disk) return;
    for (const id of ids) {
      must(disk.hasJob(id), 'I2', () => `job ${id} was acknowledged, not on disk`);
      this.acknowledged.add(id);
    }
    const answer = ids.join(' ');
    const name = nameOf(tenant, key);
    const before = this.#answers.get(name);
    must(
      before === undefined || before === answer,
      'I3',
      () => `key ${name} gave ${before}, then ${answer}`,
    );
    this.#answers.set(name, answer);
  }

  /** Whoever asks again with a key that was taken is given what it made, whatever became of it. */
  refused(tenant: string, key: string): void {
    const name = nameOf(tenant, key);
    must(!this.#keys.has(name), 'I3', () => `key ${name} made jobs, then was refused`);
  }

  /** Another body under a known key was taken. */
  mismatchTaken(key: string): void {
    throw new Violation('I3', `key ${key} took a second body`);
  }

  missing(id: string): void {
    if (this.acknowledged.has(id)) throw new Violation('I2', `job ${id} cannot be found any more`);
  }

  /** What an agent is told rests on what is on disk: it may act, and forget, at once. */
  told({ desired, acknowledged }: SyncReply): void {
    for (const { uid } of desired) {
      const known = this.#mirror.attempt(uid) !== undefined;
      must(known, 'I2', () => `attempt ${uid} was ordered, not committed`);
    }
    for (const uid of acknowledged) {
      const state = this.#mirror.attempt(uid)?.state ?? 'ENDED';
      must(state === 'ENDED', 'I2', () => `the end of ${uid} was acknowledged, not committed`);
    }
  }

  /** After a crash: everything ever committed is in the file, and nothing else is. */
  reopened(): void {
    const wrong = this.#disk()?.difference(this.#mirror);
    if (wrong) throw new Violation('I2', `after a crash ${wrong}`);
  }
}

/** Each tenant has keys of its own. */
function nameOf(tenant: string, key: string): string {
  return `${tenant} ${key}`;
}
