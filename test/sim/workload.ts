/**
 * Clients: submit with keys over the faulty network, retry, read, cancel, and remember what was
 * promised.
 */
import { DroverError } from '../../src/lib/errors.ts';
import type { JobSpec } from '../../src/model/job.ts';
import type { Principal } from '../../src/model/token.ts';
import type { Coordinator } from '../../src/protocol/coordinator.ts';
import { jobSpec, type SubmittedSpec } from '../../src/protocol/jobSpec.ts';
import type { Work } from './checkers/liveness.ts';
import type { Checker } from './checkers/checker.ts';
import { ADMIN_SECRET } from './controllerProcess.ts';
import type { Coverage } from './coverage.ts';
import type { Behaviour } from './machine.ts';
import type { Network } from './network.ts';
import type { Process, World } from './world.ts';

export interface Target {
  process: Process | null;
  coordinator: Coordinator | null;
  /** Commits so far that happened without anybody being told. */
  unknownCommits: number;
}

export interface WorkloadOptions {
  world: World;
  network: Network;
  checker: Checker;
  coverage: Coverage;
  target: () => Target;
  jobs: number;
  overMs: number;
}

/** A client gives up only when it was answered. */
const RETRY_MS = 3000;
const MOST_START_MS = 50;
/** Most tasks are short; some outlast every lease. */
const RUNS_MS = [
  [10, 500],
  [10, 500],
  [500, 10_000],
  [500, 20_000],
  [20_000, 60_000],
] as const;
const ARRAY_INDICES = [1, 2, 5];

export class Workload {
  readonly #options: WorkloadOptions;
  readonly work: Work[] = [];
  unanswered = 0;

  constructor(options: WorkloadOptions) {
    this.#options = options;
    const { world } = options;
    for (let i = 0; i < options.jobs; i++) {
      const key = `key${i}`;
      const specs = Array.from({ length: world.chance(0.1) ? 3 : 1 }, () => this.#draw());
      const client = world.spawn(`client${i}`);
      const copies = world.chance(0.1) ? 2 : 1;
      for (let copy = 0; copy < copies; copy++) {
        this.unanswered++;
        world.after(world.between(0, options.overMs), () => void this.#client(client, key, specs));
      }
    }
  }

  async #client(client: Process, key: string, specs: JobSpec[]): Promise<void> {
    const { world } = this.#options;
    const ids = await this.#submit(client, key, specs);
    this.unanswered--;
    for (const id of ids) {
      if (world.chance(0.2)) {
        world.after(world.between(0, 30_000), () => void this.#cancel(client, id));
      }
      if (world.chance(0.2))
        world.after(world.between(0, 60_000), () => void this.#read(client, id));
    }
    if (world.chance(0.05)) {
      world.after(world.between(0, 30_000), () => void this.#secondBody(client, key, specs));
    }
  }

  async #submit(client: Process, key: string, specs: JobSpec[]): Promise<string[]> {
    const { world, checker, coverage, target } = this.#options;
    const unknownBefore = target().unknownCommits;
    for (;;) {
      try {
        const ids = await this.#call(client, `submit ${key}`, async (coordinator, who) => {
          const request = { specs, idempotencyKey: key, bodyHash: key };
          const reply = await coordinator.submit(who, request);
          // The moment of the 2xx, before the network may lose it.
          checker.submitted(key, reply.ids);
          if (reply.replayed) {
            coverage.saw('submit repeated');
            const unknown = target().unknownCommits > unknownBefore;
            if (unknown) coverage.saw('submit repeated after an unknown commit');
          }
          return reply.ids;
        });
        world.note(client.name, `has ${ids.join(' ')} for ${key}`);
        return ids;
      } catch {
        await new Promise<void>((resolve) => void world.after(RETRY_MS, resolve));
      }
    }
  }

  async #secondBody(client: Process, key: string, specs: JobSpec[]): Promise<void> {
    const { checker, coverage } = this.#options;
    await this.#attempt(client, `second body ${key}`, async (coordinator, who) => {
      const request = { specs, idempotencyKey: key, bodyHash: `other ${key}` };
      try {
        await coordinator.submit(who, request);
        checker.mismatchTaken(key);
      } catch (error) {
        const refused = error instanceof DroverError && error.code === 'IDEMPOTENCY_MISMATCH';
        if (refused) coverage.saw('second body refused');
      }
    });
  }

  async #cancel(client: Process, id: string): Promise<void> {
    const { checker } = this.#options;
    await this.#attempt(client, `cancel ${id}`, async (coordinator, who) => {
      await coordinator.cancelJob(who, id);
      checker.cancelled(id);
    });
  }

  async #read(client: Process, id: string): Promise<void> {
    const { checker } = this.#options;
    await this.#attempt(client, `read ${id}`, async (coordinator, who) => {
      try {
        await coordinator.getJob(who, id);
      } catch (error) {
        if (error instanceof DroverError && error.code === 'NOT_FOUND') checker.missing(id);
      }
    });
  }

  /** Once, without repeating it: whether it worked is only noted. */
  async #attempt(
    client: Process,
    what: string,
    run: (coordinator: Coordinator, who: Principal) => Promise<void>,
  ): Promise<void> {
    const { world } = this.#options;
    try {
      await this.#call(client, what, run);
      world.note(client.name, what);
    } catch (error) {
      world.note(client.name, `${what} failed: ${(error as Error).message}`);
    }
  }

  #call<Reply>(
    client: Process,
    what: string,
    run: (coordinator: Coordinator, who: Principal) => Promise<Reply>,
  ): Promise<Reply> {
    const { network, target } = this.#options;
    return network.call(
      client,
      what,
      () => target().process,
      async () => {
        const coordinator = target().coordinator as Coordinator;
        const who = await coordinator.authenticate(ADMIN_SECRET);
        if (!who) throw new Error('401');
        return run(coordinator, who);
      },
    );
  }

  #draw(): JobSpec {
    const spec = jobSpec.parse(drawSpec(this.#options.world));
    const tasks =
      spec.shape.kind === 'gang'
        ? spec.shape.size
        : spec.shape.kind === 'array'
          ? spec.shape.indices.length
          : 1;
    const longestRunMs = Math.ceil(runMs(spec) * 1.5) + MOST_START_MS;
    this.work.push({ spec, tasks, longestRunMs });
    return spec;
  }
}

