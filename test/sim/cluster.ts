/**
 * The cluster under test: one controller, three machines with agents, and the network between them.
 */
import { createHash } from 'node:crypto';
import type { PoolPolicy } from '../../src/core/placement/admission.ts';
import { DEFAULT_POLICY } from '../../src/core/schedule/plan.ts';
import type { ManagedPool } from '../../src/control/pools/pool.ts';
import { startAgent, type AgentTransport } from '../../src/agent/agent.ts';
import type { Clock } from '../../src/lib/clock.ts';
import { DroverError } from '../../src/lib/errors.ts';
import { unpackSpec } from '../../src/model/spec.ts';
import type { Coordinator } from '../../src/protocol/coordinator.ts';
import type { Commit } from './checkers/mirror.ts';
import { Checker } from './checkers/checker.ts';
import { CONTROLLER_POINTS, ControllerProcess, findingLog, TIMERS } from './controllerProcess.ts';
import { Coverage } from './coverage.ts';
import { CrashPoints } from './crashPoints.ts';
import { LogDisk } from './logs.ts';
import { Machine, type Effect } from './machine.ts';
import { Network } from './network.ts';
import { JOIN_SECRETS } from './people.ts';
import { copyOf } from './plainData.ts';
import { registrationOf } from './registration.ts';
import type { Site } from './sites.ts';
import { behaviour, runMs } from './specs.ts';
import type { Target } from './workload.ts';
import type { Process, World } from './world.ts';

/** Sooner than a busy seed is over. */
const SOON_AGED_MS = 60_000;
const LONG_RUN_MS = 10_000;
const CRASH_POINT_CHANCE = 0.25;
/** Effects an agent may die before, and how often it has them. */
const AGENT_POINTS = { start: 20, stop: 10, forget: 30, renew: 60, save: 4 };

export interface Scenario {
  /** Machines that are there from the beginning. */
  sites: readonly Site[];
  pools: readonly PoolPolicy[];
  /** Pools whose machines come by themselves, for a controller process with this clock. */
  manage?: (clock: Clock) => ManagedPool[];
}

export class Cluster {
  readonly world: World;
  readonly network: Network;
  readonly controller: ControllerProcess;
  readonly checker: Checker;
  readonly coverage: Coverage;
  readonly machines: Machine[] = [];
  readonly pools: readonly PoolPolicy[];
  readonly logs = new LogDisk();
  /** Whether tasks write anything; logs cost events, so not in all seeds. */
  readonly talkative: boolean;
  /** Called once, when a task that runs long is assigned on disk and its machine does not know. */
  onAssigned: ((machine: Machine) => void) | null = null;
  /** Told of everything that becomes durable. */
  onCommit: (commit: Commit) => void = () => undefined;
  /** Called once, when a task waits for a time before it is tried again. */
  onBackOff: (() => void) | null = null;
  /** Machines whose agent dies just before its next such effect. */
  readonly doomed = new Map<Machine, Effect>();
  readonly #agents = new Map<Machine, Process>();
  readonly #agentPoints: CrashPoints<Effect>;

  constructor(world: World, file: string, { sites, pools, manage }: Scenario) {
    this.world = world;
    this.pools = pools;
    this.talkative = world.chance(0.4);
    const policy = { ...DEFAULT_POLICY, ...(world.chance(0.5) && { ageingMs: SOON_AGED_MS }) };
    this.checker = new Checker({
      ...{ pools: this.pools, logs: this.logs, ageingMs: policy.ageingMs },
      disk: () => this.controller.disk,
      nowMs: () => world.nowMs,
      controllerMs: () => world.timeOn(this.controller.host),
    });
    this.coverage = new Coverage(this.checker.mirror);
    // Swarm: each seed turns on a random subset of the faults, with random rates.
    const rate = (most: number): number => (world.chance(0.4) ? world.random.next() * most : 0);
    const faults = { drop: rate(0.2), duplicate: rate(0.3), slow: rate(0.15) };
    this.network = new Network(world, faults, (server) => {
      if (server === this.controller.process) this.controller.point('before an answer');
    });
    this.controller = new ControllerProcess({
      ...{ world, file, pools: this.pools, logs: this.logs, policy, ...(manage && { manage }) },
      faults: { commitUnknown: rate(0.02), commitFails: rate(0.01), slow: rate(0.2) },
      points: new CrashPoints(world, CONTROLLER_POINTS, CRASH_POINT_CHANCE),
      checker: () => this.checker,
      coverage: () => this.coverage,
      onCommit: (commit) => this.#committed(commit),
    });
    this.#agentPoints = new CrashPoints(world, AGENT_POINTS, CRASH_POINT_CHANCE / 2);
    for (const site of sites) this.addMachine(site);
  }

