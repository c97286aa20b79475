/**
 * A container group of the emulator: an image that is prepared, and instances that are brought to
 * the number of replicas, each in the states and times that SaladCloud has.
 */
import type { Timer } from '../../../src/lib/clock.ts';
import { EmulatedInstance, type ContainerSpec, type World } from './instances.ts';

export class EmulatedGroup {
  readonly id: string;
  readonly name: string;
  container: ContainerSpec;
  replicas: number;
  readonly autostart: boolean;
  readonly restartPolicy: string;
  readonly countryCodes: string[];
  readonly createdAtMs: number;
  updatedAtMs: number;
  startedAtMs: number | null = null;
  version = 1;
  preparing = true;
  description: string | null = null;
  instances: EmulatedInstance[] = [];
  /** Of instances that are no more. */
  pastBilledMs = 0;
  #failed = false;
  #wanted = false;
  /** Ended by themselves, and not to be started again. */
  #finished = 0;
  #timer: Timer | undefined;
  readonly #world: World;

  constructor(world: World, body: GroupBody) {
    this.#world = world;
    this.id = world.mintId();
    this.name = body.name;
    this.container = body.container;
    this.replicas = body.replicas;
    this.autostart = body.autostart_policy;
    this.restartPolicy = body.restart_policy;
    this.countryCodes = body.country_codes ?? [];
    this.createdAtMs = world.clock.now();
    this.updatedAtMs = this.createdAtMs;
    this.#wanted = this.autostart;
    this.#prepare();
  }

