/** Looks at what really exists at the providers, and at what it really costs. */
import type { LaunchBatch } from '../../../src/providers/contract.ts';
import type { FakeMachine } from '../../../src/providers/fake/machine.ts';
import { OwnedChecker } from '../checkers/owned.ts';
import { ReleasedChecker } from '../checkers/released.ts';
import { checkSpent } from '../checkers/spent.ts';
import { Violation } from '../checkers/violation.ts';
import type { Cluster } from '../cluster.ts';
import type { Commit } from '../checkers/mirror.ts';
import type { RentedPool } from './pools.ts';
import type { Rented } from './rented.ts';

export class Watch {
  readonly #cluster: Cluster;
  readonly #rented: Rented;
  readonly #pools: readonly RentedPool[];
  readonly #owned: OwnedChecker;
  readonly #released: ReleasedChecker[];

  constructor(cluster: Cluster, rented: Rented, pools: readonly RentedPool[]) {
    this.#cluster = cluster;
    this.#rented = rented;
    this.#pools = pools;
    this.#owned = new OwnedChecker(cluster.checker.mirror);
    this.#released = pools.map(() => new ReleasedChecker());
    cluster.onCommit = (commit) => this.#committed(commit);
  }

  asked(batch: LaunchBatch): void {
    this.#cluster.checker.also(() => this.#owned.asked(batch));
  }

  /** `idle`: the faults are over and nothing waits or runs. */
  look(idle: boolean): void {
    const { world, checker, controller } = this.#cluster;
    const nowMs = world.nowMs;
    const able = controller.process?.alive === true && !controller.process.paused;
    checker.also(() => {
      for (const [at, pool] of this.#pools.entries()) {
        const account = this.#rented.account(pool);
        const named = { name: pool.name, labels: pool.capabilities.labels };
        this.#owned.look(account, named, able && account.reachable, nowMs);
        const released = this.#released[at]!;
        if (!idle) released.forget();
        else released.look(account, pool.settings, (one) => this.#busy(one), nowMs);
      }
    });
  }

  /** Whether every machine that may go has gone. */
  given(): boolean {
    return this.#pools.every((pool) => {
      const account = this.#rented.account(pool);
      return !account.expects && account.existing().length <= pool.settings.min;
    });
  }

  ended(): void {
    const { coverage } = this.#cluster;
    coverage.saw('machine of nobody ended', this.#owned.ended);
    for (const pool of this.#pools) {
      const account = this.#rented.account(pool);
      if (checkSpent(account, pool.settings)) coverage.saw('spend limit reached');
      const existing = account.existing().filter(({ leaving }) => !leaving);
      if (existing.length <= pool.settings.min) continue;
      const told = existing.map(({ handle, phase, order }) => `${handle} ${phase} ${order.label}`);
      throw new Violation('L4', `${pool.name} still has ${told.join(', ')} when all is over`);
    }
  }

  #busy(machine: FakeMachine): boolean {
    return this.#rented.on(machine).some((one) => one.live().length > 0);
  }

  #committed(commit: Commit): void {
    this.#cluster.checker.also(() => this.#owned.committed(commit));
    const { coverage } = this.#cluster;
    for (const { before, row } of commit.instances) {
      if (!before) coverage.saw('provisioning');
      const record = JSON.parse(row.record) as { failure: string | null; tasks: string[] };
      const came = row.state !== before?.state;
      if (came && row.state === 'JOINED') {
        coverage.saw(record.tasks.length > 0 ? 'instance for one job joined' : 'instance joined');
      }
      const found = before?.handle === '' && row.handle !== '' && row.handle !== before.handle;
      if (found && (before.state === 'REQUESTED' || row.state === 'BOOTING')) {
        coverage.saw('instance found after a lost answer');
      }
      if (came && row.state === 'DRAINING') coverage.saw('instance given back');
      if (came && row.state === 'DESTROYED') coverage.saw('instance ended');
      if (row.state === 'REQUESTED' && before && REACHED.has(before.state)) {
        coverage.saw('instance started anew');
      }
      const failure = came && row.ended_at_ms !== null ? record.failure : null;
      if (failure === 'INFRA_FATAL') coverage.saw('instance failed: INFRA_FATAL');
      if (failure === 'WORKLOAD_FATAL') coverage.saw('instance failed: WORKLOAD_FATAL');
      if (failure === 'STALLED') coverage.saw('instance failed: STALLED');
    }
  }
}

const REACHED = new Set(['BOOTING', 'PROBING', 'JOINED']);
