/**
 * Clients: submit with keys over the faulty network, retry, read, cancel, and remember what was
 * promised.
 */
import { DroverError } from '../../src/lib/errors.ts';
import type { JobId } from '../../src/model/ids.ts';
import { PRIORITIES, type After, type JobSpec } from '../../src/model/job.ts';
import type { Principal } from '../../src/model/token.ts';
import type { Coordinator } from '../../src/protocol/coordinator.ts';
import { jobSpec } from '../../src/protocol/jobSpec.ts';
import type { Work } from './checkers/liveness.ts';
import type { Checker } from './checkers/checker.ts';
import type { Coverage, Sometimes } from './coverage.ts';
import { followEvents, followLog, type FollowOptions } from './followers.ts';
import type { Network } from './network.ts';
import { canaryOf, PEOPLE, type Person } from './people.ts';
import { readSomething } from './readers.ts';
import { runMs } from './specs.ts';
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
  /** What somebody asks for. */
  draw: (tenant: string, name: string) => JobSpec;
  target: () => Target;
  jobs: number;
  overMs: number;
  /** Whether there are logs to follow. */
  talkative: boolean;
}

/** A client gives up only when it was answered. */
const RETRY_MS = 3000;
const MOST_START_MS = 50;
const READS = 3;
const AFTER_WHEN = ['ok', 'ok', 'failed', 'any'] as const;

/** One submission, the same however often it is sent. */
interface Submission {
  person: Person;
  key: string;
  specs: JobSpec[];
  /** Whom a job of it waits for, by id: chosen when it is first sent. */
  after: After[] | null;
}

const PLAIN_RULES = jobSpec.parse({ command: ['true'], rules: {} }).rules!;

export class Workload {
  readonly #options: WorkloadOptions;
  readonly work: Work[] = [];
  /** Jobs that a tenant was told of, by tenant. */
  readonly known = new Map<string, string[]>();
  unanswered = 0;
  /** Logs and events that are being followed. */
  following = 0;

  constructor(options: WorkloadOptions) {
    this.#options = options;
    const { world } = options;
    let last = null as Submission | null;
    for (let i = 0; i < options.jobs; i++) {
      const person = world.pick(PEOPLE);
      // A key means nothing to another tenant.
      const shared: boolean = last?.person.tenant !== person.tenant && world.chance(0.2);
      const submission = this.#draw(person, shared && last ? last.key : `key${i}`);
      last = shared ? null : submission;
      const client = world.spawn(`client${i}`);
      const copies = world.chance(0.1) ? 2 : 1;
      for (let copy = 0; copy < copies; copy++) {
        this.unanswered++;
        world.after(world.between(0, options.overMs), () => void this.#client(client, submission));
      }
    }
  }

  async #client(client: Process, submission: Submission): Promise<void> {
    const { world } = this.#options;
    const { person } = submission;
    const ids = await this.#submit(client, submission);
    this.unanswered--;
    const known = this.known.get(person.tenant) ?? [];
    this.known.set(person.tenant, known);
    known.push(...ids);
    const sometimes = (chance: number, withinMs: number, run: () => Promise<void>): void =>
      void (world.chance(chance) && world.after(world.between(0, withinMs), () => void run()));
    for (const id of ids) sometimes(0.2, 30_000, () => this.#cancel(client, person, id));
    for (const id of ids) sometimes(0.2, 20_000, () => this.#child(client, person, id));
    for (const id of ids) sometimes(0.1, 20_000, () => this.#prioritize(client, person, id));
    for (const id of ids) this.#follow(client, person, id);
    for (let i = 0; i < READS; i++) sometimes(0.3, 60_000, () => this.#read(client, person));
    if (ids.length > 0) sometimes(0.05, 30_000, () => this.#secondBody(client, submission));
  }

  async #submit(client: Process, submission: Submission): Promise<string[]> {
    const { world, checker, coverage, target } = this.#options;
    const { person, key } = submission;
    const unknownBefore = target().unknownCommits;
    const after = (submission.after ??= this.#drawAfter(submission));
    const specs = submission.specs.map((spec, at) =>
      at === 0 ? { ...spec, after: [...spec.after, ...after] } : spec,
    );
    for (;;) {
      try {
        const ids = await this.#call(client, person, `submit ${key}`, async (coordinator, who) => {
          const request = { specs, idempotencyKey: key, bodyHash: `${who.tenant} ${key}` };
          const reply = await coordinator.submit(who, request);
          // The moment of the 2xx, before the network may lose it.
          checker.submitted(who.tenant, key, reply.ids);
          if (reply.replayed) {
            coverage.saw('submit repeated');
            const unknown = target().unknownCommits > unknownBefore;
            if (unknown) coverage.saw('submit repeated after an unknown commit');
          }
          return reply.ids;
        });
        world.note(client.name, `has ${ids.join(' ')} for ${key}`);
        checker.waits(ids[0] ?? '', after);
        return ids;
      } catch (error) {
        if (error instanceof DroverError && error.code === 'INVALID_ARGUMENT') {
          world.note(client.name, `${key} was refused: ${error.message}`);
          checker.refused(person.tenant, key, after);
          coverage.saw('after refused');
          return [];
        }
        await new Promise<void>((resolve) => void world.after(RETRY_MS, resolve));
      }
    }
  }

  async #secondBody(client: Process, { person, key, specs }: Submission): Promise<void> {
    const { checker, coverage } = this.#options;
    await this.#attempt(client, person, `second body ${key}`, async (coordinator, who) => {
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

  /** As the job itself would, with a token of its own. */
  async #child(client: Process, person: Person, id: string): Promise<void> {
    const { world, checker, coverage, draw } = this.#options;
    const { tenant } = person;
    const key = `child of ${id}`;
    const spec = draw(tenant, `${canaryOf(tenant)} ${key}`);
    const rules = { ...PLAIN_RULES, outliveParent: world.chance(0.3) };
    const request = { specs: [{ ...spec, after: [], rules }], idempotencyKey: key, bodyHash: key };
    await this.#attempt(client, person, key, async (coordinator, who) => {
      try {
        const { ids } = await coordinator.submit({ ...who, job: id as JobId }, request);
        checker.submitted(tenant, key, ids);
        this.work.push({ person, spec, tasks: taskCount(spec), longestRunMs: longestRunMs(spec) });
        coverage.saw('job submitted by a job');
      } catch (error) {
        const late = error instanceof DroverError && error.code === 'CONFLICT';
        if (late) coverage.saw('job submitted too late');
        throw error;
      }
    });
  }

