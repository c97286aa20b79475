/**
 * I1: one attempt per task at a time, in the store and on the machines, and each is started once.
 */
import type { AttemptOrder } from '../../../src/protocol/agent.ts';
import type { AttemptRow } from '../../../src/store/database.ts';
import { attemptKey, taskKey, type Commit, type Mirror } from './mirror.ts';
import { must } from './violation.ts';

export class AttemptChecker {
  readonly #mirror: Mirror;
  readonly #running = new Map<string, string>();
  readonly #tasks = new Map<string, string>();
  /** By uid, the machine. */
  readonly #started = new Map<string, string>();

  constructor(mirror: Mirror) {
    this.#mirror = mirror;
  }

  committed({ attempts }: Commit): void {
    for (const { before, row } of attempts) {
      if (row.state === 'ENDED' && before?.state !== 'ENDED') {
        const runs = this.#running.get(taskKey(row)) === row.uid;
        must(!runs, 'I1', () => `${row.uid} was called over (${row.cause}), but it runs`);
      }
      if (before) must(before.uid === row.uid, 'I1', () => `${attemptKey(row)} has two uids`);
      else this.#begun(row);
    }
  }

  #begun(row: AttemptRow): void {
    const key = attemptKey(row);
    must(row.uid.startsWith(`${key}.`), 'I1', () => `${row.uid} is not number ${row.n}`);
    if (row.n === 1) return;
    const last = this.#mirror.attempts.get(attemptKey({ ...row, n: row.n - 1 }));
    const over = last?.state === 'ENDED';
    must(over, 'I1', () => `${row.uid} began, number ${row.n - 1} is ${last?.state}`);
  }

  started(machine: string, order: AttemptOrder): void {
    const { uid, task } = order;
    const other = this.#running.get(task);
    must(other === undefined, 'I1', () => `task ${task} runs twice: ${other} and ${uid}`);
    must(!this.#started.has(uid), 'I1', () => `attempt ${uid} was started twice`);
    const over = this.#mirror.attempt(uid)?.state === 'ENDED';
    must(!over, 'I1', () => `attempt ${uid} was started after it was called over`);
    this.#started.set(uid, machine);
    this.#running.set(task, uid);
    this.#tasks.set(uid, task);
  }

  /** A machine that was wiped knows of nothing: an attempt it never reported is sent again. */
  wiped(machine: string): void {
    for (const [uid, on] of this.#started) if (on === machine) this.#started.delete(uid);
  }

  ended(uid: string): void {
    const task = this.#tasks.get(uid) ?? '';
    if (this.#running.get(task) === uid) this.#running.delete(task);
  }
}
