/**
 * A machine: processes and attempt directories that outlive agents, a watchdog that outlives them
 * too, and reboots that end everything but the disk.
 */
import type { Identity, IdentityFile } from '../../src/agent/agent.ts';
import type { LocalAttempt, Runtime } from '../../src/agent/runtimes/contract.ts';
import type { AttemptOrder, Observation, StopOrder } from '../../src/protocol/agent.ts';
import type { Timer } from '../../src/lib/clock.ts';
import { Spool } from './logs.ts';
import type { Site } from './sites.ts';
import type { Host, Process, World } from './world.ts';

interface SimAttempt {
  uid: string;
  order: AttemptOrder | null;
  behaviour: Behaviour | null;
  observation: Observation;
  /** The process, as the machine knows it; false once it is gone. */
  alive: boolean;
  killAtMs: number;
  stopping: StopOrder | null;
}

/** How a task of the workload behaves, drawn once per attempt. */
export interface Behaviour {
  durationMs: number;
  exitCode: number;
  ignoresTerm: boolean;
}

/** Who is told what really happens on machines. */
interface MachineWatcher {
  started(machine: string, order: AttemptOrder): void;
  ended(machine: string, uid: string, exitCode: number | null): void;
  /** A process outlived its lease and the watchdog ended it. */
  expired(uid: string): void;
  /** It has saved what it could be resumed from, for the agent to store. */
  saved(uid: string): void;
}

/** What an agent changes on its machine, one at a time. */
export type Effect = 'start' | 'stop' | 'forget' | 'renew' | 'save';

export interface MachineOptions {
  world: World;
  site: Site;
  behave: (order: AttemptOrder) => Behaviour;
  watcher: MachineWatcher;
  /** Before each change an agent makes here; may end the agent, and then nothing is changed. */
  beforeEffect: (agent: Process, effect: Effect) => void;
  killMarginMs: number;
  /** Whether tasks write anything. */
  talkative: boolean;
}

const WATCHDOG_PERIOD_MS = 1000;
const QUICK_STOP_MS = 2000;

export class Machine {
  readonly site: Site;
  readonly name: string;
  readonly host: Host = { wallOffsetMs: 0 };
  readonly spool: Spool;
  readonly #options: MachineOptions;
  readonly #world: World;
  readonly #attempts = new Map<string, SimAttempt>();
  boot = 1;
  /** Its provider has taken it back: nothing starts on it any more. */
  off = false;
  identity: Identity | null = null;
  #changed: () => void = () => undefined;
  #watchdog: Timer | null = null;

  constructor(options: MachineOptions) {
    this.#options = options;
    this.#world = options.world;
    this.spool = new Spool(options.world);
    this.site = options.site;
    this.name = options.site.name;
  }

