/**
 * All checkers behind one door: told what becomes durable or visible, it keeps the first violation.
 */
import type { After } from '../../../src/model/job.ts';
import type { AttemptOrder, SyncReply } from '../../../src/protocol/agent.ts';
import type { LogPage } from '../../../src/protocol/coordinator.ts';
import type { EventView } from '../../../src/protocol/jobs.ts';
import type { WriteBatch } from '../../../src/store/contract.ts';
import { AfterChecker } from './after.ts';
import { AttemptChecker } from './attempts.ts';
import { CancelChecker } from './cancels.ts';
import { CapacityChecker } from './capacity.ts';
import { CheckpointChecker } from './checkpoints.ts';
import type { LogDisk } from '../logs.ts';
import { DeliveryChecker, type Position } from './delivery.ts';
import type { Disk } from './disk.ts';
import { EpochChecker } from './epochs.ts';
import { AuditChecker } from './audit.ts';
import { FamilyChecker } from './family.ts';
import { GangChecker } from './gangs.ts';
import { IdleChecker, type IdleOptions } from './idle.ts';
import { LedgerChecker } from './ledger.ts';
import { LivenessChecker } from './liveness.ts';
import { Mirror, type Commit } from './mirror.ts';
import { PlacementChecker } from './placement.ts';
import { QuotaChecker } from './quotas.ts';
import { ResultChecker } from './results.ts';
import { StateChecker } from './states.ts';
import { SubmissionChecker } from './submissions.ts';
import { TenantChecker } from './tenants.ts';
import { Violation } from './violation.ts';

export interface CheckerOptions extends Omit<IdleOptions, 'mirror'> {
  /** A fresh look at the store's file. */
  disk: () => Disk | null;
  logs: LogDisk;
}

export class Checker {
  readonly mirror = new Mirror();
  readonly liveness: LivenessChecker;
  readonly #after = new AfterChecker(this.mirror);
  readonly #attempts = new AttemptChecker(this.mirror);
  readonly #cancels = new CancelChecker(this.mirror);
  readonly #capacity = new CapacityChecker(this.mirror);
  readonly #checkpoints = new CheckpointChecker(this.mirror);
  readonly #delivery: DeliveryChecker;
  readonly #epochs = new EpochChecker();
  readonly #family = new FamilyChecker(this.mirror);
  readonly #audit = new AuditChecker();
  readonly #gangs = new GangChecker(this.mirror);
  readonly #idle: IdleChecker;
  readonly #ledger: LedgerChecker;
  readonly #placement: PlacementChecker;
  readonly #quotas: QuotaChecker;
  readonly #results = new ResultChecker(this.mirror);
  readonly #states = new StateChecker();
  readonly #submissions: SubmissionChecker;
  readonly #tenants = new TenantChecker(this.mirror);
  #found: unknown = null;

  constructor(options: CheckerOptions) {
    const { disk, pools, logs } = options;
    this.#delivery = new DeliveryChecker(this.mirror, logs);
    this.#idle = new IdleChecker({ ...options, mirror: this.mirror });
    this.#ledger = new LedgerChecker(this.mirror, pools);
    this.#placement = new PlacementChecker(this.mirror, pools);
    this.#quotas = new QuotaChecker(this.mirror, pools);
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
      this.#placement.committed(commit);
      this.#quotas.committed(commit);
      this.#ledger.committed(commit);
      this.#after.committed(commit);
      this.#delivery.committed(commit);
      this.#idle.committed(commit);
      this.#cancels.committed(commit);
      this.#results.committed(commit);
      this.#checkpoints.committed(commit);
      this.#family.committed(commit);
      this.#audit.committed(commit);
    });
    return commit;
  }

  submitted(tenant: string, key: string, ids: string[]): void {
    this.#guard(() => this.#submissions.submitted(tenant, key, ids));
  }

  /** A submission was refused because what it waits for can never come. */
  refused(tenant: string, key: string, after: After[]): void {
    this.#guard(() => this.#submissions.refused(tenant, key));
    this.#guard(() => this.#after.refused(after));
  }

  waits(job: string, after: After[]): void {
    this.#guard(() => this.#after.asked(job, after));
  }

  read(tenant: string, what: string, reply: unknown): void {
    this.#guard(() => this.#tenants.read(tenant, what, reply));
  }

  foreign(tenant: string, what: string, answer: string): void {
    this.#guard(() => this.#tenants.foreign(tenant, what, answer));
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

  moved(id: string, priority: string): void {
    this.#guard(() => this.#audit.moved(id, priority));
  }

  eventPage(position: Position, page: EventView[]): void {
    this.#guard(() => this.#delivery.events(position, page));
  }

  eventsEnded(position: Position): void {
    this.#guard(() => this.#delivery.eventsEnded(position));
  }

  logPage(position: Position, page: LogPage): void {
    this.#guard(() => this.#delivery.logs(position, page));
  }

  logComplete(job: string, last: number): void {
    this.#guard(() => this.#delivery.logComplete(job, last));
  }

  told(reply: SyncReply): void {
    this.#guard(() => this.#submissions.told(reply));
  }

  started(machine: string, order: AttemptOrder): void {
    this.#guard(() => {
      this.#attempts.started(machine, order);
      this.#capacity.started(machine, order);
      this.#results.started(machine, order.uid);
      this.#checkpoints.started(order);
    });
  }

  /** An attempt has something that may be resumed from, and says so from now on. */
  saved(uid: string, manifest: string): void {
    this.#checkpoints.saved(uid, manifest);
  }

  wiped(machine: string): void {
    this.#attempts.wiped(machine);
    this.#delivery.wiped(machine);
  }

  /** From now on nothing goes wrong. */
  peace(): void {
    this.#idle.peace();
  }

  /** The controller's clock was set forward. */
  leapt(): void {
    this.#delivery.leapt();
  }

  ended(machine: string, uid: string, exitCode: number | null): void {
    this.#guard(() => {
      this.#attempts.ended(uid);
      this.#capacity.ended(machine, uid);
      if (exitCode !== null) this.#results.exited(uid, exitCode);
    });
  }

  /** A check of somebody else's; what it finds is kept as all others. */
  also(check: () => void): void {
    this.#guard(check);
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
    this.#guard(() => this.#idle.check());
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
