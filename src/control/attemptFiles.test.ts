/** What agents do for the attempts they run, and who looked into them: by whom, and until when. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { TestController, type TestAgent } from '../../test/support/testController.ts';
import type { Principal } from '../model/token.ts';
import type { AttemptOrder } from '../protocol/agent.ts';
import { jobSpec } from '../protocol/jobSpec.ts';

let it: TestController;
let agent: TestAgent;
beforeEach(async () => {
  it = await new TestController().start();
  agent = await it.joinAgent();
});
afterEach(() => it.close());

const manifest = `sha256:${'5'.repeat(64)}`;
const report = (uid: string) => ({
  uid,
  manifest,
  bytes: 7,
  files: 1,
  reason: 'interval',
  takenBootMs: 0,
});
const page = { limit: 10 };

async function runJob(): Promise<{ id: string; order: AttemptOrder }> {
  const [id = ''] = await it.submit({ checkpoint: {} });
  await it.clock.advance(1000);
  const [order] = (await agent.sync()).desired as [AttemptOrder];
  await agent.sync([{ uid: order.uid, state: 'RUNNING' }]);
  return { id, order };
}

test('a checkpoint is listed; the next attempt resumes from it, also after a restart', async () => {
  const { id, order } = await runJob();
  expect(order.restore).toBeUndefined();
  await it.clock.run(it.it.addCheckpoint(agent.joined.token, report(order.uid)));
  const listed = await it.clock.run(it.it.listCheckpoints(it.admin, id, page));
  expect(listed.items).toMatchObject([{ n: 1, manifest, bytes: 7, attempt: order.uid }]);
  await it.restart();
  const lost = { uid: order.uid, state: 'ENDED', cause: 'lost' } as const;
  await agent.sync([lost]);
  await it.clock.advance(1000);
  expect((await agent.sync([lost])).desired).toMatchObject([{ n: 2, restore: [manifest] }]);
});

test('an agent without the attempt may not add to it, nor use its blobs', async () => {
  const { order } = await runJob();
  const other = await it.joinAgent();
  const add = it.it.addCheckpoint(other.joined.token, report(order.uid));
  await expect(it.clock.run(add)).rejects.toMatchObject({ code: 'STALE' });
  const access = (token: string) => it.clock.run(it.it.attemptAccess(token, order.uid));
  expect(await access(other.joined.token)).toBeUndefined();
  expect(await access(agent.joined.token)).toMatchObject({ tenant: 'default' });
  await agent.sync([{ uid: order.uid, state: 'ENDED', cause: 'exited', exitCode: 0 }]);
  expect(await access(agent.joined.token)).toBeUndefined();
});

test('what an attempt ran with and what it left are told', async () => {
  const { id, order } = await runJob();
  const facts = { image: 'ubuntu@sha256:1' };
  await agent.sync([{ uid: order.uid, state: 'RUNNING', facts, progress: 'storing' }]);
  const result = { manifest, bytes: 3 };
  const end = { uid: order.uid, state: 'ENDED', cause: 'exited', exitCode: 0, result } as const;
  await agent.sync([end]);
  const { items } = await it.clock.run(it.it.listAttempts(it.admin, id, page));
  expect(items).toMatchObject([{ facts, result: manifest, resultBytes: 3 }]);
});

test('a command that exits with 0 has failed when what it left could not be kept', async () => {
  const { id, order } = await runJob();
  const how = { cause: 'exited', exitCode: 0, unstored: true, message: 'over the quota' } as const;
  await agent.sync([{ uid: order.uid, state: 'ENDED', ...how }]);
  const job = await it.clock.run(it.it.getJob(it.admin, id));
  expect(job).toMatchObject({ state: 'FAILED', reason: 'exit code 0: over the quota' });
});

test('who looks into a job is on record, for his own tenant', async () => {
  const { id, order } = await runJob();
  const access = { how: 'exec', attempt: order.uid, details: { command: 'bash' } };
  const stranger: Principal = { ...it.admin, tenant: 'other' };
  const refused = it.it.recordAccess(stranger, access);
  await expect(it.clock.run(refused)).rejects.toMatchObject({ code: 'CONFLICT' });
  await it.clock.run(it.it.recordAccess(it.admin, access));
  const { items } = await it.clock.run(it.it.listAudit(it.admin, page));
  expect(items[0]).toMatchObject({
    kind: 'job.inside',
    job: id,
    data: { by: 'admin', how: 'exec', command: 'bash' },
  });
  const second = await it.clock.run(it.it.listAudit(it.admin, { limit: 1 }));
  expect(second.nextCursor).not.toBeNull();
  expect((await it.clock.run(it.it.listAudit(stranger, page))).items).toEqual([]);
});

test('a running job sees its own line of jobs and nothing else', async () => {
  const large = { resources: { cpuMillis: 1_000_000 } };
  const [mine = '', other = ''] = await it.submit(large, large);
  const job: Principal = { ...it.admin, job: mine as never };
  await it.clock.advance(1000);
  const specs = [jobSpec.parse({ command: ['true'], ...large })];
  const request = { specs, idempotencyKey: null, bodyHash: null };
  const [child = ''] = (await it.clock.run(it.it.submit(job, request))).ids;
  const seen = await it.clock.run(it.it.listJobs(job, page));
  expect(seen.items.map(({ id }) => id)).toEqual([child, mine]);
  const children = await it.clock.run(it.it.listJobs(it.admin, { ...page, parent: mine }));
  expect(children.items).toMatchObject([{ id: child, parent: mine, root: mine }]);
  for (const name of ['getJob', 'cancelJob'] as const) {
    const call = it.clock.run(it.it[name](job, other));
    await expect(call).rejects.toMatchObject({ code: 'NOT_FOUND' });
  }
  await it.clock.run(it.it.cancelJob(it.admin, mine));
  expect(await it.clock.run(it.it.getJob(it.admin, child))).toMatchObject({ state: 'CANCELLED' });
});
