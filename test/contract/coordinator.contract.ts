/** What every Coordinator must do, wherever it is. Run on each implementation by a test file. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { JobSpec } from '../../src/model/job.ts';
import type { Principal, Scope } from '../../src/model/token.ts';
import type { Page } from '../../src/protocol/coordinator.ts';
import { createToken } from '../../src/protocol/fleet.ts';
import { type PageQuery } from '../../src/protocol/jobs.ts';
import { jobSpec, type SubmittedSpec } from '../../src/protocol/jobSpec.ts';
import {
  interrupting,
  machine,
  running,
  type CoordinatorUnderTest,
  type Subject,
} from './running.contract.ts';
import { scheduling } from './scheduling.contract.ts';

export type { CoordinatorUnderTest };

const FIRST: PageQuery = { limit: 100 };
const NEVER_A_TOKEN = 'drover_never_issued';

export function coordinatorContract(
  name: string,
  makeCoordinator: () => Promise<CoordinatorUnderTest>,
): void {
  describe(`the Coordinator contract: ${name}`, () => {
    let subject: Subject;
    beforeEach(async () => {
      subject = await prepare(await makeCoordinator());
    });
    afterEach(() => subject.made.close());

    tokens(() => subject);
    submission(() => subject);
    lists(() => subject);
    running(() => subject);
    interrupting(() => subject);
    fleet(() => subject);
    scheduling(() => subject);
  });
}

async function prepare(made: CoordinatorUnderTest): Promise<Subject> {
  const it = made.coordinator;
  const admin = await it.authenticate(made.adminSecret);
  if (!admin) throw new Error('the admin token is not known');
  const submit: Subject['submit'] = (...specs) =>
    it.submit(admin, { specs: specs.map(spec), idempotencyKey: null, bodyHash: null });
  const submitOne: Subject['submitOne'] = async (fields = {}) =>
    (await submit(fields)).ids[0] ?? '';
  return { made, it, admin, submit, submitOne };
}

function tokens(subject: () => Subject): void {
  test('a token is known until it is revoked', async () => {
    const { it, admin } = subject();
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
    const listed = (await it.listTokens(admin, FIRST)).items.find(({ id }) => id === created.id);
    const { secret: _, ...rest } = created;
    expect(listed).toEqual({ ...rest, lastUsedAtMs: listed?.lastUsedAtMs });
    expect((await it.revokeToken(admin, created.id)).revokedAtMs).not.toBeNull();
    expect(await it.authenticate(secret)).toBeUndefined();
    expect(await it.authenticate(NEVER_A_TOKEN)).toBeUndefined();
  });

  test('a scope that a token lacks is named in the refusal, whatever is asked', async () => {
    const { it, admin } = subject();
    const without = (scope: Scope): Principal => ({
      ...admin,
      scopes: admin.scopes.filter((one) => one !== scope),
    });
    const request = { specs: [spec({})], idempotencyKey: null, bodyHash: null };
    const reader = without('jobs:read');
    const asked: [Scope, () => Promise<unknown>][] = [
      ['jobs:manage', () => it.submit(without('jobs:manage'), request)],
      ['jobs:manage', () => it.cancelJob(without('jobs:manage'), 'j')],
      ['jobs:read', () => it.getJob(reader, 'j')],
      ['jobs:read', () => it.listJobs(reader, FIRST)],
      ['jobs:read', () => it.listTasks(reader, 'j', FIRST)],
      ['jobs:read', () => it.listAttempts(reader, 'j', FIRST)],
      ['jobs:read', () => it.listEvents(reader, 'j', FIRST)],
      ['jobs:read', () => it.waitJob(reader, 'j', 0)],
      ['jobs:read', () => it.readLogs(reader, 'j', { after: 0, waitMs: 0 })],
      ['jobs:read', () => it.queue(reader, FIRST)],
      ['jobs:read', () => it.why(reader, 'j')],
      ['jobs:read', () => it.receipt(reader, 'j')],
      ['fleet:read', () => it.cluster(without('fleet:read'))],
      ['fleet:read', () => it.listWorkers(without('fleet:read'), FIRST)],
      ['fleet:manage', () => it.setDraining(without('fleet:manage'), 'w', true)],
      ['tokens:manage', () => it.listTokens(without('tokens:manage'), FIRST)],
      ['tokens:manage', () => it.createToken(without('tokens:manage'), createToken.parse({}))],
      ['tokens:manage', () => it.revokeToken(without('tokens:manage'), 't')],
    ];
    for (const [scope, ask] of asked) {
      await expect(ask(), scope).rejects.toMatchObject({
        name: 'DroverError',
        code: 'PERMISSION_DENIED',
        message: expect.stringContaining(scope),
      });
    }
  });
}

function submission(subject: () => Subject): void {
  test('a job comes back as it was submitted', async () => {
    const { it, admin, submitOne } = subject();
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
    const { it, admin } = subject();
    const specs = [spec({ name: 'a' }), spec({ name: 'b' })];
    const first = await it.submit(admin, { specs, idempotencyKey: 'k', bodyHash: 'h1' });
    expect(first).toMatchObject({ replayed: false });
    const again = await it.submit(admin, { specs, idempotencyKey: 'k', bodyHash: 'h1' });
    expect(again).toEqual({ ids: first.ids, replayed: true });
    const other = it.submit(admin, { specs, idempotencyKey: 'k', bodyHash: 'h2' });
    await expect(other).rejects.toMatchObject({ code: 'IDEMPOTENCY_MISMATCH', status: 409 });
  });

  test('a job nobody knows is NOT_FOUND for every question', async () => {
    const { it, admin } = subject();
    const query = { after: 0, waitMs: 0 };
    for (const question of [
      it.getJob(admin, 'j-none'),
      it.cancelJob(admin, 'j-none'),
      it.waitJob(admin, 'j-none', 0),
      it.listTasks(admin, 'j-none', FIRST),
      it.listAttempts(admin, 'j-none', FIRST),
      it.listEvents(admin, 'j-none', FIRST),
      it.readLogs(admin, 'j-none', query),
      it.why(admin, 'j-none'),
      it.receipt(admin, 'j-none'),
    ]) {
      await expect(question).rejects.toMatchObject({ code: 'NOT_FOUND' });
    }
  });

  test('a job that waits can be cancelled and then has ended', async () => {
    const { it, admin, submitOne } = subject();
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

function lists(subject: () => Subject): void {
  test('pages cover every job once, the newest first', async () => {
    const { it, admin, submit } = subject();
    const { ids } = await submit({}, {}, {}, {}, {});
    expect(ids).toHaveLength(5);
    const seen = await everything((page) => it.listJobs(admin, page), 2);
    expect(seen.map(({ id }) => id)).toEqual(ids.toReversed());
    expect(seen.every((job) => job.spec === undefined)).toBe(true);
  });

  test('filters combine, and nothing found is an empty page', async () => {
    const { it, admin, submit } = subject();
    const { ids } = await submit({ name: 'x' }, { name: 'y' }, { name: 'x' });
    await it.cancelJob(admin, ids[2] ?? '');
    const query = { limit: 10, name: 'x', owner: admin.user } as const;
    const found = await it.listJobs(admin, { ...query, state: 'PENDING' });
    expect(found.items.map(({ id }) => id)).toEqual([ids[0]]);
    const none = await it.listJobs(admin, { limit: 10, owner: 'nobody' });
    expect(none).toEqual({ items: [], nextCursor: null });
  });

  test('the queue says what waits, in order, and why', async () => {
    const { it, admin, submit } = subject();
    const { ids } = await submit({ name: 'first' }, { name: 'second' });
    const queue = await everything((page) => it.queue(admin, page), 1);
    expect(queue.map(({ job, position }) => [job, position])).toEqual([
      [ids[0], 1],
      [ids[1], 2],
    ]);
    expect(queue.every(({ reason, pendingTasks }) => reason && pendingTasks === 1)).toBe(true);
  });

  test('a batch and a page of 500', async () => {
    const { it, admin, submit } = subject();
    const { ids } = await submit(...Array.from({ length: 500 }, (_, i) => ({ name: `n${i}` })));
    const page = await it.listJobs(admin, { limit: 500 });
    expect(page.items.map(({ id }) => id)).toEqual(ids.toReversed());
    expect(page.nextCursor).toBeNull();
  });
}

function fleet(subject: () => Subject): void {
  test('a worker is listed as it joined, and can be drained', async () => {
    const { it, admin, made } = subject();
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
    const { it } = subject();
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
    const { it } = subject();
    expect(await it.readiness()).toMatchObject({ ready: true, reasons: [] });
    expect(await it.metrics()).toMatch(/^# (HELP|TYPE) \w+/m);
  });
}

function spec(fields: Partial<SubmittedSpec>): JobSpec {
  return jobSpec.parse({ command: ['true'], ...fields });
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
