/** I11: a result that can be seen is what really happened in the newest attempt. */
import { attemptKey, taskKey, type Commit, type Mirror } from './mirror.ts';
import { must } from './violation.ts';

export class ResultChecker {
  readonly #mirror: Mirror;
  readonly #exits = new Map<string, number>();
  readonly #machines = new Map<string, string>();

  constructor(mirror: Mirror) {
    this.#mirror = mirror;
  }

  started(machine: string, uid: string): void {
    this.#machines.set(uid, machine);
    this.#exits.delete(uid);
  }

  exited(uid: string, exitCode: number): void {
    this.#exits.set(uid, exitCode);
  }

  committed({ tasks, attempts }: Commit): void {
    for (const { before, row } of attempts) {
      if (row.state !== 'ENDED' || before?.state === 'ENDED' || row.cause !== 'exited') continue;
      const really = this.#exits.get(row.uid);
      must(
        really === row.exit_code,
        'I11',
        () => `${row.uid} exited ${really}, not ${row.exit_code}`,
      );
      const ran = this.#machines.get(row.uid);
      const told = this.#mirror.workers.get(row.worker)?.machine;
      must(ran === told, 'I11', () => `${row.uid} ran on ${ran}, not on ${told}`);
    }
    for (const { before, row } of tasks) {
      if (row.state !== 'SUCCEEDED' || before?.state === 'SUCCEEDED') continue;
      const last = this.#mirror.attempts.get(attemptKey({ ...row, n: row.attempts }));
      const really = last && this.#exits.get(last.uid);
      must(really === 0, 'I11', () => `task ${taskKey(row)} succeeded, its attempt: ${really}`);
    }
  }
}
