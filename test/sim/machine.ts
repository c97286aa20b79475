/**
 * A machine: processes and attempt directories that outlive agents, a watchdog that outlives them too, and
 * reboots that end everything but the disk.
 */
import type { Identity, IdentityFile } from '../../src/agent/agent.ts';
import type { LocalAttempt, Runtime } from '../../src/agent/runtimes/contract.ts';
import type { AttemptOrder, Observation, StopOrder } from '../../src/protocol/agent.ts';
import type { Timer } from '../../src/lib/clock.ts';
import type { Process, World } from './world.ts';

export interface SimAttempt {
  uid: string;
  order: AttemptOrder | null;
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

export class Machine {
  readonly name: string;
  readonly #world: World;
  readonly #behave: (order: AttemptOrder) => Behaviour;
  readonly attempts = new Map<string, SimAttempt>();
  boot = 1;
  identity: Identity | null = null;
  /** Exit codes that really happened, by uid: what a visible result is checked against. */
  readonly exits: Map<string, number>;
  #changed: () => void = () => undefined;
  #watchdog: Timer | null = null;

  constructor(
    world: World,
    name: string,
    exits: Map<string, number>,
    behave: (order: AttemptOrder) => Behaviour,
  ) {
    this.#world = world;
    this.name = name;
    this.exits = exits;
    this.#behave = behave;
  }

  identityFile(): IdentityFile {
    return {
      load: () => this.identity,
      save: (identity) => {
        this.identity = { ...identity };
      },
    };
  }

  /** The runtime of one agent process; a later agent gets another over the same machine. */
  runtime(agent: Process): Runtime {
    return {
      list: () => [...this.attempts.values()].map(localOf),
      start: (order) => this.#start(order),
      stop: (order) => this.#stop(order),
      forget: (uid) => void this.attempts.delete(uid),
      renewLease: (deadlines) => {
        for (const { uid, killAtBootMs } of deadlines) {
          const attempt = this.attempts.get(uid);
          if (attempt) attempt.killAtMs = killAtBootMs;
        }
        this.#watch();
      },
      onChange: (changed) => {
        this.#changed = () => this.#world.inside(agent, changed);
      },
      close: () => Promise.resolve(),
    };
  }

  /** Power off and on: no process survives, directories do. */
  reboot(): void {
    this.boot++;
    for (const attempt of this.attempts.values()) {
      if (attempt.alive) this.#end(attempt, { cause: 'lost', message: 'the machine restarted' });
    }
  }

  live(): SimAttempt[] {
    return [...this.attempts.values()].filter((attempt) => attempt.alive);
  }

  #start(order: AttemptOrder): void {
    if (this.attempts.has(order.uid)) return;
    const attempt: SimAttempt = {
      uid: order.uid,
      order,
      observation: { uid: order.uid, state: 'STARTING' },
      alive: true,
      killAtMs: Infinity,
      stopping: null,
    };
    this.attempts.set(order.uid, attempt);
    const { durationMs, exitCode, ignoresTerm } = this.#behave(order);
    this.#world.note(`${this.name} starts ${order.uid}`);
    const startMs = this.#world.between(1, 50);
    this.#world.after(startMs, 'process starts', () => {
      if (!attempt.alive || attempt.stopping) return;
      attempt.observation = { uid: order.uid, state: 'RUNNING' };
      this.#changed();
    });
    this.#world.after(startMs + durationMs, 'process exits', () => {
      if (attempt.alive && !attempt.stopping) {
        this.#end(attempt, { cause: 'exited', exitCode });
      }
    });
    attempt.order = { ...order, env: { ...order.env, IGNORES_TERM: String(ignoresTerm) } };
  }

  #stop(order: StopOrder): void {
    const attempt = this.attempts.get(order.uid);
    if (!attempt) {
      this.attempts.set(order.uid, {
        uid: order.uid,
        order: null,
        observation: { uid: order.uid, state: 'ENDED', cause: 'never-started' },
        alive: false,
        killAtMs: Infinity,
        stopping: order,
      });
      this.#changed();
      return;
    }
    if (!attempt.alive || attempt.stopping) return;
    attempt.stopping = order;
    attempt.observation = { uid: order.uid, state: 'STOPPING' };
    const ignores = attempt.order?.env['IGNORES_TERM'] === 'true';
    const delayMs = ignores ? order.graceMs : this.#world.between(0, Math.min(order.graceMs, 2000));
    this.#world.after(delayMs, 'process stops', () => {
      if (attempt.alive) this.#end(attempt, { cause: order.cause });
    });
  }

  #end(attempt: SimAttempt, how: Partial<Observation>): void {
    attempt.alive = false;
    attempt.observation = { uid: attempt.uid, state: 'ENDED', ...how };
    if (how.cause === 'exited') this.exits.set(attempt.uid, how.exitCode ?? -1);
    this.#world.note(`${this.name} ${attempt.uid} ${how.cause} ${how.exitCode ?? ''}`);
    this.#changed();
  }

  /** One per machine; it looks at the leases and needs no agent. */
  #watch(): void {
    if (this.#watchdog) return;
    this.#watchdog = this.#world.after(1000, 'watchdog', () => {
      this.#watchdog = null;
      for (const attempt of this.attempts.values()) {
        if (!attempt.alive || this.#world.nowMs < attempt.killAtMs) continue;
        this.#end(attempt, { cause: 'lost', message: 'its lease ran out' });
      }
      if (this.live().length > 0) this.#watch();
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
