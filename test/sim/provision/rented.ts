/**
 * Machines that come by themselves: the fake provider as a part of the world, and simulated agents
 * on what it starts.
 */
import type { Clock } from '../../../src/lib/clock.ts';
import type { Provider } from '../../../src/providers/contract.ts';
import { FakeAccount, type AccountTimes } from '../../../src/providers/fake/account.ts';
import { randomFaults, type ProviderFault } from '../../../src/providers/fake/faults.ts';
import type { FakeMachine } from '../../../src/providers/fake/machine.ts';
import { createFakeProvider } from '../../../src/providers/fake/provider.ts';
import type { Cluster } from '../cluster.ts';
import { CLUSTER_ID } from '../database.ts';
import type { Machine } from '../machine.ts';
import { rentedName } from '../sites.ts';
import type { RentedPool } from './pools.ts';

const MINUTE = 60_000;
/** What a machine that nobody here asked for is called. */
const ORPHAN = 'i0orphan';

/** Shorter than in life, but longer than what the controller waits for without asking. */
const TIMES: Partial<AccountTimes> = {
  replyTimeout: [5000, 20_000],
  late: [20_000, 4 * MINUTE],
  slowEnd: [20_000, 2 * MINUTE],
  untilMisfortune: [0, 90_000],
};

export interface RentedOptions {
  cluster: () => Cluster;
  pools: readonly RentedPool[];
  rates: Partial<Record<ProviderFault, number>>;
  onFault: (fault: ProviderFault) => void;
}

export class Rented {
  readonly #options: RentedOptions;
  readonly #on = new Map<FakeMachine, Machine[]>();
  readonly #accounts = new Map<string, FakeAccount>();
  #orphans = 0;

  constructor(options: RentedOptions) {
    this.#options = options;
  }

  /** Each pool has an account of its own: what it is charged is what its limits are about. */
  account(pool: RentedPool): FakeAccount {
    const known = this.#accounts.get(pool.name);
    if (known) return known;
    const { world } = this.#options.cluster();
    const { rates, onFault } = this.#options;
    const account = new FakeAccount({
      clock: world.clockOf(world.spawn(pool.name)),
      random: world.random,
      faults: randomFaults(world.random, rates),
      ...{ times: TIMES, prices: pool.prices, onFault },
      hooks: {
        made: (machine) => this.#made(machine),
        started: (machine) => this.#start(pool, machine),
        ended: (machine) => this.#end(machine),
      },
    });
    this.#accounts.set(pool.name, account);
    return account;
  }

  accounts(): FakeAccount[] {
    return [...this.#accounts.values()];
  }

  /** As one controller process sees it: what answers comes only while that lives. */
  provider(pool: RentedPool, clock: Clock): Provider {
    const account = this.account(pool);
    const { name, capabilities } = pool;
    return createFakeProvider({ account, clusterId: CLUSTER_ID, pool: name, clock, capabilities });
  }

  /** The simulated machines of one that was rented. */
  on(machine: FakeMachine): readonly Machine[] {
    return this.#on.get(machine) ?? [];
  }

  /**
   * Nothing goes wrong by itself any more; what is under way or already broken stays so. Only
   * queues move again: where they may be long, nobody gives up waiting in them.
   */
  calm(): void {
    for (const account of this.accounts()) {
      account.faults = randomFaults(account.random, {});
      account.reachable = true;
      for (const machine of account.existing()) machine.goOn();
    }
  }

  /** Somebody, somewhere, made one with our prefix: a restored backup, a controller long gone. */
  plantOrphan(pool: RentedPool): void {
    const agent = { url: '', authorities: '', selfDestructAfterMs: 10 * MINUTE };
    this.account(pool).create({
      ...{ clusterId: CLUSTER_ID, pool: pool.name, label: `${ORPHAN}${this.#orphans++}` },
      ...{ joinToken: 'dri_unknown', workers: 1, resources: null, runAs: null },
      ...{ timeLimitMs: 0, agent, avoid: [] },
    });
  }

  #made({ order, handle }: FakeMachine): void {
    this.#options.cluster().world.note(order.pool, `makes ${handle} for ${order.label}`);
  }

  #start(pool: RentedPool, machine: FakeMachine): void {
    const cluster = this.#options.cluster();
    const { order, handle, host } = machine;
    cluster.world.note(pool.name, `${handle} is up on ${host} for ${order.label}`);
    const instance = pool.capabilities.labels ? order.label : handle;
    const machines = Array.from({ length: order.workers }, (_, rank) =>
      cluster.addMachine({
        ...{ name: rentedName(pool.name, handle, rank), pool: pool.name, attributes: {} },
        rented: { joinToken: order.joinToken, instance, host },
      }),
    );
    this.#on.set(machine, machines);
    for (const one of machines) cluster.startAgent(one);
  }

  #end(machine: FakeMachine): void {
    const cluster = this.#options.cluster();
    for (const one of this.on(machine)) cluster.removeMachine(one);
    this.#on.delete(machine);
  }
}
