/** Clients: submit with keys over the faulty network, retry, cancel, and remember what was promised. */
import type { Coordinator } from '../../src/protocol/coordinator.ts';
import { jobSpec, type SubmittedSpec } from '../../src/protocol/jobs.ts';
import type { Behaviour } from './machine.ts';
import type { Network } from './network.ts';
import type { Checker } from './invariants.ts';
import type { Process, World } from './world.ts';
import { ADMIN_SECRET } from './controllerProcess.ts';

export interface Target {
  process: Process | null;
  coordinator: Coordinator | null;
}

export interface WorkloadOptions {
  world: World;
  network: Network;
  checker: Checker;
  target: () => Target;
  jobs: number;
  overMs: number;
}

/** After the faults are over a client gives up only when it was answered. */
const RETRY_MS = 3000;

export function startWorkload(options: WorkloadOptions): { unanswered: () => number } {
  const { world } = options;
  let unanswered = 0;
  for (let i = 0; i < options.jobs; i++) {
    const key = `key${i}`;
    const spec = jobSpec.parse(drawSpec(world));
    const client = world.spawn(`client${i}`);
    const copies = world.chance(0.1) ? 2 : 1;
    for (let copy = 0; copy < copies; copy++) {
      unanswered++;
      world.after(world.between(0, options.overMs), 'client submits', () => {
        void submit(options, client, key, spec).then((id) => {
          unanswered--;
          if (world.chance(0.2)) {
            world.after(world.between(0, 60_000), 'client cancels', () => {
              void cancel(options, client, id);
            });
          }
        });
      });
    }
  }
  return { unanswered: () => unanswered };
}

async function submit(
  options: WorkloadOptions,
  client: Process,
  key: string,
  spec: ReturnType<typeof jobSpec.parse>,
): Promise<string> {
  const { world, network, checker, target } = options;
  for (;;) {
    try {
      const id = await network.call(
        client,
        `submit ${key}`,
        () => target().process,
        async () => {
          const coordinator = target().coordinator as Coordinator;
          const who = await coordinator.authenticate(ADMIN_SECRET);
          if (!who) throw new Error('401');
          const request = { specs: [spec], idempotencyKey: key, bodyHash: key };
          const reply = await coordinator.submit(who, request);
          // The moment of the 2xx, before the network may lose it.
          checker.submitted(key, reply.ids[0] ?? '');
          return reply.ids[0] ?? '';
        },
      );
      world.note(`acknowledged ${key} ${id}`);
      return id;
    } catch (error) {
      if ((error as Error).name === 'Violation') throw error;
      await new Promise<void>((resolve) => void world.after(RETRY_MS, 'client retries', resolve));
    }
  }
}

async function cancel(options: WorkloadOptions, client: Process, id: string): Promise<void> {
  const { world, network, checker, target } = options;
  try {
    await network.call(
      client,
      `cancel ${id}`,
      () => target().process,
      async () => {
        const coordinator = target().coordinator as Coordinator;
        const who = await coordinator.authenticate(ADMIN_SECRET);
        if (!who) throw new Error('401');
        await coordinator.cancelJob(who, id);
        checker.cancelled(id);
      },
    );
    world.note(`cancelled ${id}`);
  } catch (error) {
    if ((error as Error).name === 'Violation') throw error;
    world.note(`cancel of ${id} failed`);
  }
}

function drawSpec(world: World): SubmittedSpec {
  const shape = world.between(0, 9);
  return {
    command: ['work', String(world.between(10, 40_000)), String(world.chance(0.2) ? 1 : 0)],
    shape:
      shape < 5
        ? { kind: 'single' }
        : shape < 7
          ? { kind: 'array', indices: [1, 2, 5] }
          : { kind: 'gang', size: world.between(2, 3) },
    resources: {
      cpuMillis: world.between(1, 4) * 500,
      device: world.chance(0.6) ? { count: world.between(1, 2) } : null,
      ports: world.chance(0.3) ? 1 : 0,
    },
    priority: world.pick(['production', 'interactive', 'batch']),
    retries: world.between(0, 3),
    timeLimitMs: world.chance(0.2) ? world.between(5000, 30_000) : 0,
    startWithinMs: world.chance(0.1) ? world.between(5000, 60_000) : 0,
    graceMs: world.pick([0, 1000, 5000]),
  };
}

/** Drawn per attempt: how long it runs, and whether this try goes wrong. */
export function behaviour(world: World, command: string[]): Behaviour {
  const fails = command[2] === '1' && world.chance(0.7);
  return {
    durationMs: Math.ceil(Number(command[1]) * (0.5 + world.random.next())),
    exitCode: fails ? world.between(1, 3) : 0,
    ignoresTerm: world.chance(0.2),
  };
}