  identityFile(agent: Process): IdentityFile {
    return {
      load: () => this.identity,
      save: (identity) =>
        this.#effect(agent, 'save', () => {
          this.identity = { ...identity };
        }),
    };
  }

  /** The runtime of one agent process; a later agent gets another over the same machine. */
  runtime(agent: Process): Runtime {
    return {
      list: () => [...this.#attempts.values()].map(localOf),
      start: (order, killAtMs) => this.#effect(agent, 'start', () => this.#start(order, killAtMs)),
      stop: (order) => this.#effect(agent, 'stop', () => this.#stop(order)),
      forget: (uid) => this.#effect(agent, 'forget', () => void this.#attempts.delete(uid)),
      renewLease: (deadlines) => this.#effect(agent, 'renew', () => this.#renew(deadlines)),
      onChange: (changed) => {
        this.#changed = () => this.#world.inside(agent, changed);
      },
      close: () => Promise.resolve(),
    };
  }

  /** Power off and on: no process survives, directories do. */
  reboot(): void {
    this.boot++;
    for (const attempt of this.#attempts.values()) {
      if (attempt.alive) this.#end(attempt, { cause: 'lost', message: 'the machine restarted' });
    }
  }

  /** Gone with everything on it, and nobody there to tell. */
  powerOff(): void {
    this.off = true;
    this.#changed = () => undefined;
    for (const attempt of this.#attempts.values()) {
      if (attempt.alive) this.#end(attempt, { cause: 'lost', message: 'the machine is gone' });
    }
    this.wipe();
  }

  /** A new disk: comes only with a reboot, because processes do not outlive it. */
  wipe(): void {
    this.#attempts.clear();
    this.spool.wipe();
    this.identity = null;
  }

  /** Attempts that run or whose end nobody has acknowledged. */
  attempts(): string[] {
    return [...this.#attempts.keys()];
  }

  live(): string[] {
    return [...this.#attempts.values()].filter(({ alive }) => alive).map(({ uid }) => uid);
  }

  #effect(agent: Process, effect: Effect, change: () => void): void {
    if (agent.alive) this.#options.beforeEffect(agent, effect);
    if (agent.alive) change();
  }

  #start(order: AttemptOrder, killAtMs?: number): void {
    if (this.#attempts.has(order.uid)) return;
    const behaviour = this.#options.behave(order);
    const attempt: SimAttempt = {
      uid: order.uid,
      order,
      behaviour,
      observation: { uid: order.uid, state: 'STARTING' },
      alive: true,
      killAtMs: killAtMs ?? this.#world.nowMs + order.attemptLeaseMs - this.#options.killMarginMs,
      stopping: null,
    };
    this.#attempts.set(order.uid, attempt);
    this.#watch();
    this.#world.note(this.name, `starts ${order.uid}`);
    this.#options.watcher.started(this.name, order);
    this.#write(attempt);
    const startMs = this.#world.between(1, 50);
    this.#world.after(startMs, () => {
      if (!attempt.alive || attempt.stopping) return;
      attempt.observation = { uid: order.uid, state: 'RUNNING' };
      this.#write(attempt);
      this.#save(attempt);
      this.#changed();
    });
    this.#world.after(startMs + behaviour.durationMs, () => {
      if (!attempt.alive || attempt.stopping) return;
      this.#end(attempt, { cause: 'exited', exitCode: behaviour.exitCode });
    });
  }

  /** At its intervals for as long as it lives, also while it is asked to stop. */
  #save(attempt: SimAttempt): void {
    const everyMs = attempt.order?.checkpoint?.everyMs;
    if (everyMs === undefined) return;
    this.#world.after(everyMs, () => {
      if (!attempt.alive) return;
      this.#options.watcher.saved(attempt.uid);
      this.#save(attempt);
    });
  }

  #write({ uid, order }: SimAttempt): void {
    if (!this.#options.talkative) return;
    const lines = this.#world.between(0, 2);
    for (let i = 0; i < lines; i++) {
      this.spool.write(uid, `${order?.env['CANARY'] ?? ''} at ${this.#world.nowMs} of ${uid}\n`);
    }
  }

  #stop(order: StopOrder): void {
    const attempt = this.#attempts.get(order.uid);
    if (!attempt) {
      this.#attempts.set(order.uid, {
        ...{ uid: order.uid, order: null, behaviour: null, alive: false, stopping: order },
        observation: { uid: order.uid, state: 'ENDED', cause: 'never-started' },
        killAtMs: Infinity,
      });
      this.#changed();
      return;
    }
    if (!attempt.alive || attempt.stopping) return;
    attempt.stopping = order;
    attempt.observation = { uid: order.uid, state: 'STOPPING' };
    this.#world.note(this.name, `stops ${order.uid} (${order.cause})`);
    const quickMs = this.#world.between(0, Math.min(order.graceMs, QUICK_STOP_MS));
    const delayMs = attempt.behaviour?.ignoresTerm ? order.graceMs : quickMs;
    this.#world.after(delayMs, () => {
      if (attempt.alive) this.#end(attempt, { cause: order.cause });
    });
  }

  #renew(deadlines: { uid: string; killAtBootMs: number }[]): void {
    for (const { uid, killAtBootMs } of deadlines) {
      const attempt = this.#attempts.get(uid);
      if (attempt) attempt.killAtMs = killAtBootMs;
    }
    this.#watch();
  }

  #end(attempt: SimAttempt, how: Partial<Observation>): void {
    this.#write(attempt);
    attempt.alive = false;
    const { uid } = attempt;
    const bytes = { stdoutBytes: this.spool.bytesOf(uid), stderrBytes: 0 };
    attempt.observation = { uid, state: 'ENDED', ...how, ...bytes };
    this.spool.ended(uid);
    const code = how.cause === 'exited' ? (how.exitCode ?? null) : null;
    this.#world.note(this.name, `ended ${attempt.uid} ${how.cause} ${code ?? how.message ?? ''}`);
    this.#options.watcher.ended(this.name, attempt.uid, code);
    this.#changed();
  }

  /** One per machine; it looks at the leases and needs no agent. */
  #watch(): void {
    if (this.#watchdog) return;
    this.#watchdog = this.#world.after(WATCHDOG_PERIOD_MS, () => {
      this.#watchdog = null;
      let live = 0;
      for (const attempt of this.#attempts.values()) {
        if (attempt.alive && this.#world.nowMs >= attempt.killAtMs) {
          this.#options.watcher.expired(attempt.uid);
          this.#end(attempt, { cause: 'lost', message: 'its lease ran out' });
        }
        if (attempt.alive) live++;
      }
      if (live > 0) this.#watch();
    });
  }
}

function localOf(attempt: SimAttempt): LocalAttempt {
  return {
    observation: { ...attempt.observation },
    attemptLeaseMs: attempt.order?.attemptLeaseMs ?? 0,
    graceMs: attempt.order?.graceMs ?? 0,
  };
}
