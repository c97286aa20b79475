/** One machine at the fake provider: its life, what goes wrong in it, and what it is shown as. */
import type { Clock, Timer } from '../../lib/clock.ts';
import type { Random } from '../../lib/random.ts';
import type { FailureClass } from '../../model/instance.ts';
import type { LaunchBatch, Machine, MachinePhase } from '../contract.ts';
import { Bill } from './bill.ts';
import type { MachineFault } from './faults.ts';

/** From one to the other, both included. */
export type Range = readonly [lowMs: number, highMs: number];

/** How long things take at the provider's. */
export interface FakeTimes {
  queued: Range;
  boot: Range;
  /** From the request to destroy until it is gone, and when that takes long. */
  end: Range;
  slowEnd: Range;
  /** How long one runs before what is to happen to it happens. */
  untilMisfortune: Range;
  /** How long one that is over is still shown. */
  shownGone: Range;
}

/** What a machine was asked for with. */
export interface MachineOrder {
  clusterId: string;
  pool: string;
  label: string;
  joinToken: string;
  workers: number;
  resources: LaunchBatch['resources'];
  runAs: LaunchBatch['runAs'];
  timeLimitMs: number;
  agent: LaunchBatch['agent'];
  avoid: readonly string[];
}

/** Of tests and the simulator: where an agent is started and ended. */
export interface MachineHooks {
  /** The provider makes it, whether anybody will hear of it or not. */
  made?(machine: FakeMachine): void;
  /** Its agents start now; again after each restart, on an empty disk. */
  started?(machine: FakeMachine): void;
  /** Nothing runs on it any more. */
  ended?(machine: FakeMachine): void;
}

/** What all machines of an account have in common. */
export interface Surroundings {
  clock: Clock;
  random: Random;
  times: FakeTimes;
  hooks: MachineHooks;
  hosts: readonly string[];
  prices: FakePrices;
  /** Each change of what is shown. */
  changed(machine: FakeMachine): void;
  /** A fault took effect; one that is only drawn may never do. */
  happened(fault: MachineFault): void;
}

export interface FakePrices {
  hourMicros: number;
  quantumMs: number;
  /** The first phase that costs. */
  from: 'queued' | 'booting' | 'running';
}

const FAILURES: [MachineFault, FailureClass, string][] = [
  ['machine: fails for its host', 'INFRA_FATAL', 'OCI runtime create failed: no such device'],
  ['machine: fails for its image', 'WORKLOAD_FATAL', 'manifest unknown: the image does not exist'],
  ['machine: stalls', 'STALLED', 'pulling the image, 3 % since a long time'],
];
const DEARER = 3;

export class FakeMachine {
  readonly handle: string;
  readonly order: MachineOrder;
  readonly fate: ReadonlySet<MachineFault>;
  readonly bill: Bill;
  readonly createdAtMs: number;
  priceHourMicros: number;
  phase: MachinePhase = 'queued';
  reason = 'waits for a host';
  failure: FailureClass | null = null;
  host = '';
  restarts = 0;
  endsAtMs: number | null = null;
  endedAtMs: number | null = null;
  /** Its agents were started and have not been ended. */
  up = false;
  readonly #around: Surroundings;
  #startsAtMs: number | null = null;
  #shown = true;
  #step: Timer | null = null;
  #misfortune: Timer | null = null;
  #limit: Timer | null = null;

