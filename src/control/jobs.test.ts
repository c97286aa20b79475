/** What callers see of jobs: while they live, when they have ended, and just in between. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type TestAgent, TestController } from '../../test/support/testController.ts';
import type { JobId } from '../model/ids.ts';
import type { Principal } from '../model/token.ts';
import type { Page } from '../protocol/coordinator.ts';
import { type PageQuery } from '../protocol/jobs.ts';
import { jobSpec } from '../protocol/jobSpec.ts';
import type { History } from '../store/contract.ts';

let it: TestController;
let agent: TestAgent;
/** What reads of rows wait for: a test may hold them up. */
let reads: Promise<unknown>;
beforeEach(async () => {
  reads = Promise.resolve();
  it = new TestController({ history: slow });
  await it.start();
});
afterEach(() => it.close());

function slow(real: History): History {
  return {
    ...real,
    forTenant(tenant) {
      const mine = real.forTenant(tenant);
      return {
        ...mine,
        async jobs(filter) {
          const rows = await mine.jobs(filter);
          await reads;
          return rows;
        },
      };
    },
  };
}

const FIRST: PageQuery = { limit: 100 };
const get = (id: string, who: Principal = it.admin) => it.clock.run(it.it.getJob(who, id));
const finish = (uid: string, exitCode = 0) =>
  agent.sync([{ uid, state: 'ENDED', cause: 'exited', exitCode }]);

/** Submits jobs and starts them; returns their ids and uids. */
async function running(count = 1): Promise<{ ids: string[]; uids: string[] }> {
  agent = await it.joinAgent();
  const ids = await it.submit(...Array.from({ length: count }, (_, i) => ({ name: `n${i}` })));
  const { desired } = await agent.sync();
  const uids = ids.map((id) => desired.find(({ job }) => job === id)?.uid ?? '');
  await agent.sync(uids.map((uid) => ({ uid, state: 'RUNNING' })));
  return { ids, uids };
}
describe('a job', () => {
  test('looks the same when it has just ended and when only its row is left', async () => {
    const [id = ''] = await it.submit({ labels: { a: 'b' } });
    const ended = await it.clock.run(it.it.cancelJob(it.admin, id));
    expect(it.controller.state.jobs.size).toBe(0);
    expect(await get(id)).toEqual(ended);
    await it.restart();
    expect(await get(id)).toEqual(ended);
    expect(ended).toMatchObject({
      state: 'CANCELLED',
      reason: 'cancelled by admin',
      exitCode: null,
      tasks: { total: 1, cancelled: 1, pending: 0 },
    });
  });

  test('says why it waits', async () => {
    const [id = ''] = await it.submit({ resources: { cpuMillis: 9000 } });
    expect((await get(id)).reason).toBe('no worker has joined yet');
    await it.joinAgent();
    expect((await get(id)).reason).toBe('it needs a worker with 9 CPUs; the largest has 8 CPUs');
  });

  test('has an exit code only when it has ended', async () => {
    agent = await it.joinAgent();
    const [id = ''] = await it.submit({ shape: { kind: 'array', indices: [0, 1] } });
    const { desired } = await agent.sync();
    await finish(desired[0]?.uid ?? '', 4);
    expect(await get(id)).toMatchObject({ state: 'RUNNING', exitCode: null });
    await finish(desired[1]?.uid ?? '', 0);
    expect(await get(id)).toMatchObject({ state: 'FAILED', exitCode: 4 });
  });

  test('that is being cancelled says so', async () => {
    const { ids } = await running();
    const view = await it.clock.run(it.it.cancelJob(it.admin, ids[0] ?? ''));
    expect(view).toMatchObject({ state: 'RUNNING', reason: 'stopping: cancel was asked for' });
  });

  test('of another tenant is not there, for any question', async () => {
    const [id = ''] = await it.submit({});
    const stranger = { ...it.admin, tenant: 'other' };
    const asked: (() => Promise<unknown>)[] = [
      () => it.it.getJob(stranger, id),
      () => it.it.cancelJob(stranger, id),
      () => it.it.waitJob(stranger, id, 1000),
      () => it.it.listTasks(stranger, id, FIRST),
    ];
    for (const ask of asked) {
      await expect(it.clock.run(ask())).rejects.toMatchObject({ code: 'NOT_FOUND' });
    }
    expect(await get(id)).toMatchObject({ state: 'PENDING', cancelRequestedAtMs: null });
    expect((await it.clock.run(it.it.queue(stranger, FIRST))).items).toEqual([]);
    expect((await it.clock.run(it.it.listJobs(stranger, FIRST))).items).toEqual([]);
  });

  test('nobody could ever run is refused, and leaves nothing', async () => {
    const submit = it.it.submit(it.admin, {
      specs: [jobSpec.parse({ command: ['a'] }), jobSpec.parse({ command: ['a'], pool: 'moon' })],
      idempotencyKey: null,
      bodyHash: null,
    });
    await expect(it.clock.run(submit)).rejects.toMatchObject({
      code: 'NEVER_FITS',
      message: expect.stringContaining('no pool "moon"'),
    });
    expect(it.controller.state.jobs.size).toBe(0);
  });
});

