/** One cluster's way to the fake provider: the contract, and what goes wrong in its calls. */
import type { Clock } from '../../lib/clock.ts';
import type { Capabilities, DestroyRequest, DestroyResult, LaunchBatch } from '../contract.ts';
import type { LaunchResult, Listing, Machine, MachineRef, Probe, Provider } from '../contract.ts';
import type { Refusal } from '../contract.ts';
import type { FakeAccount } from './account.ts';
import type { FakeMachine } from './machine.ts';

export interface FakeProviderOptions {
  account: FakeAccount;
  clusterId: string;
  pool: string;
  /** Of the process that asks: with it die the replies. */
  clock: Clock;
  capabilities?: Partial<Capabilities>;
}

const CAPABILITIES: Capabilities = {
  noun: 'pretended machine',
  batches: true,
  gangs: true,
  sized: true,
  queues: false,
  labels: true,
};

/** How one call ends for whoever made it. */
type Reply<Value> =
  | { kind: 'reply'; value: Value }
  /** No answer comes; the client gives up and says so. */
  | { kind: 'lost'; value: Value }
  | { kind: 'thrown'; error: Error };

export function createFakeProvider(options: FakeProviderOptions): Provider {
  return new FakeProvider(options);
}

class FakeProvider implements Provider {
  readonly capabilities: Capabilities;
  readonly #account: FakeAccount;
  readonly #clusterId: string;
  readonly #pool: string;
  readonly #clock: Clock;
  #closed = false;

  constructor({ account, clusterId, pool, clock, capabilities }: FakeProviderOptions) {
    this.capabilities = { ...CAPABILITIES, ...capabilities };
    this.#account = account;
    this.#clusterId = clusterId;
    this.#pool = pool;
    this.#clock = clock;
  }