  async start(): Promise<void> {
    await this.controller.start();
    for (const machine of this.machines) this.startAgent(machine);
  }

  target(): Target {
    const { process, controller, unknownCommits } = this.controller;
    return { process, coordinator: controller?.coordinator ?? null, unknownCommits };
  }

  agentOf(machine: Machine): Process | null {
    return this.#agents.get(machine) ?? null;
  }

  addMachine(site: Site): Machine {
    const machine = this.#machine(site);
    this.machines.push(machine);
    return machine;
  }

  /** Its provider has taken it back, with all that was on it. */
  removeMachine(machine: Machine): void {
    const process = this.#agents.get(machine);
    if (process) process.alive = false;
    this.#agents.delete(machine);
    this.machines.splice(this.machines.indexOf(machine), 1);
    machine.powerOff();
    this.checker.wiped(machine.name);
    this.world.note(machine.name, 'gone');
  }

  startAgent(machine: Machine): void {
    if (machine.off || this.#agents.get(machine)?.alive) return;
    const { world, checker } = this;
    const process = world.spawn(machine.name, machine.host);
    this.#agents.set(machine, process);
    world.note(machine.name, 'agent up');
    for (const uid of machine.live()) this.coverage.adopted.add(uid);
    startAgent({
      transport: this.#transport(process, machine),
      runtime: machine.runtime(process),
      identityFile: machine.identityFile(process),
      joinToken: machine.site.rented?.joinToken ?? JOIN_SECRETS[machine.site.pool] ?? null,
      registration: registrationOf(machine),
      clock: world.clockOf(process),
      random: world.random,
      log: findingLog((what) => checker.broken(`${machine.name}: ${what}`)),
      onTunnel: () => undefined,
    });
    if (!this.talkative) return;
    machine.spool.start(process, (chunks) =>
      this.#call(process, `logs ${machine.name}`, (c) =>
        c.appendLogs(machine.identity?.token ?? '', copyOf(chunks)),
      ),
    );
  }

  endAgent(machine: Machine, why: string, downMs: number): void {
    const process = this.#agents.get(machine);
    if (!process?.alive) return;
    process.alive = false;
    this.world.note(machine.name, `agent gone: ${why}`);
    this.world.after(downMs, () => this.startAgent(machine));
  }

  /** From now on nothing goes wrong by itself. */
  calm(): void {
    this.checker.peace();
    this.network.faults = { drop: 0, duplicate: 0, slow: 0 };
    this.network.cut.clear();
    this.onAssigned = null;
    this.onBackOff = null;
    this.doomed.clear();
    this.controller.calm();
    this.#agentPoints.disarm();
    const processes = [this.controller.process, ...this.#agents.values()];
    for (const process of processes) if (process?.paused) this.world.resume(process);
    for (const machine of this.machines) this.startAgent(machine);
  }

  #committed(commit: Commit): void {
    const { attempts, tasks } = commit;
    this.onCommit(commit);
    if (tasks.some(({ row }) => row.state === 'PENDING' && row.not_before_ms > 0)) {
      this.onBackOff?.();
      this.onBackOff = null;
    }
    if (!this.onAssigned) return;
    const { jobs, workers } = this.checker.mirror;
    const long = attempts.find(({ before, row }) => {
      const job = jobs.get(row.job);
      return !before && job && runMs(unpackSpec(job.spec)) >= LONG_RUN_MS;
    });
    const worker = long && workers.get(long.row.worker);
    const machine = this.machines.find(({ name }) => name === worker?.machine);
    if (!machine) return;
    this.onAssigned(machine);
    this.onAssigned = null;
  }