  status(): string {
    if (this.preparing) return 'pending';
    if (this.#failed) return 'failed';
    if (!this.#wanted) return 'stopped';
    if (this.instances.some(({ state }) => state === 'running')) return 'running';
    return this.#finished > 0 && this.#finished >= this.replicas ? 'succeeded' : 'deploying';
  }

  /** Time in the state running, of all instances ever. */
  billedMs(): number {
    const nowMs = this.#world.clock.now();
    const now = this.instances.map(
      (one) => one.billedMs + (one.state === 'running' ? nowMs - one.changedAtMs : 0),
    );
    return now.reduce((sum, ms) => sum + ms, this.pastBilledMs);
  }

  start(): void {
    this.#wanted = true;
    this.#finished = 0;
    this.startedAtMs = this.#world.clock.now();
    if (this.#failed) this.#prepare();
    else this.#reconcile();
  }

  stop(): void {
    this.#wanted = false;
    this.#reconcile();
  }

  /** Whoever changes the container starts every replica anew; another number does not. */
  change(body: { replicas?: number | null; container?: Partial<ContainerSpec> | null }): void {
    this.updatedAtMs = this.#world.clock.now();
    if (body.replicas !== undefined && body.replicas !== null) this.replicas = body.replicas;
    this.#finished = Math.min(this.#finished, this.replicas);
    if (body.container) {
      const { environment_variables: variables, resources, ...rest } = body.container;
      const old = this.container;
      this.container = { ...old, ...rest, resources: { ...old.resources, ...resources } };
      this.container.environment_variables = { ...old.environment_variables, ...variables };
      this.version++;
      for (const one of this.instances) if (one.state === 'running') this.recreate(one);
      if (rest.image !== undefined && rest.image !== old.image) this.#prepare();
    }
    this.#reconcile();
  }

  /** Without a word to anybody: another machine, another container, an empty disk. */
  reallocate(instance: EmulatedInstance, sameId: boolean): void {
    this.#world.event(this, instance, 'instance_interrupted');
    if (!sameId) {
      this.#forget(instance);
      this.#reconcile();
      return;
    }
    instance.halt();
    instance.become('allocating');
    instance.machineId = '';
    this.#allocate(instance);
  }

  recreate(instance: EmulatedInstance): void {
    instance.halt();
    instance.become('creating');
    instance.version = this.version;
    this.#after(instance, this.#world.times.createMs, () => this.#run(instance));
  }

  close(): void {
    this.#timer?.cancel();
    for (const one of [...this.instances]) this.#forget(one);
  }

  #prepare(): void {
    this.preparing = true;
    this.#failed = false;
    this.description = null;
    this.#timer?.cancel();
    const { prepareMs } = this.#world.times;
    if (prepareMs === 0) this.#prepared();
    else this.#timer = this.#world.clock.setTimer(prepareMs, () => this.#prepared());
  }

  #prepared(): void {
    this.preparing = false;
    const { imageFailure } = this.#world.conduct;
    this.#failed = imageFailure !== '';
    this.description = imageFailure || null;
    if (!this.#failed) this.#reconcile();
  }

  #reconcile(): void {
    if (this.preparing || this.#failed) return;
    const alive = this.instances.filter(({ state }) => state !== 'stopping');
    const most = this.#wanted ? this.replicas - this.#finished : 0;
    for (const one of leastDear(alive).slice(0, Math.max(0, alive.length - most))) {
      this.#world.event(this, one, 'instance_stopped');
      one.halt();
      one.become('stopping');
      this.#after(one, this.#world.times.stopMs, () => this.#forget(one));
    }
    for (let more = most - alive.length; more > 0; more--) {
      const one = new EmulatedInstance(this.#world);
      one.version = this.version;
      this.instances.push(one);
      this.#allocate(one);
    }
  }

  #allocate(instance: EmulatedInstance): void {
    const { times, conduct, mintId } = this.#world;
    this.#after(instance, times.allocateMs, () => {
      if (conduct.stuckInAllocating) return this.#allocate(instance);
      instance.machineId = mintId();
      instance.become('downloading');
      this.#after(instance, times.downloadMs, () => {
        instance.become('creating');
        this.#after(instance, times.createMs, () => this.#run(instance));
      });
    });
  }

  #run(instance: EmulatedInstance): void {
    instance.become('running');
    this.#world.event(this, instance, 'instance_started');
    if (this.#world.conduct.neverReady) return;
    const { id: instanceId, machineId } = instance;
    const container = this.#world.run({
      instanceId,
      machineId,
      command: this.container.command ?? [],
      environment: {
        ...this.container.environment_variables,
        SALAD_INSTANCE_ID: instanceId,
        SALAD_MACHINE_ID: machineId,
        SALAD_CONTAINER_GROUP_ID: this.id,
        SALAD_CONTAINER_GROUP_NAME: this.name,
      },
    });
    instance.container = container;
    instance.started = true;
    void container.ended.then((code) => {
      if (instance.container === container) this.#ended(instance, code);
    });
  }

  #ended(instance: EmulatedInstance, code: number): void {
    this.#world.event(this, instance, `instance_exited_${code}`);
    instance.container = undefined;
    const again = this.restartPolicy === 'always' || (this.restartPolicy === 'on_failure' && code);
    if (again) return this.recreate(instance);
    this.#finished++;
    this.#forget(instance);
  }

  #forget(instance: EmulatedInstance): void {
    instance.halt();
    instance.become('stopping');
    this.pastBilledMs += instance.billedMs;
    this.instances = this.instances.filter((one) => one !== instance);
  }

  #after(instance: EmulatedInstance, delayMs: number, then: () => void): void {
    instance.timer?.cancel();
    instance.timer = this.#world.clock.setTimer(delayMs, then);
  }
}

export interface GroupBody {
  name: string;
  container: ContainerSpec;
  replicas: number;
  autostart_policy: boolean;
  restart_policy: string;
  country_codes?: string[];
}

/** The cheapest to delete first; of equals the one that has come least far, then the newest. */
function leastDear(instances: readonly EmulatedInstance[]): EmulatedInstance[] {
  const far = ['allocating', 'downloading', 'creating', 'running'];
  return instances
    .toReversed()
    .toSorted(
      (a, b) => a.deletionCost - b.deletionCost || far.indexOf(a.state) - far.indexOf(b.state),
    );
}