describe('a job after another', () => {
  const submitAfter = (id: string, key: string | null = null) => {
    const after = [{ job: id, when: 'ok' as const }];
    const specs = [jobSpec.parse({ command: ['true'], after })];
    return it.it.submit(it.admin, { specs, idempotencyKey: key, bodyHash: key });
  };

  test('that failed while it was submitted is refused, not started', async () => {
    const { ids, uids } = await running(2);
    const [id = ''] = ids;
    void finish(uids[0] ?? '', 1);
    // Its end is known to the state, and not yet on disk.
    while (it.controller.state.jobs.get(id as JobId)?.job.endedAtMs === null)
      await Promise.resolve();
    const refused = it.clock.run(submitAfter(id));
    await expect(refused).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  });

  test('is what its key made, also when the other has failed since', async () => {
    const { ids, uids } = await running();
    const [id = ''] = ids;
    const first = await it.clock.run(submitAfter(id, 'k'));
    await finish(uids[0] ?? '', 1);
    expect(await it.clock.run(submitAfter(id, 'k'))).toEqual({ ids: first.ids, replayed: true });
    const refused = it.clock.run(submitAfter(id));
    await expect(refused).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  });
});

describe('waiting for a job', () => {
  test('ends with it, or with the time', async () => {
    const { ids, uids } = await running();
    const short = it.it.waitJob(it.admin, ids[0] ?? '', 1000);
    const long = it.it.waitJob(it.admin, ids[0] ?? '', 60_000);
    await it.clock.advance(1000);
    expect(await short).toMatchObject({ state: 'RUNNING' });
    await finish(uids[0] ?? '', 7);
    expect(await it.clock.run(long)).toMatchObject({ state: 'FAILED', exitCode: 7 });
    expect(await it.clock.run(it.it.waitJob(it.admin, ids[0] ?? '', 60_000))).toMatchObject({
      exitCode: 7,
    });
  });
});

describe('a list', () => {
  test('that is read while a job ends does not show it as waiting', async () => {
    const { ids, uids } = await running();
    const held = Promise.withResolvers<void>();
    reads = held.promise;
    const list = it.it.listJobs(it.admin, { limit: 10 });
    await it.clock.settle();
    await finish(uids[0] ?? '');
    expect(it.controller.state.jobs.size).toBe(0);
    held.resolve();
    const { items } = await it.clock.run(list);
    expect(items).toMatchObject([{ id: ids[0], state: 'SUCCEEDED', tasks: { succeeded: 1 } }]);
  });

  test('of what runs comes from memory, in pages', async () => {
    const { ids } = await running(3);
    await it.submit({ resources: { cpuMillis: 9000 } });
    const first = await it.clock.run(it.it.listJobs(it.admin, { limit: 2, state: 'RUNNING' }));
    expect(first.items.map(({ id }) => id)).toEqual([ids[2], ids[1]]);
    const cursor = first.nextCursor ?? '';
    const rest = it.it.listJobs(it.admin, { limit: 2, state: 'RUNNING', cursor });
    expect(await it.clock.run(rest)).toMatchObject({ items: [{ id: ids[0] }], nextCursor: null });
    const named = it.it.listJobs(it.admin, { limit: 9, state: 'RUNNING', name: 'n1', owner: 'x' });
    expect((await it.clock.run(named)).items).toEqual([]);
  });

  test('of tasks shows those that only wait, and where the others run', async () => {
    agent = await it.joinAgent();
    const [id = ''] = await it.submit({
      shape: { kind: 'array', indices: [8, 1, 5] },
      resources: { cpuMillis: 4000 },
    });
    const list = (page: PageQuery) => it.clock.run(it.it.listTasks(it.admin, id, page));
    const shown = (items: { index: number; state: string; worker: string | null }[]) =>
      items.map(({ index, state, worker }) => [index, state, worker]);
    const { worker } = agent.joined;
    const first = await list({ limit: 2 });
    expect(shown(first.items)).toEqual([
      [1, 'ASSIGNED', worker],
      [5, 'ASSIGNED', worker],
    ]);
    const rest = await list({ limit: 2, cursor: first.nextCursor ?? '' });
    expect(shown(rest.items)).toEqual([[8, 'PENDING', null]]);
    expect(rest.nextCursor).toBeNull();
  });

  test('of tasks, attempts and events goes on where it stopped', async () => {
    agent = await it.joinAgent();
    const [id = ''] = await it.submit({ shape: { kind: 'array', indices: [9, 4, 2] } });
    const { desired } = await agent.sync();
    for (const { uid } of desired) await finish(uid);
    const lists: ((page: PageQuery) => Promise<Page<unknown>>)[] = [
      (page) => it.it.listTasks(it.admin, id, page),
      (page) => it.it.listAttempts(it.admin, id, page),
      (page) => it.it.listEvents(it.admin, id, page),
    ];
    for (const list of lists) {
      const all = (await it.clock.run(list(FIRST))).items;
      const paged: unknown[] = [];
      for (let cursor: string | null | undefined; cursor !== null;) {
        const page = await it.clock.run(list({ limit: 1, ...(cursor && { cursor }) }));
        paged.push(...page.items);
        cursor = page.nextCursor;
      }
      expect(paged).toEqual(all);
      expect(all.length).toBeGreaterThanOrEqual(3);
    }
  });

  test('with a cursor of another list is refused', async () => {
    const [id = ''] = await it.submit({});
    const bad = it.it.listTasks(it.admin, id, { limit: 1, cursor: 'W10' });
    await expect(it.clock.run(bad)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  });
});

test('the queue is in the order in which it is served', async () => {
  const ids = await it.submit({ priority: 'batch' }, { priority: 'production' }, {});
  const { items } = await it.clock.run(it.it.queue(it.admin, FIRST));
  expect(items.map(({ job, position }) => [job, position])).toEqual([
    [ids[1], 1],
    [ids[0], 2],
    [ids[2], 3],
  ]);
});