  constructor(
    around: Surroundings,
    handle: string,
    order: MachineOrder,
    fate: ReadonlySet<MachineFault>,
  ) {
    this.#around = around;
    this.handle = handle;
    this.order = order;
    this.fate = fate;
    const { hourMicros, quantumMs } = around.prices;
    this.priceHourMicros = hourMicros * (this.#fated('machine: costs more than told') ? DEARER : 1);
    this.bill = new Bill(quantumMs);
    this.createdAtMs = around.clock.now();
  }

  /** Its end was asked for, and it is on the way there. */
  get leaving(): boolean {
    return this.exists && this.reason === DESTROYING;
  }

  /** Not over, however it is shown. */
  get exists(): boolean {
    return this.endedAtMs === null;
  }

  begin(): void {
    this.#around.hooks.made?.(this);
    const { clock, times } = this.#around;
    const queuedMs = this.#draw(times.queued);
    const stuck = this.#fated('machine: stuck in the queue');
    if (!stuck) this.#startsAtMs = clock.now() + queuedMs;
    this.#become('queued', stuck ? 'no host has room' : 'waits for a host');
    if (stuck) return;
    this.#next(queuedMs, () => this.#boot());
  }

  /** A host has room after all for what was stuck in the queue. */
  goOn(): void {
    if (this.phase !== 'queued') return;
    this.#next(this.#draw(this.#around.times.queued), () => this.#boot());
  }

  /** It is asked to go; `slowly` takes long, and costs for as long. */
  destroy(slowly: boolean): void {
    if (!this.exists || this.leaving) return;
    const { times } = this.#around;
    this.#misfortune?.cancel();
    this.#become('ending', DESTROYING);
    this.#next(this.#draw(slowly ? times.slowEnd : times.end), () => this.end('destroyed'));
  }

  /** It is over now; the provider shows that for a while. */
  end(reason: string): void {
    if (!this.exists) return;
    this.#over(reason);
    this.#become('gone', reason);
    this.#next(this.#draw(this.#around.times.shownGone), () => this.#hide());
  }

  /** From one moment to the next there is nothing. */
  vanish(): void {
    if (!this.exists) return;
    this.#over('vanished');
    this.#hide();
  }

  /** Null: it is not shown at all. */
  view(): Machine | null {
    if (!this.#shown) return null;
    const { order, handle, phase, reason, failure, host, restarts } = this;
    return {
      ...{ label: order.label, handle, phase, reason, failure, host, restarts },
      startsAtMs: phase === 'queued' ? this.#startsAtMs : null,
      leftMs: this.endsAtMs === null ? null : Math.max(0, this.endsAtMs - this.#around.clock.now()),
      billed: this.bill.running,
      priceHourMicros: this.priceHourMicros,
    };
  }

  #boot(): void {
    this.host = this.#otherHost();
    this.#startsAtMs = null;
    this.#become('booting', 'pulling the image');
    if (this.#fated('machine: stuck while it boots')) return;
    const failure = FAILURES.find(([fault]) => this.fate.has(fault));
    const bootMs = this.#draw(this.#around.times.boot);
    this.#next(bootMs, () => (failure ? this.#fail(failure) : this.#run()));
  }

  #fail([fault, failure, reason]: (typeof FAILURES)[number]): void {
    this.#around.happened(fault);
    this.failure = failure;
    if (failure === 'STALLED') this.#become('booting', reason);
    else if (this.#fated('machine: fails and stays billed')) this.#become('ending', reason);
    else this.end(reason);
  }

  #run(): void {
    const { clock, hooks } = this.#around;
    const { timeLimitMs } = this.order;
    if (timeLimitMs > 0 && this.endsAtMs === null) {
      this.endsAtMs = clock.now() + timeLimitMs;
      this.#limit = clock.setTimer(timeLimitMs, () => this.end('TIMEOUT'));
    }
    this.#become('running', '');
    if (!this.#fated('machine: never joins')) {
      this.up = true;
      hooks.started?.(this);
    }
    this.#awaitMisfortune();
  }

  #awaitMisfortune(): void {
    const misfortunes: [MachineFault, () => void][] = [
      ['machine: vanishes', () => this.vanish()],
      ['machine: outbid and still billed', () => this.#outbid()],
      ['machine: restarted on another host', () => this.#restart()],
    ];
    const [fault, run] = misfortunes.find(([one]) => this.fate.has(one)) ?? [];
    if (!fault || !run || this.restarts > 0) return;
    const { clock, times } = this.#around;
    this.#misfortune = clock.setTimer(this.#draw(times.untilMisfortune), () => {
      if (this.phase !== 'running') return;
      this.#around.happened(fault);
      run();
    });
  }

  /** It stands still, and what it stores still costs until somebody destroys it. */
  #outbid(): void {
    this.#down();
    this.#become('ending', 'outbid: stopped, its disk is kept and billed');
  }

  #restart(): void {
    this.#down();
    this.restarts++;
    this.#boot();
  }

  #over(reason: string): void {
    const { clock } = this.#around;
    this.endedAtMs = clock.now();
    this.bill.stop(this.endedAtMs);
    for (const timer of [this.#step, this.#misfortune, this.#limit]) timer?.cancel();
    this.reason = reason;
    this.#down();
  }

  #down(): void {
    if (!this.up) return;
    this.up = false;
    this.#around.hooks.ended?.(this);
  }

  #become(phase: MachinePhase, reason: string): void {
    const { prices, clock } = this.#around;
    this.phase = phase;
    this.reason = reason;
    if (prices.from === phase) this.bill.start(clock.now(), this.priceHourMicros);
    this.#around.changed(this);
  }

  #fated(fault: MachineFault): boolean {
    const fated = this.fate.has(fault);
    if (fated) this.#around.happened(fault);
    return fated;
  }

  #hide(): void {
    this.phase = 'gone';
    this.#shown = false;
    this.#around.changed(this);
  }

  #next(delayMs: number, run: () => void): void {
    this.#step?.cancel();
    this.#step = this.#around.clock.setTimer(delayMs, run);
  }

  #otherHost(): string {
    const { hosts, random } = this.#around;
    const fit = hosts.filter((host) => host !== this.host && !this.order.avoid.includes(host));
    return fit[Math.floor(random.next() * fit.length)] ?? this.host;
  }

  #draw([lowMs, highMs]: Range): number {
    return Math.floor(lowMs + this.#around.random.next() * (highMs - lowMs + 1));
  }
}

const DESTROYING = 'being destroyed';
