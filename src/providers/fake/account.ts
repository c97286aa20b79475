/**
 * The account at the fake provider: what really exists there and what it really cost. It outlives
 * the controllers that use it, and several clusters may share it.
 */
import type { Clock } from '../../lib/clock.ts';
import type { Random } from '../../lib/random.ts';
import type { Machine } from '../contract.ts';
import type { Charge } from './bill.ts';
import { MACHINE_FAULTS, type FaultPlan, type ProviderFault } from './faults.ts';
import { FakeMachine, type FakePrices, type FakeTimes, type MachineHooks } from './machine.ts';
import type { MachineOrder, Range, Surroundings } from './machine.ts';

export interface FakeAccountOptions {
  /** Of the provider's own computers: no controller's crash stops it. */
  clock: Clock;
  random: Random;
  faults: FaultPlan;
  times?: Partial<AccountTimes>;
  prices?: Partial<FakePrices>;
  hooks?: MachineHooks;
  hosts?: readonly string[];
  /** Machines at once, of all clusters together. */
  quota?: number;
  /** Each fault as it takes effect. */
  onFault?: (fault: ProviderFault) => void;
}

export interface AccountTimes extends FakeTimes {
  /** One way between a client and the provider. */
  travel: Range;
  /** After so long without a reply a client gives up. */
  replyTimeout: Range;
  /** How far a listing may lie behind. */
  lag: Range;
  /** How long a launch of which nobody heard takes to appear. */
  late: Range;
  /** What the provider tells those who ask too often. */
  retryAfter: Range;
}

const SECOND = 1000;
const MINUTE = 60 * SECOND;
/** Like a marketplace on an ordinary day. */
const TIMES: AccountTimes = {
  travel: [1, 200],
  replyTimeout: [10 * SECOND, 30 * SECOND],
  lag: [SECOND, 40 * SECOND],
  late: [30 * SECOND, 10 * MINUTE],
  retryAfter: [SECOND, 20 * SECOND],
  queued: [0, 20 * SECOND],
  boot: [SECOND, 60 * SECOND],
  end: [0, 10 * SECOND],
  slowEnd: [MINUTE, 4 * MINUTE],
  untilMisfortune: [0, 5 * MINUTE],
  shownGone: [0, 30 * SECOND],
};
const PRICES: FakePrices = { hourMicros: 1_000_000, quantumMs: MINUTE, from: 'booting' };
const HOSTS = 16;

/** A charge with the machine it was for. */
export interface MachineCharge extends Charge {
  machine: FakeMachine;
}

interface View {
  atMs: number;
  machine: Machine | null;
}

export class FakeAccount {
  /** All there ever were, by handle, also those that are over. */
  readonly machines = new Map<string, FakeMachine>();
  readonly happened = new Map<ProviderFault, number>();
  readonly clock: Clock;
  readonly random: Random;
  readonly times: AccountTimes;
  readonly prices: FakePrices;
  readonly hosts: readonly string[];
  quota: number;
  faults: FaultPlan;
  /** False: nobody can ask it anything. What it has goes on and costs. */
  reachable = true;
  #late = 0;
  readonly #around: Surroundings;
  readonly #onFault: (fault: ProviderFault) => void;
  readonly #views = new Map<FakeMachine, View[]>();
  /** Listings never go back to before what was already shown. */
  readonly #shownAsOfMs = new Map<string, number>();

  constructor(options: FakeAccountOptions) {
    const { clock, random, faults, hooks = {}, onFault = () => undefined } = options;
    this.clock = clock;
    this.random = random;
    this.faults = faults;
    this.times = { ...TIMES, ...options.times };
    this.prices = { ...PRICES, ...options.prices };
    this.hosts = options.hosts ?? Array.from({ length: HOSTS }, (_, at) => `host-${at + 1}`);
    this.quota = options.quota ?? Infinity;
    this.#onFault = onFault;
    this.#around = {
      ...{ clock, random, hooks, times: this.times, prices: this.prices, hosts: this.hosts },
      changed: (machine) => this.#changed(machine),
      happened: (fault) => this.count(fault),
    };
  }

  /** Whether it happens here and now; if so, it is counted. */
  befalls(fault: ProviderFault): boolean {
    const befalls = this.faults.happens(fault);
    if (befalls) this.count(fault);
    return befalls;
  }

  count(fault: ProviderFault): void {
    this.happened.set(fault, (this.happened.get(fault) ?? 0) + 1);
    this.#onFault(fault);
  }

  /** A new machine, whoever asks: also one that no controller knows of. */
  create(order: MachineOrder): FakeMachine {
    const fate = new Set(MACHINE_FAULTS.filter((fault) => this.faults.happens(fault)));
    const handle = String(4000 + this.machines.size);
    const machine = new FakeMachine(this.#around, handle, order, fate);
    this.machines.set(handle, machine);
    machine.begin();
    return machine;
  }

  /** Makes it when its time has come: nobody has heard of it until then. */
  createLater(afterMs: number, create: () => void): void {
    this.#late++;
    this.clock.setTimer(afterMs, () => {
      this.#late--;
      create();
    });
  }

  /** Whether there will be more without anybody asking again. */
  get expects(): boolean {
    return this.#late > 0;
  }

  existing(): FakeMachine[] {
    return [...this.machines.values()].filter(({ exists }) => exists);
  }

  /** Those that were ever made for it; a label is used once. */
  labelled(clusterId: string, label: string): FakeMachine[] {
    return [...this.machines.values()].filter(
      ({ order }) => order.clusterId === clusterId && order.label === label,
    );
  }

  /** What a cluster is shown of its own, `lagMs` behind the truth. */
  shown(clusterId: string, lagMs: number): Machine[] {
    const nowMs = this.clock.now();
    const before = this.#shownAsOfMs.get(clusterId) ?? 0;
    const asOfMs = Math.max(before, nowMs - lagMs);
    this.#shownAsOfMs.set(clusterId, asOfMs);
    const shown: Machine[] = [];
    for (const [machine, views] of this.#views) {
      if (machine.order.clusterId !== clusterId) continue;
      const view = views.findLast(({ atMs }) => atMs <= asOfMs);
      if (!view?.machine) continue;
      const { leftMs } = view.machine;
      const left = leftMs === null ? null : Math.max(0, leftMs - (asOfMs - view.atMs));
      shown.push({ ...view.machine, leftMs: left });
    }
    return shown;
  }

  /** What was really taken, in the order of time. */
  charges(): MachineCharge[] {
    const nowMs = this.clock.now();
    const all = [...this.machines.values()].flatMap((machine) =>
      machine.bill.charges(nowMs).map((charge) => ({ ...charge, machine })),
    );
    return all.toSorted((one, other) => one.atMs - other.atMs);
  }

  draw(range: Range): number {
    return Math.floor(range[0] + this.random.next() * (range[1] - range[0] + 1));
  }

  #changed(machine: FakeMachine): void {
    const views = this.#views.get(machine) ?? [];
    views.push({ atMs: this.clock.now(), machine: machine.view() });
    this.#views.set(machine, views);
  }
}