  async #cancel(client: Process, person: Person, id: string): Promise<void> {
    const { checker } = this.#options;
    await this.#attempt(client, person, `cancel ${id}`, async (coordinator, who) => {
      await coordinator.cancelJob(who, id);
      checker.cancelled(id);
    });
  }

  async #prioritize(client: Process, person: Person, id: string): Promise<void> {
    const { world, checker, coverage } = this.#options;
    const priority = world.pick(PRIORITIES);
    await this.#attempt(client, person, `priority of ${id}`, async (coordinator, who) => {
      await coordinator.setPriority(who, id, priority);
      checker.moved(id, priority);
      coverage.saw('priority changed');
    });
  }

  #follow(client: Process, person: Person, job: string): void {
    const { world, checker, coverage, talkative } = this.#options;
    const follow: FollowOptions = {
      ...{ world, checker, job },
      call: (what, run) => this.#call(client, person, what, run),
    };
    const start = async (what: Sometimes, run: typeof followLog): Promise<void> => {
      this.following++;
      await run(follow);
      this.following--;
      coverage.saw(what);
    };
    if (talkative && world.chance(0.3)) void start('log followed to its end', followLog);
    if (world.chance(0.1)) void start('events followed to the end', followEvents);
  }

  /** Of one's own mostly; of others it must be as if there were none. */
  async #read(client: Process, person: Person): Promise<void> {
    const { world, checker, coverage } = this.#options;
    const tenants = [...this.known].filter(([, ids]) => ids.length > 0);
    if (tenants.length === 0) return;
    const [tenant, ids] = world.pick(tenants);
    const id = world.pick(ids);
    const own = tenant === person.tenant;
    await this.#attempt(client, person, `reads ${id}`, (coordinator, who) =>
      readSomething({ world, checker, coverage, coordinator, who, id, own }),
    );
  }

  /** Once, without repeating it: whether it worked is only noted. */
  async #attempt(
    client: Process,
    person: Person,
    what: string,
    run: (coordinator: Coordinator, who: Principal) => Promise<void>,
  ): Promise<void> {
    const { world } = this.#options;
    try {
      await this.#call(client, person, what, run);
      world.note(client.name, what);
    } catch (error) {
      world.note(client.name, `${what} failed: ${(error as Error).message}`);
    }
  }

  #call<Reply>(
    client: Process,
    person: Person,
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
        const who = await coordinator.authenticate(person.secret);
        if (!who) throw new Error('401');
        return run(coordinator, who);
      },
    );
  }

  #draw(person: Person, key: string): Submission {
    const { world, draw } = this.#options;
    const { tenant } = person;
    const specs: JobSpec[] = [];
    const count = world.chance(0.15) ? 3 : 1;
    for (let at = 0; at < count; at++) {
      const spec = draw(tenant, `${canaryOf(tenant)} ${key} ${at}`);
      const other = at > 0 && world.chance(0.6) ? specs[world.between(0, at - 1)] : undefined;
      if (other) {
        spec.after = [{ job: other.name as After['job'], when: world.pick(AFTER_WHEN) }];
      }
      specs.push(spec);
      this.work.push({ person, spec, tasks: taskCount(spec), longestRunMs: longestRunMs(spec) });
    }
    return { person, key, specs, after: world.chance(0.25) ? null : [] };
  }

  #drawAfter({ person }: Submission): After[] {
    const { world } = this.#options;
    const known = this.known.get(person.tenant) ?? [];
    const count = known.length === 0 ? 0 : world.between(1, 2);
    const jobs = new Set(Array.from({ length: count }, () => world.pick(known)));
    return [...jobs].map((job) => ({ job: job as After['job'], when: world.pick(AFTER_WHEN) }));
  }
}

function taskCount({ shape }: JobSpec): number {
  if (shape.kind === 'gang') return shape.size;
  return shape.kind === 'array' ? shape.indices.length : 1;
}

function longestRunMs(spec: JobSpec): number {
  return Math.ceil(runMs(spec) * 1.5) + MOST_START_MS;
}
