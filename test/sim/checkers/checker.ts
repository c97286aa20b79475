/**
 * All checkers behind one door: told what becomes durable or visible, it keeps the first violation.
 */
import type { AttemptOrder, SyncReply } from '../../../src/protocol/agent.ts';
import type { WriteBatch } from '../../../src/store/contract.ts';
import { AttemptChecker } from './attempts.ts';
import { CancelChecker } from './cancels.ts';
import { CapacityChecker } from './capacity.ts';
import type { Disk } from './disk.ts';
import { EpochChecker } from './epochs.ts';
import { GangChecker } from './gangs.ts';
import { LivenessChecker } from './liveness.ts';
import { Mirror, type Commit } from './mirror.ts';
import { ResultChecker } from './results.ts';
import { StateChecker } from './states.ts';
import { SubmissionChecker } from './submissions.ts';
import { Violation } from './violation.ts';

export class Checker {
  readonly mirror = new Mirror();
  readonly liveness: LivenessChecker;
  readonly #attempts = new AttemptChecker(this.mirror);
  readonly #cancels = new CancelChecker(this.mirror);
  readonly #capacity = new CapacityChecker(this.mirror);
  readonly #epochs = new EpochChecker();
  readonly #gangs = new GangChecker(this.mirror);
  readonly #results = new ResultChecker(this.mirror);
  readonly #states = new StateChecker();
  readonly #submissions: SubmissionChecker;
  #found: unknown = null;

  /** `disk` is a fresh look at the store's file. */
  constructor(disk: () => Disk | null) {
    this.#submissions = new SubmissionChecker(this.mirror, disk);
    this.liveness = new LivenessChecker(this.mirror, this.#submissions.acknowledged);
  }

  booted(epoch: number): void {
    this.#guard(() => this.#epochs.booted(epoch));
    this.#guard(() => this.#submissions.reopened());
  }

  committed(batch: WriteBatch): Commit {
    const commit = this.mirror.apply(batch);
    this.#guard(() => {
      this.#epochs.committed(commit);
      this.#states.committed(commit);
      this.#attempts.committed(commit);
      this.#submissions.committed(commit);
      this.#gangs.committed(commit);
      this.#capacity.committed(commit);
      this.#cancels.committed(commit);
      this.#results.committed(commit);
    });
    return commit;
  }

  submitted(key: string, ids: string[]): void {
    this.#guard(() => this.#submissions.submitted(key, ids));
  }

  mismatchTaken(key: string): void {
    this.#guard(() => this.#submissions.mismatchTaken(key));
  }

  missing(id: string): void {
    this.#guard(() => this.#submissions.missing(id));
  }

  cancelled(id: string): void {
    this.#guard(() => this.#cancels.cancelled(id));
  }

  told(reply: SyncReply): void {
    this.#guard(() => this.#submissions.told(reply));
  }

  started(machine: string, order: AttemptOrder): void {
    this.#guard(() => {
      this.#attempts.started(machine, order);
      this.#capacity.started(machine, order);
      this.#results.started(machine, order.uid);
    });
  }

  wiped(machine: string): void {
    this.#attempts.wiped(machine);
  }

  ended(machine: string, uid: string, exitCode: number | null): void {
    this.#guard(() => {
      this.#attempts.ended(uid);
      this.#capacity.ended(machine, uid);
      if (exitCode !== null) this.#results.exited(uid, exitCode);
    });
  }

  /** Something that production code calls an error, or that should never happen. */
  broken(what: string): void {
    this.#found ??= new Violation('log', what);
  }

  /**
   * Throws what was found since: checks run inside promises of the code under test, which may
   * catch.
   */
  check(): void {
    if (this.#found !== null) throw this.#found as Error;
  }

  #guard(check: () => void): void {
    try {
      check();
    } catch (error) {
      this.#found ??= error;
    }
  }
}
