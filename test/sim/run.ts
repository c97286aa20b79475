/** One seed: a cluster, a workload, faults until a time, then peace in which everything must end. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startAgent, type Agent } from '../../src/agent/agent.ts';
import { silentLog } from '../../src/lib/log.ts';
import type { Coordinator } from '../../src/protocol/coordinator.ts';
import { ATTEMPT_LEASE_MS, ControllerProcess, JOIN_SECRET } from './controllerProcess.ts';
import { Checker, Violation } from './invariants.ts';
import { Machine } from './machine.ts';
import { Network } from './network.ts';
import { behaviour, startWorkload } from './workload.ts';
import { World, type Process } from './world.ts';

export interface RunResult {
  seed: number;
  hash: string;
  events: number;
  virtualMs: number;
  boots: number;
  violation: { invariant: string; message: string } | null;
  trace: string[];
}

const FAULTS_MS = 180_000;
/** Leases and back-offs that began in the storm run out, then the last retries run. */
const PEACE_MS = 3 * ATTEMPT_LEASE_MS + 30 * 60_000;
const PEACE_STEP_MS = 20_000;
const MACHINES = 4;

export async function runSeed(seed: number, keepLines = 0): Promise<RunResult> {
  const world = new World(seed, keepLines);
  const folder = mkdtempSync(join(memoryFolder(), 'drover-sim-'));
  const simulation = new Simulation(world, join(folder, 'drover.db'));
  let violation: RunResult['violation'] = null;
  try {
    await simulation.run();
  } catch (error) {
    const invariant = error instanceof Violation ? error.invariant : 'error';
    violation = { invariant, message: error instanceof Violation ? error.message : stack(error) };
  } finally {
    simulation.controller.crash();
    rmSync(folder, { recursive: true, force: true });
  }
  return {
    seed,
    hash: world.hash(),
    events: world.events,
    virtualMs: world.nowMs,
    boots: simulation.controller.boots,
    violation,
    trace: world.lines,
  };
}

class Simulation {
  readonly #world: World;
  readonly #network: Network;
  readonly #machines: Machine[] = [];
  readonly #agents = new Map<Machine, { process: Process; agent: Agent }>();
  readonly #checker: Checker;
  readonly controller: ControllerProcess;
  #found: unknown = null;
  #peace = false;

