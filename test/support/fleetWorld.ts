/** A controller with a pool of the fake provider, and agents that join from its machines. */
import { createJoinSecrets } from '../../src/control/pools/joinSecrets.ts';
import type { ManagedPool } from '../../src/control/pools/pool.ts';
import { poolPolicy } from '../../src/core/placement/poolPolicy.ts';
import { freePool } from '../../src/core/placement/admission.ts';
import { seededRandom } from '../../src/lib/random.ts';
import type { Instance } from '../../src/model/instance.ts';
import { poolSettings } from '../../src/model/poolSettings.ts';
import type { Capabilities } from '../../src/providers/contract.ts';
import { FakeAccount } from '../../src/providers/fake/account.ts';
import { ScriptedFaults } from '../../src/providers/fake/faults.ts';
import type { FakeMachine } from '../../src/providers/fake/machine.ts';
import { createFakeProvider } from '../../src/providers/fake/provider.ts';
import { machine as registration, TestAgent, TestController } from './testController.ts';

export interface FleetWorldOptions {
  settings?: Record<string, unknown>;
  capabilities?: Partial<Capabilities>;
  longestMs?: number;
}

const SECOND = 1000;

export class FleetWorld {
  readonly test: TestController;
  readonly faults = new ScriptedFaults();
  readonly account: FakeAccount;
  readonly agents = new Map<FakeMachine, TestAgent[]>();
  /** Their agents live on, whatever the provider says. */
  readonly undead = new Set<FakeMachine>();
  /** False: machines start, but nothing on them. */
  joins = true;
  /** Joins that were. */
  readonly refused: unknown[] = [];
  readonly #pool: (test: TestController) => ManagedPool;

  constructor({ settings = {}, capabilities = {}, longestMs = 0 }: FleetWorldOptions = {}) {
    const given = poolSettings.parse({
      largestWorker: { cpus: 8, memoryBytes: 2 ** 34 },
      ...{ max: 4, cooldownMs: SECOND, idleTimeoutMs: 60 * SECOND, pollMs: SECOND },
      ...{ network: 'lan', bootTimeoutMs: 300 * SECOND, ...settings },
    });
    const policy = poolPolicy('rented', given);
    this.test = new TestController({
      pools: [freePool('default'), policy],
      // A controller that crashed cannot write any more, and knows it.
      onFatal: () => undefined,
      fleet: (test) => ({
        pools: [this.#pool(test)],
        launching: {
          joinSecrets: createJoinSecrets('key'),
          agent: () => ({ url: 'http://127.0.0.1:7070', authorities: '' }),
        },
      }),
    });
    const { clock } = this.test;
    this.account = new FakeAccount({
      ...{ clock, faults: this.faults, random: seededRandom(7) },
      hooks: { started: (machine) => void this.#start(machine) },
    });
    this.#pool = () => ({
      ...{ name: 'rented', kind: 'fake', policy, settings: given, longestMs, perUser: false },
      provider: createFakeProvider({
        ...{ account: this.account, clusterId: 'c0test', pool: 'rented', clock, capabilities },
      }),
    });
  }

  async start(): Promise<this> {
    await this.test.start();
    return this;
  }

  close(): Promise<void> {
    return this.test.close();
  }

  instances(): Instance[] {
    const { instances } = this.test.controller.state.machines;
    return [...instances.values()].map(({ instance }) => instance);
  }

  async pass(seconds: number, step = 1): Promise<void> {
    for (let at = 0; at < seconds; at += step) {
      await this.test.clock.advance(step * SECOND);
      await this.sync();
    }
  }

  /** All agents of machines that exist say what they run, and do as they are told. */
  async sync(): Promise<void> {
    const there = new Set(this.account.existing());
    for (const [machine, agents] of this.agents) {
      if (!there.has(machine) && !this.undead.has(machine)) continue;
      for (const agent of agents) if (agent.joined) await this.#obey(agent).catch(() => undefined);
    }
  }

  /** What an agent runs ends now, as its command did. */
  async end(agent: TestAgent, exitCode: number): Promise<void> {
    for (const [uid, one] of agent.runs) {
      agent.runs.set(uid, { ...one, state: 'ENDED', cause: 'exited', exitCode });
    }
    await this.#obey(agent);
  }

  async #obey(agent: TestAgent): Promise<void> {
    const reply = await agent.sync([...agent.runs.values()]);
    for (const uid of reply.acknowledged) agent.runs.delete(uid);
    for (const { uid } of reply.desired) agent.runs.set(uid, { uid, state: 'RUNNING' });
    for (const { uid, cause } of reply.stop) {
      if (agent.runs.has(uid)) agent.runs.set(uid, { uid, state: 'ENDED', cause });
    }
  }

  async #start(machine: FakeMachine): Promise<void> {
    if (!this.joins) return;
    const { order } = machine;
    const agents = Array.from({ length: order.workers }, (_, rank) => {
      const id = `${machine.handle}:${rank}`;
      return new TestAgent(this.test, {
        ...registration(id),
        host: machine.host,
        instance: machine.handle,
      });
    });
    this.agents.set(machine, agents);
    for (const agent of agents) {
      await this.test.it.join(order.joinToken, agent.request).then(
        (joined) => (agent.joined = joined),
        // Nobody wants it any more: its agent would end.
        (error: unknown) => void this.refused.push(error),
      );
    }
  }
}
