/** What every Coordinator must do, wherever it is. Run on each implementation by a test file. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { JobSpec } from '../../src/model/job.ts';
import type { Principal } from '../../src/model/token.ts';
import type { AttemptOrder, JoinReply, Observation } from '../../src/protocol/agent.ts';
import type { Coordinator, Page, SubmitReply } from '../../src/protocol/coordinator.ts';
import { createToken } from '../../src/protocol/fleet.ts';
import { jobSpec, type PageQuery, type SubmittedSpec } from '../../src/protocol/jobs.ts';

export interface CoordinatorUnderTest {
  coordinator: Coordinator;
  /** A user token with every scope. */
  adminSecret: string;
  /** A join token of the pool `default`. */
  joinSecret: string;
  close(): Promise<void>;
}

const FIRST: PageQuery = { limit: 100 };
const NEVER_A_TOKEN = 'drover_never_issued';
/** Time for an implementation that places in a loop. */
const SYNCS_AT_MOST = 50;

export function coordinatorContract(
  name: string,
  makeCoordinator: () => Promise<CoordinatorUnderTest>,
): void {
  describe(`the Coordinator contract: ${name}`, () => {
    let made: CoordinatorUnderTest;
    let it: Coordinator;
    let admin: Principal;

    beforeEach(async () => {
      made = await makeCoordinator();
      it = made.coordinator;
      const principal = await it.authenticate(made.adminSecret);
      if (!principal) throw new Error('the admin token is not known');
      admin = principal;
    });
    afterEach(() => made.close());

    const submit = (...specs: Partial<SubmittedSpec>[]): Promise<SubmitReply> =>
      it.submit(admin, { specs: specs.map(spec), idempotencyKey: null, bodyHash: null });
    const submitOne = async (fields: Partial<SubmittedSpec> = {}): Promise<string> =>
      (await submit(fields)).ids[0] ?? '';

    tokens();
    submission();
    lists();
    running();
    fleet();

    function tokens(): void {
      test('a token is known until it is revoked', async () => {
        const wanted = createToken.parse({ name: 'läuft', user: '学生', scopes: ['jobs:read'] });
        const created = await it.createToken(admin, wanted);
        expect(created).toMatchObject({ kind: 'user', name: 'läuft', user: '学生' });
        const secret = created.secret ?? '';
        expect(await it.authenticate(secret)).toEqual({
          token: created.id,
          tenant: admin.tenant,
          user: '学生',
          scopes: ['jobs:read'],
        });
        const listed = (await it.listTokens(admin, FIRST)).items.find(
          ({ id }) => id === created.id,
        );
        const { secret: _, ...rest } = created;
        expect(listed).toEqual(rest);
        expect((await it.revokeToken(admin, created.id)).revokedAtMs).not.toBeNull();
        expect(await it.authenticate(secret)).toBeUndefined();
        expect(await it.authenticate(NEVER_A_TOKEN)).toBeUndefined();
      });

      test('a scope that a token lacks is named in the refusal', async () => {
        const reader: Principal = { ...admin, scopes: ['jobs:read'] };
        const request = { specs: [spec({})], idempotencyKey: null, bodyHash: null };
        await expect(it.submit(reader, request)).rejects.toMatchObject({
          name: 'DroverError',
          code: 'PERMISSION_DENIED',
          message: expect.stringContaining('jobs:manage'),
        });
      });
    }

    function submission(): void {
      test('a job comes back as it was submitted', async () => {
        const wanted = spec({
          name: 'Größe 大 🐂',
          command: ['sh', '-c', 'echo "ü\n"', ''],
          env: { A: '', B: 'x=y\n' },
          labels: { 'team/α': 'β' },
          shape: { kind: 'array', indices: [7, 3, 0] },
          priority: 'interactive',
          timeLimitMs: 86_400_000,
        });
        const id = await submitOne(wanted);
        const job = await it.getJob(admin, id);
        expect(job.spec).toEqual(wanted);
        expect(job).toMatchObject({ id, state: 'PENDING', name: wanted.name, owner: admin.user });
        expect(job).toMatchObject({ exitCode: null, startedAtMs: null, endedAtMs: null });
        expect(job.tasks).toMatchObject({ total: 3, pending: 3 });
        const tasks = await it.listTasks(admin, id, FIRST);
        expect(tasks.items.map(({ index }) => index).toSorted((a, b) => a - b)).toEqual([0, 3, 7]);
        expect((await it.listAttempts(admin, id, FIRST)).items).toEqual([]);
        const events = await it.listEvents(admin, id, FIRST);
        expect(events.items[0]).toMatchObject({ kind: 'job.submitted', job: id, task: null });
      });

      test('the same key gives the same jobs, with another body it is refused', async () => {
        const specs = [spec({ name: 'a' }), spec({ name: 'b' })];
        const first = await it.submit(admin, { specs, idempotencyKey: 'k', bodyHash: 'h1' });
        expect(first).toMatchObject({ replayed: false });
        const again = await it.submit(admin, { specs, idempotencyKey: 'k', bodyHash: 'h1' });
        expect(again).toEqual({ ids: first.ids, replayed: true });
        const other = it.submit(admin, { specs, idempotencyKey: 'k', bodyHash: 'h2' });
        await expect(other).rejects.toMatchObject({ code: 'IDEMPOTENCY_MISMATCH', status: 409 });
      });

      test('a job nobody knows is NOT_FOUND for every question', async () => {
        const query = { after: 0, waitMs: 0 };
        for (const question of [
          it.getJob(admin, 'j-none'),
          it.cancelJob(admin, 'j-none'),
          it.waitJob(admin, 'j-none', 0),
          it.listTasks(admin, 'j-none', FIRST),
          it.listAttempts(admin, 'j-none', FIRST),
          it.listEvents(admin, 'j-none', FIRST),
          it.readLogs(admin, 'j-none', query),
        ]) {
          await expect(question).rejects.toMatchObject({ code: 'NOT_FOUND' });
        }
      });

      test('a job that waits can be cancelled and then has ended', async () => {
        const id = await submitOne();
        const waited = await it.waitJob(admin, id, 30);
        expect(waited.state).toBe('PENDING');
        const waiting = it.waitJob(admin, id, 30_000);
        await it.cancelJob(admin, id);
        expect(await waiting).toMatchObject({ state: 'CANCELLED', exitCode: null });
        expect(await it.cancelJob(admin, id)).toMatchObject({ state: 'CANCELLED' });
        const page = await it.readLogs(admin, id, { after: 0, waitMs: 30_000 });
        expect(page).toEqual({ records: [], next: 0, complete: true });
      });
    }

    function lists(): void {
      test('pages cover every job once, the newest first', async () => {
        const { ids } = await submit({}, {}, {}, {}, {});
        expect(ids).toHaveLength(5);
        const seen = await everything((page) => it.listJobs(admin, page), 2);
        expect(seen.map(({ id }) => id)).toEqual(ids.toReversed());
        expect(seen.every((job) => job.spec === undefined)).toBe(true);
      });

      test('filters combine, and nothing found is an empty page', async () => {
        const { ids } = await submit({ name: 'x' }, { name: 'y' }, { name: 'x' });
        await it.cancelJob(admin, ids[2] ?? '');
        const query = { limit: 10, name: 'x', owner: admin.user } as const;
        const found = await it.listJobs(admin, { ...query, state: 'PENDING' });
        expect(found.items.map(({ id }) => id)).toEqual([ids[0]]);
        const none = await it.listJobs(admin, { limit: 10, owner: 'nobody' });
        expect(none).toEqual({ items: [], nextCursor: null });
      });

      test('the queue says what waits, in order, and why', async () => {
        const { ids } = await submit({ name: 'first' }, { name: 'second' });
        const queue = await everything((page) => it.queue(admin, page), 1);
        expect(queue.map(({ job, position }) => [job, position])).toEqual([
          [ids[0], 1],
          [ids[1], 2],
        ]);
        expect(queue.every(({ reason, pendingTasks }) => reason && pendingTasks === 1)).toBe(true);
      });

      test('a batch and a page of 500', async () => {
        const { ids } = await submit(...Array.from({ length: 500 }, (_, i) => ({ name: `n${i}` })));
        const page = await it.listJobs(admin, { limit: 500 });
        expect(page.items.map(({ id }) => id)).toEqual(ids.toReversed());
        expect(page.nextCursor).toBeNull();
      });
    }

    function running(): void {
      test('a job from submit to exit code, with its output', async () => {
        const worker = await it.join(made.joinSecret, machine('m1'));
        const id = await submitOne({ command: ['work', 'ä'], env: { X: '1' } });
        const agent = new TestAgent(it, worker);
        const order = await agent.untilOrdered();
        expect(order).toMatchObject({ job: id, index: 0, n: 1, command: ['work', 'ä'] });
        expect(order.env).toMatchObject({ X: '1' });
        await agent.report({ uid: order.uid, state: 'RUNNING' });
        expect(await it.getJob(admin, id)).toMatchObject({ state: 'RUNNING' });
        expect(await it.cluster(admin)).toMatchObject({ tasks: { running: 1 } });

        const stdout = Buffer.from('größe 大 🐂\nsecond line\n');
        const stderr = Buffer.from([0xff, 0xfe, 0x00, 0x80, 0x0a]);
        await agent.append(order.uid, 'stdout', stdout);
        await agent.append(order.uid, 'stderr', stderr);
        const waiting = it.waitJob(admin, id, 30_000);
        await agent.end({
          uid: order.uid,
          state: 'ENDED',
          cause: 'exited',
          exitCode: 3,
          signal: null,
          stdoutBytes: stdout.length,
          stderrBytes: stderr.length,
        });
        expect(await waiting).toMatchObject({ state: 'FAILED', exitCode: 3, id });
        const attempts = await it.listAttempts(admin, id, FIRST);
        expect(attempts.items).toMatchObject([
          { uid: order.uid, worker: worker.worker, state: 'ENDED', cause: 'exited', exitCode: 3 },
        ]);
        const logs = await allLogs(it, admin, id);
        expect(logs.stdout).toEqual(stdout);
        expect(logs.stderr).toEqual(stderr);
      });

      test('reading on after the last record gives what came since, and a repeat nothing', async () => {
        const agent = new TestAgent(it, await it.join(made.joinSecret, machine('m1')));
        const id = await submitOne();
        const { uid } = await agent.untilOrdered();
        await agent.report({ uid, state: 'RUNNING' });
        await agent.append(uid, 'stdout', Buffer.from('one\n'));
        const first = await it.readLogs(admin, id, { after: 0, waitMs: 5_000 });
        expect(first.complete).toBe(false);
        const waiting = it.readLogs(admin, id, { after: first.next, waitMs: 20_000 });
        await agent.append(uid, 'stdout', Buffer.from('one\n'), 0);
        await agent.append(uid, 'stdout', Buffer.from('two\n'));
        expect((await waiting).records.map(({ text }) => text).join('')).toBe('two\n');
      });

      test('a cancel reaches the agent as a stop order', async () => {
        const agent = new TestAgent(it, await it.join(made.joinSecret, machine('m1')));
        const id = await submitOne({ graceMs: 1234 });
        const { uid } = await agent.untilOrdered();
        await agent.report({ uid, state: 'RUNNING' });
        await it.cancelJob(admin, id);
        expect(await agent.untilStop()).toEqual({ uid, cause: 'cancelled', graceMs: 1234 });
        await agent.end({
          uid,
          state: 'ENDED',
          cause: 'cancelled',
          stdoutBytes: 0,
          stderrBytes: 0,
        });
        expect(await it.getJob(admin, id)).toMatchObject({ state: 'CANCELLED' });
      });

      test('a tunnel is asked for at the worker that runs the task', async () => {
        const joined = await it.join(made.joinSecret, machine('m1'));
        const agent = new TestAgent(it, joined);
        await submitOne();
        const { uid, task } = await agent.untilOrdered();
        await agent.report({ uid, state: 'RUNNING' });
        const gatewayUrl = 'wss://gateway.example/v1/tunnel?α=1';
        await it.registerGateway(gatewayUrl, 30_000);
        const ticket = await it.openTunnel(admin, task, gatewayUrl);
        expect(ticket).toMatchObject({ worker: joined.worker, attempt: uid });
        expect(ticket.ticketHash).not.toBe('');
        expect(await agent.untilTunnel()).toMatchObject({ gatewayUrl });
      });
    }

    function fleet(): void {
      test('a worker is listed as it joined, and can be drained', async () => {
        const request = machine('m1');
        const joined = await it.join(made.joinSecret, request);
        expect(joined.timers.longPollMs).toBeGreaterThan(0);
        const { items } = await it.listWorkers(admin, FIRST);
        expect(items).toMatchObject([
          {
            id: joined.worker,
            name: request.name,
            pool: 'default',
            state: 'ONLINE',
            draining: false,
            attributes: request.attributes,
            devices: request.resources.devices,
          },
        ]);
        expect(await it.setDraining(admin, joined.worker, true)).toMatchObject({ draining: true });
        expect(await it.cluster(admin)).toMatchObject({ workers: { draining: 1 } });
        const unknown = it.setDraining(admin, 'w-none', true);
        await expect(unknown).rejects.toMatchObject({ code: 'NOT_FOUND' });
      });

      test('tokens nobody issued are refused to agents', async () => {
        const error = { code: 'UNAUTHENTICATED', status: 401 };
        await expect(it.join(NEVER_A_TOKEN, machine('m'))).rejects.toMatchObject(error);
        const request = {
          worker: 'w',
          bootId: '',
          start: 1,
          seq: 1,
          epoch: 0,
          observed: [],
          wait: false,
        };
        await expect(it.sync(NEVER_A_TOKEN, request)).rejects.toMatchObject(error);
        await expect(it.appendLogs(NEVER_A_TOKEN, [])).rejects.toMatchObject(error);
      });

      test('it is ready and measures itself', async () => {
        expect(await it.readiness()).toMatchObject({ ready: true, reasons: [] });
        expect(await it.metrics()).toMatch(/^# (HELP|TYPE) \w+/m);
      });
    }
  });
}

function spec(fields: Partial<SubmittedSpec>): JobSpec {
  return jobSpec.parse({ command: ['true'], ...fields });
}

function machine(id: string): Parameters<Coordinator['join']>[1] {
  return {
    name: `host ${id} ñ`,
    machine: id,
    bootId: 'boot-1',
    address: '127.0.0.1',
    network: 'lab',
    agentVersion: '0.1.0',
    capabilities: ['process'],
    attributes: { zone: 'a', größe: '大' },
    resources: {
      cpuMillis: 64_000,
      memoryBytes: 2 ** 40,
      devices: [{ index: 0, kind: 'gpu', model: 'NVIDIA H100', memoryBytes: 80 * 2 ** 30 }],
      portRange: [20_000, 29_999],
    },
  };
}

async function everything<Item>(
  list: (page: PageQuery) => Promise<Page<Item>>,
  limit: number,
): Promise<Item[]> {
  const all: Item[] = [];
  let page = await list({ limit });
  all.push(...page.items);
  while (page.nextCursor !== null) {
    expect(page.items.length).toBeLessThanOrEqual(limit);
    page = await list({ limit, cursor: page.nextCursor });
    all.push(...page.items);
  }
  return all;
}

async function allLogs(
  coordinator: Coordinator,
  who: Principal,
  job: string,
): Promise<Record<'stdout' | 'stderr', Buffer>> {
  const parts: Record<'stdout' | 'stderr', Buffer[]> = { stdout: [], stderr: [] };
  for (let after = 0; ;) {
    const page = await coordinator.readLogs(who, job, { after, waitMs: 5_000 });
    for (const { stream, text, base64 } of page.records) {
      parts[stream].push(
        base64 === undefined ? Buffer.from(text ?? '') : Buffer.from(base64, 'base64'),
      );
    }
    if (page.complete) break;
    after = page.next;
  }
  return { stdout: Buffer.concat(parts.stdout), stderr: Buffer.concat(parts.stderr) };
}

/** An agent that runs nothing: it observes what it is told to. */
class TestAgent {
  readonly #coordinator: Coordinator;
  readonly #joined: JoinReply;
  readonly #observed = new Map<string, Observation>();
  readonly #offsets = new Map<string, number>();
  #seq = 0;

  constructor(coordinator: Coordinator, joined: JoinReply) {
    this.#coordinator = coordinator;
    this.#joined = joined;
  }

  async untilOrdered(): Promise<AttemptOrder> {
    return this.#until(({ desired }) => desired[0]);
  }

  async untilStop(): Promise<{ uid: string; cause: string; graceMs: number }> {
    return this.#until(({ stop }) => stop[0]);
  }

  async untilTunnel(): Promise<{ gatewayUrl: string; ticket: string }> {
    return this.#until(({ tunnels }) => tunnels[0]);
  }

  async report(observation: Observation): Promise<void> {
    this.#observed.set(observation.uid, observation);
    await this.#sync(false);
  }

  /** Says that it ended and forgets it once that is acknowledged. */
  async end(observation: Observation): Promise<void> {
    this.#observed.set(observation.uid, observation);
    await this.#until(({ acknowledged }) => acknowledged.find((uid) => uid === observation.uid));
    this.#observed.delete(observation.uid);
  }

  async append(
    uid: string,
    stream: 'stdout' | 'stderr',
    bytes: Buffer,
    offset = this.#offsets.get(uid + stream) ?? 0,
  ): Promise<void> {
    const chunk = { uid, stream, offset, atMs: Date.now(), bytes };
    const end = Math.max(offset + bytes.length, this.#offsets.get(uid + stream) ?? 0);
    this.#offsets.set(uid + stream, end);
    const acks = await this.#coordinator.appendLogs(this.#joined.token, [chunk]);
    expect(acks).toEqual([{ uid, stream, offset: end }]);
  }

  async #until<Found>(
    find: (reply: Awaited<ReturnType<Coordinator['sync']>>) => Found | undefined,
  ): Promise<Found> {
    for (let i = 0; i < SYNCS_AT_MOST; i++) {
      const found = find(await this.#sync(true));
      if (found !== undefined) return found;
    }
    throw new Error('the controller never said it');
  }

  #sync(wait: boolean): ReturnType<Coordinator['sync']> {
    return this.#coordinator.sync(this.#joined.token, {
      worker: this.#joined.worker,
      bootId: 'boot-1',
      start: 1,
      seq: ++this.#seq,
      epoch: 0,
      observed: [...this.#observed.values()],
      wait,
    });
  }
}