  launch(batch: LaunchBatch): Promise<LaunchResult> {
    return this.#call((): Reply<LaunchResult> => {
      const refused = this.#refusal(batch);
      if (refused) return { kind: 'reply', value: refused };
      return this.#launched(batch);
    });
  }

  list(): Promise<Listing> {
    return this.#call((): Reply<Listing> => {
      const account = this.#account;
      if (account.befalls('list: throws')) {
        return { kind: 'thrown', error: new Error('a listing that nobody can read') };
      }
      if (!account.reachable || account.befalls('list: fails')) {
        const reason = 'The pretended provider does not answer.';
        return { kind: 'lost', value: { kind: 'unknown', reason, retryAfterMs: 0 } };
      }
      const lagMs = account.befalls('list: lags behind') ? account.draw(account.times.lag) : 0;
      const machines = account.shown(this.#clusterId, lagMs);
      return { kind: 'reply', value: { kind: 'known', machines: machines.map(this.#view) } };
    });
  }

  destroy({ machines, target }: DestroyRequest): Promise<DestroyResult> {
    return this.#call((): Reply<DestroyResult> => {
      const account = this.#account;
      const lost = (reason: string): Reply<DestroyResult> => ({
        kind: 'lost',
        value: { kind: 'unknown', reason },
      });
      if (!account.reachable || account.befalls('destroy: request lost')) {
        return lost('The pretended provider does not answer.');
      }
      const doomed = this.capabilities.labels
        ? machines.flatMap((ref) => this.#meant(ref))
        : this.#surplus(machines, target);
      for (const machine of doomed) {
        if (account.befalls('destroy: heard and not done')) continue;
        machine.destroy(account.befalls('destroy: takes long'));
      }
      if (account.befalls('destroy: reply lost')) return lost('The reply did not come.');
      return { kind: 'reply', value: { kind: 'asked' } };
    });
  }

  probe(ref: MachineRef): Promise<Probe> {
    return this.#call((): Reply<Probe> => {
      const [machine] = this.#meant(ref);
      if (!this.#account.reachable || this.#account.befalls('probe: fails')) {
        return { kind: 'reply', value: { kind: 'unknown', reason: 'It could not be looked at.' } };
      }
      if (!machine?.exists) {
        return { kind: 'reply', value: { kind: 'unknown', reason: 'There is no such machine.' } };
      }
      const value: Probe = machine.up
        ? { kind: 'ready', reason: 'Its agent is up.' }
        : { kind: 'warming', reason: 'Its agent is not up yet.' };
      return { kind: 'reply', value };
    });
  }

  logs(ref: MachineRef): Promise<string> {
    const told = this.#meant(ref).map(({ handle, reason }) => `${handle}: ${reason}\n`);
    return this.#call(() => ({ kind: 'reply', value: told.join('') }));
  }

  close(): Promise<void> {
    this.#closed = true;
    return Promise.resolve();
  }

  /** What it says no to before it does anything. */
  #refusal(batch: LaunchBatch): LaunchResult | null {
    const account = this.#account;
    const refuse = (refusal: Refusal, reason: string, retryAfterMs = 0): LaunchResult => ({
      ...{ kind: 'refused', refusal, reason, retryAfterMs },
    });
    if (!account.reachable || account.befalls('launch: unreachable')) {
      return refuse('unreachable', 'The pretended provider cannot be reached.');
    }
    if (account.befalls('launch: too many requests')) {
      const retryAfterMs = account.draw(account.times.retryAfter);
      return refuse(
        'capacity',
        'Requests come too often; it wants to be left alone.',
        retryAfterMs,
      );
    }
    if (account.befalls('launch: configuration refused')) {
      return refuse('configuration', 'It has no template of that name.');
    }
    const usable = account.hosts.some((host) => !batch.avoid.includes(host));
    const room = account.quota - account.existing().length;
    const short = room < batch.intents.length || !usable;
    if (account.befalls('launch: no capacity') || (short && this.#missing(batch).length > 0)) {
      return refuse('capacity', 'It has no machine of this kind just now.');
    }
    return null;
  }

  #launched(batch: LaunchBatch): Reply<LaunchResult> {
    const account = this.#account;
    const unknown = (reason: string): LaunchResult => ({ kind: 'unknown', reason });
    const lost = (reason: string): Reply<LaunchResult> => ({
      kind: 'lost',
      value: unknown(reason),
    });
    if (account.befalls('launch: request lost')) return lost('The request got no answer.');
    const missing = this.#missing(batch);
    if (account.befalls('launch: appears late')) {
      const lateMs = account.draw(account.times.late);
      account.createLater(lateMs, () => this.#create(batch, this.#missing(batch)));
      return lost('The request got no answer.');
    }
    if (missing.length > 1 && account.befalls('launch: creates only a part')) {
      this.#create(batch, missing.slice(1));
      return { kind: 'reply', value: unknown('It failed half way.') };
    }
    this.#create(batch, missing);
    if (missing.length > 0 && account.befalls('launch: taken twice')) this.#create(batch, missing);
    if (account.befalls('launch: fails though it created')) {
      return { kind: 'thrown', error: new Error('500 with a page that is no JSON') };
    }
    if (account.befalls('launch: refused though it created')) {
      const reason = 'It says that it has no machine, and has made one.';
      const value = { kind: 'refused', refusal: 'capacity', reason, retryAfterMs: 0 } as const;
      return { kind: 'reply', value };
    }
    if (account.befalls('launch: reply lost')) return lost('The reply did not come.');
    const handles = batch.intents.map(({ label }) => this.#handleOf(label));
    const script = `launch ${batch.intents.length} of ${batch.name}`;
    return { kind: 'reply', value: { kind: 'launched', handles, script } };
  }

  /** Intents of the batch that nothing was made for; where it scales by a number, those short. */
  #missing({ intents, target }: LaunchBatch): LaunchBatch['intents'] {
    if (this.capabilities.labels) {
      return intents.filter(
        ({ label }) => this.#account.labelled(this.#clusterId, label).length === 0,
      );
    }
    const short = target - this.#ofPool().length;
    return short > 0 ? intents.slice(-short) : [];
  }

  #create(batch: LaunchBatch, intents: LaunchBatch['intents']): void {
    const { workers, resources, runAs, timeLimitMs, agent, avoid } = batch;
    for (const { label, joinToken } of intents) {
      this.#account.create({
        ...{ clusterId: this.#clusterId, pool: this.#pool, label, joinToken },
        ...{ workers, resources, runAs, timeLimitMs, agent, avoid },
      });
    }
  }

  #handleOf(label: string): string {
    if (!this.capabilities.labels) return '';
    return this.#account.labelled(this.#clusterId, label)[0]?.handle ?? '';
  }

  /** Those of this cluster that a reference names: by handle, or all with the label. */
  #meant({ label, handle }: MachineRef): FakeMachine[] {
    if (handle === '') return label ? this.#account.labelled(this.#clusterId, label) : [];
    const machine = this.#account.machines.get(handle);
    return machine?.order.clusterId === this.#clusterId ? [machine] : [];
  }

  /** The machines named, and as many of the newest as are above the target then. */
  #surplus(named: readonly MachineRef[], target: number): FakeMachine[] {
    const doomed = new Set(named.flatMap((ref) => this.#meant(ref)));
    const left = this.#ofPool().filter((machine) => !doomed.has(machine));
    for (const machine of left.toReversed().slice(0, Math.max(0, left.length - target))) {
      doomed.add(machine);
    }
    return [...doomed];
  }

  #ofPool(): FakeMachine[] {
    return this.#account
      .existing()
      .filter(({ order }) => order.clusterId === this.#clusterId && order.pool === this.#pool);
  }

  readonly #view = (machine: Machine): Machine =>
    this.capabilities.labels ? machine : { ...machine, label: '' };

  /** There, what it does there, and back; the way back ends with the process that asked. */
  #call<Value>(perform: () => Reply<Value>): Promise<Value> {
    if (this.#closed) return Promise.reject(new Error('this provider is closed'));
    const account = this.#account;
    const { promise, resolve, reject } = Promise.withResolvers<Value>();
    account.clock.setTimer(account.draw(account.times.travel), () => {
      const reply = perform();
      const { travel, replyTimeout } = account.times;
      const backMs = account.draw(reply.kind === 'lost' ? replyTimeout : travel);
      this.#clock.setTimer(backMs, () => {
        if (reply.kind === 'thrown') reject(reply.error);
        else resolve(reply.value);
      });
    });
    return promise;
  }
}