  #machine(site: Site): Machine {
    const { world, checker, coverage } = this;
    const machine: Machine = new Machine({
      ...{ world, site, killMarginMs: TIMERS.killMarginMs, talkative: this.talkative },
      behave: (order) => behaviour(world, order.command),
      watcher: {
        started: (on, order) => {
          if (order.restore) coverage.saw('attempt resumed');
          checker.started(on, order);
        },
        ended: (on, uid, exitCode) => checker.ended(on, uid, exitCode),
        expired: () => coverage.saw('attempt ended by the watchdog'),
        saved: (uid) => this.#save(machine, uid),
      },
      beforeEffect: (_agent, effect) => {
        const doomed = this.doomed.get(machine) === effect;
        if (!doomed && !this.#agentPoints.passes(effect)) return;
        this.doomed.delete(machine);
        coverage.saw('agent crash at an effect');
        this.endAgent(machine, `before ${effect}`, world.between(doomed ? 20_000 : 100, 60_000));
      },
    });
    return machine;
  }

  /** As an agent stores and reports it; with nobody there it waits for the next time. */
  #save(machine: Machine, uid: string): void {
    const process = this.#agents.get(machine);
    if (!process?.alive || process.paused) return;
    const { world, checker, coverage } = this;
    const text = `${uid} at ${world.nowMs}`;
    const manifest = `sha256:${createHash('sha256').update(text).digest('hex')}`;
    checker.saved(uid, manifest);
    const token = machine.identity?.token ?? '';
    const takenBootMs = Math.round(world.nowMs);
    const sizes = { bytes: text.length, files: 1 };
    const report = { uid, manifest, ...sizes, reason: 'interval', takenBootMs };
    const tell = (): Promise<void> =>
      this.#call(process, `checkpoint ${machine.name}`, (c) => c.addCheckpoint(token, report)).then(
        () => coverage.saw('checkpoint stored'),
        (error: unknown) => {
          const stale = error instanceof DroverError && error.code === 'STALE';
          if (stale) coverage.saw('checkpoint of a lost attempt refused');
        },
      );
    void tell();
    // Somewhere on the way it was kept, and comes a second time when newer ones are stored.
    if (world.chance(0.25)) world.after(world.between(1000, 20_000), () => void tell());
  }

  #call<Reply>(
    process: Process,
    what: string,
    invoke: (coordinator: Coordinator) => Promise<Reply>,
  ): Promise<Reply> {
    return this.network.call(
      process,
      what,
      () => this.target().process,
      () => invoke(this.target().coordinator as Coordinator),
    );
  }

  #transport(process: Process, machine: Machine): AgentTransport {
    const { checker, coverage } = this;
    const call = <Reply>(what: string, invoke: (c: Coordinator) => Promise<Reply>) =>
      this.#call(process, `${what} ${machine.name}`, invoke);
    return {
      join: (token, request) => call('join', (c) => c.join(token, copyOf(request))),
      sync: (token, request) => {
        const copy = copyOf(request);
        return call('sync', async (c) => {
          try {
            const reply = await c.sync(token, copyOf(copy));
            checker.told(reply);
            if (reply.stop.some(({ cause }) => cause === 'lost')) {
              coverage.saw('unknown attempt told to stop');
            }
            return reply;
          } catch (error) {
            const code = error instanceof DroverError ? error.code : null;
            if (code === 'STALE') coverage.saw('superseded sync');
            if (code === 'UNAUTHENTICATED') coverage.saw('agent token refused');
            throw error;
          }
        });
      },
    };
  }
}