function drawSpec(world: World): SubmittedSpec {
  const shape = world.between(0, 9);
  const [least, most] = world.pick(RUNS_MS);
  return {
    command: ['work', String(world.between(least, most)), String(world.chance(0.2) ? 1 : 0)],
    shape:
      shape < 5
        ? { kind: 'single' }
        : shape < 7
          ? { kind: 'array', indices: ARRAY_INDICES }
          : { kind: 'gang', size: world.between(2, 3) },
    resources: {
      cpuMillis: world.between(1, 4) * 500,
      device: world.chance(0.6) ? { count: world.between(1, 2) } : null,
      ports: world.chance(0.3) ? 1 : 0,
    },
    priority: world.pick(['production', 'interactive', 'batch']),
    retries: world.between(0, 3),
    timeLimitMs: world.chance(0.2) ? world.between(2000, 15_000) : 0,
    startWithinMs: world.chance(0.15) ? world.between(1000, 30_000) : 0,
    graceMs: world.pick([0, 1000, 5000]),
    attemptLeaseMs: world.chance(0.1) ? world.between(60_000, 70_000) : 0,
  };
}

/** About how long a task runs, as its command says. */
export function runMs({ command }: { command: string[] }): number {
  return Number(command[1]);
}

/** Drawn per attempt: how long it runs, and whether this try goes wrong. */
export function behaviour(world: World, command: string[]): Behaviour {
  const fails = command[2] === '1' && world.chance(0.7);
  return {
    durationMs: Math.ceil(runMs({ command }) * (0.5 + world.random.next())),
    exitCode: fails ? world.between(1, 3) : 0,
    ignoresTerm: world.chance(0.2),
  };
}