  constructor(world: World, file: string) {
    this.#world = world;
    const exits = new Map<string, number>();
    // Swarm: each seed turns on a random subset of the faults, with random rates.
    const rate = (most: number): number => (world.chance(0.5) ? world.random.next() * most : 0);
    this.#network = new Network(world, {
      drop: rate(0.2),
      duplicate: rate(0.2),
      slow: rate(0.1),
    });
    for (let i = 0; i < MACHINES; i++) {
      const behave = (order: { command: string[] }) => behaviour(world, order.command);
      this.#machines.push(new Machine(world, `machine${i}`, exits, behave));
    }
    this.#checker = new Checker(this.#machines, exits);
    const note = (error: unknown): void => void (this.#found ??= error);
    this.controller = new ControllerProcess({
      world,
      file,
      faults: { commitUnknown: rate(0.01), commitFails: rate(0.01), slow: rate(0.1) },
      onBoot: (_controller, epoch) => this.#guard(() => this.#checker.booted(epoch)),
      onCommit: (batch) => this.#guard(() => this.#checker.committed(batch)),
      onBroken: (what) => note(new Violation('log', what)),
    });
  }

  async run(): Promise<void> {
    const world = this.#world;
    await this.controller.start();
    for (const machine of this.#machines) this.#startAgent(machine);
    const work = startWorkload({
      world,
      network: this.#network,
      checker: this.#guardedChecker(),
      target: () => this.#target(),
      jobs: world.between(5, 25),
      overMs: FAULTS_MS,
    });
    this.#scheduleFaults();
    const check = (): void => {
      this.#guard(() => this.#checker.machines());
      if (this.#found) throw this.#found as Error;
    };
    await world.run(FAULTS_MS, check);
    this.#heal();
    const quiet = (): boolean => work.unanswered() === 0 && this.#checker.pending() === 0;
    for (let at = FAULTS_MS; at < FAULTS_MS + PEACE_MS && !quiet(); at += PEACE_STEP_MS) {
      await world.run(at + PEACE_STEP_MS, check);
    }
    if (work.unanswered() > 0) throw new Violation('L1', `${work.unanswered()} unanswered submits`);
    this.#checker.allEnded();
  }

  #target(): { process: Process | null; coordinator: Coordinator | null } {
    return {
      process: this.controller.process,
      coordinator: this.controller.controller?.coordinator ?? null,
    };
  }

  /** Checks that run inside promises of the code under test must not be caught by it. */
  #guard(check: () => void): void {
    try {
      check();
    } catch (error) {
      this.#found ??= error;
    }
  }

  #guardedChecker(): Checker {
    const checker = this.#checker;
    const guard = (check: () => void): void => this.#guard(check);
    return Object.assign(Object.create(checker) as Checker, {
      submitted: (key: string, id: string) => guard(() => checker.submitted(key, id)),
      cancelled: (id: string) => guard(() => checker.cancelled(id)),
    });
  }

  #startAgent(machine: Machine): void {
    const world = this.#world;
    const process = world.spawn(machine.name);
    const call = <Reply>(what: string, invoke: (c: Coordinator) => Promise<Reply>) =>
      this.#network.call(
        process,
        `${what} ${machine.name}`,
        () => this.#target().process,
        () => invoke(this.#target().coordinator as Coordinator),
      );
    const agent = startAgent({
      transport: {
        join: (token, request) => call('join', (c) => c.join(token, structuredClone(request))),
        sync: (token, request) => {
          const copy = structuredClone(request);
          return call('sync', (c) => c.sync(token, copy));
        },
      },
      runtime: machine.runtime(process),
      identityFile: machine.identityFile(),
      joinToken: JOIN_SECRET,
      registration: registrationOf(machine),
      clock: world.clockOf(process),
      random: world.random,
      log: silentLog,
      onTunnel: () => undefined,
    });
    this.#agents.set(machine, { process, agent });
  }

  #scheduleFaults(): void {
    const world = this.#world;
    const some = (most: number): number => (world.chance(0.6) ? world.between(0, most) : 0);
    const times = (count: number, what: string, run: () => void): void => {
      for (let i = 0; i < count; i++) world.after(world.between(0, FAULTS_MS), what, run);
    };
    times(some(6), 'controller crash', () => this.#crashController());
    times(some(4), 'controller pause', () => this.#pause(this.controller.process));
    times(some(6), 'agent crash', () => this.#crashAgent(world.pick(this.#machines)));
    times(some(4), 'agent pause', () =>
      this.#pause(this.#agents.get(world.pick(this.#machines))?.process ?? null),
    );
    times(some(3), 'reboot', () => this.#reboot(world.pick(this.#machines)));
    times(some(4), 'partition', () => this.#partition(world.pick(this.#machines)));
    times(some(4), 'clock step', () => this.#stepClock());
    world.after(500, 'supervisor', () => this.#supervise());
  }

  /** What systemd would do: starts again what has died. */
  #supervise(): void {
    const world = this.#world;
    if (!this.controller.process?.alive) void this.controller.start();
    const soon = this.#peace ? 1000 : world.between(500, 8000);
    world.after(soon, 'supervisor', () => this.#supervise());
  }

  #crashController(): void {
    this.controller.crash();
  }

  #crashAgent(machine: Machine): void {
    const running = this.#agents.get(machine);
    if (!running?.process.alive) return;
    running.process.alive = false;
    this.#world.note(`${machine.name} agent crashed`);
    const world = this.#world;
    world.after(world.between(100, 100_000), 'agent restarts', () => this.#startAgent(machine));
  }

  #reboot(machine: Machine): void {
    const running = this.#agents.get(machine);
    if (!running?.process.alive) return;
    running.process.alive = false;
    machine.reboot();
    this.#world.note(`${machine.name} rebooted`);
    const world = this.#world;
    world.after(world.between(5000, 60_000), 'agent restarts', () => this.#startAgent(machine));
  }

  #pause(process: Process | null): void {
    const world = this.#world;
    if (!process?.alive || process.paused) return;
    process.paused = true;
    world.note(`${process.name} paused`);
    world.after(world.between(1000, 100_000), 'resume', () => {
      world.note(`${process.name} resumes`);
      world.resume(process);
    });
  }

  #partition(machine: Machine): void {
    const world = this.#world;
    this.#network.cut.add(machine.name);
    world.note(`${machine.name} cut off`);
    world.after(world.between(1000, 120_000), 'partition heals', () => {
      this.#network.cut.delete(machine.name);
    });
  }

  #stepClock(): void {
    const world = this.#world;
    const processes = [
      this.controller.process,
      ...[...this.#agents.values()].map((a) => a.process),
    ];
    const process = world.pick(processes);
    if (process) process.wallOffsetMs += world.between(-3_600_000, 3_600_000);
  }

  #heal(): void {
    this.#peace = true;
    this.#network.faults = { drop: 0, duplicate: 0, slow: 0 };
    this.#network.cut.clear();
    this.controller.calm();
    this.#world.note('peace');
  }
}

function registrationOf(machine: Machine) {
  return {
    name: machine.name,
    machine: machine.name,
    bootId: `boot${machine.boot}`,
    address: machine.name,
    network: 'lan',
    agentVersion: '0.1.0',
    capabilities: [],
    attributes: {},
    resources: {
      cpuMillis: 4000,
      memoryBytes: 0,
      devices: [0, 1].map((index) => ({
        index,
        kind: 'gpu' as const,
        model: 'A100',
        memoryBytes: 0,
      })),
      portRange: [20_000, 20_003] as [number, number],
    },
  };
}

/** Real SQLite on a file in memory: the simulator's disk is not what is being tested for speed. */
function memoryFolder(): string {
  return process.platform === 'linux' ? '/dev/shm' : tmpdir();
}

function stack(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
