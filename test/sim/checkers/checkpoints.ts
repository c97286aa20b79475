/**
 * I14: a checkpoint counts only for the attempt that wrote it and while that attempt is its task's;
 * an attempt resumes from none that is older than the newest there was when it was assigned.
 */
import type { AttemptOrder } from '../../../src/protocol/agent.ts';
import { taskKey, type Commit, type Mirror } from './mirror.ts';
import { must } from './violation.ts';

interface Stored {
  task: string;
  n: number;
  writer: string;
}

export class CheckpointChecker {
  readonly #mirror: Mirror;
  /** What attempts really saved, by manifest. */
  readonly #writers = new Map<string, string>();
  readonly #stored = new Map<string, Stored>();
  /** By task: the newest. */
  readonly #newest = new Map<string, number>();
  /** By attempt: the newest of its task when it was assigned. */
  readonly #expected = new Map<string, number>();

  constructor(mirror: Mirror) {
    this.#mirror = mirror;
  }

  saved(uid: string, manifest: string): void {
    this.#writers.set(manifest, uid);
  }

  committed({ checkpoints, attempts }: Commit): void {
    for (const { row } of checkpoints) {
      const task = taskKey(row);
      const writer = this.#writers.get(row.manifest);
      must(
        writer === row.attempt,
        'I14',
        () => `checkpoint ${row.n} of ${task} is ${writer}'s, not ${row.attempt}'s`,
      );
      const changed = attempts.find(({ row: one }) => one.uid === row.attempt);
      const before = changed ? changed.before : this.#mirror.attempt(row.attempt);
      must(
        before !== undefined && before.state !== 'ENDED',
        'I14',
        () => `${row.attempt} was over when checkpoint ${row.n} of ${task} was added`,
      );
      const newest = this.#newest.get(task) ?? 0;
      must(row.n > newest, 'I14', () => `checkpoint ${row.n} of ${task} follows ${newest}`);
      this.#newest.set(task, row.n);
      this.#stored.set(row.manifest, { task, n: row.n, writer: row.attempt });
    }
    for (const { before, row } of attempts) {
      if (!before) this.#expected.set(row.uid, this.#newest.get(taskKey(row)) ?? 0);
    }
  }

  started({ uid, task, n, restore = [], checkpoint }: AttemptOrder): void {
    if (!checkpoint) return;
    const expected = this.#expected.get(uid) ?? 0;
    let last = Infinity;
    for (const manifest of restore) {
      const stored = this.#stored.get(manifest);
      must(stored?.task === task, 'I14', () => `${uid} resumes from what is not its task's`);
      const writer = this.#mirror.attempt(stored!.writer);
      // Its own: it is sent again to a machine whose disk was replaced.
      must(writer !== undefined && writer.n <= n, 'I14', () => `${uid} resumes from a later one`);
      must(stored!.n < last, 'I14', () => `${uid} is offered ${stored!.n} after ${last}`);
      last = stored!.n;
    }
    const first = this.#stored.get(restore[0] ?? '')?.n ?? 0;
    must(
      first >= expected,
      'I14',
      () => `${uid} resumes from checkpoint ${first}, there was ${expected}`,
    );
  }
}
