/** An instance of the emulator: one replica, its state and what it has cost; and its world. */
import type { Clock, Timer } from '../../../src/lib/clock.ts';

export interface ContainerSpec {
  image: string;
  command?: string[] | null;
  priority?: string | null;
  environment_variables?: Record<string, string>;
  resources: Record<string, unknown>;
}

/** How long each step takes. */
export interface Times {
  prepareMs: number;
  allocateMs: number;
  downloadMs: number;
  createMs: number;
  stopMs: number;
}

/** A container that runs somewhere: whoever tests says what that means. */
export interface RunningContainer {
  /** At once and without a warning, as on SaladCloud. */
  kill(): void;
  ended: Promise<number>;
}

export interface Replica {
  instanceId: string;
  machineId: string;
  command: readonly string[];
  environment: Record<string, string>;
}

export interface World {
  clock: Clock;
  times: Times;
  mintId: () => string;
  run: (replica: Replica) => RunningContainer;
  event: (
    group: { name: string; version: number },
    instance: EmulatedInstance,
    name: string,
  ) => void;
  /** Tests switch these on and off. */
  conduct: {
    stuckInAllocating: boolean;
    neverReady: boolean;
    /** Preparing fails with this. */
    imageFailure: string;
    /** SaladCloud hides the variables of a group. */
    hideVariables: boolean;
  };
}

type InstanceState = 'allocating' | 'downloading' | 'creating' | 'running' | 'stopping';

export class EmulatedInstance {
  readonly id: string;
  machineId = '';
  state: InstanceState = 'allocating';
  started = false;
  deletionCost = 0;
  version = 1;
  changedAtMs: number;
  billedMs = 0;
  timer: Timer | undefined;
  container: RunningContainer | undefined;
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
    this.id = world.mintId();
    this.changedAtMs = world.clock.now();
  }

  progress(nowMs: number): number {
    const { downloadMs } = this.#world.times;
    return Math.min(100, Math.floor(((nowMs - this.changedAtMs) * 100) / downloadMs));
  }

  become(state: InstanceState): void {
    const nowMs = this.#world.clock.now();
    if (this.state === 'running') this.billedMs += nowMs - this.changedAtMs;
    this.state = state;
    this.changedAtMs = nowMs;
  }

  halt(): void {
    this.timer?.cancel();
    const { container } = this;
    this.container = undefined;
    this.started = false;
    container?.kill();
  }
}
