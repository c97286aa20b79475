/** Who may append and read logs, and where a follow ends. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { MemoryLogStore } from '../../test/support/memoryLogStore.ts';
import { type TestAgent, TestController } from '../../test/support/testController.ts';
import type { Principal } from '../model/token.ts';
import type { LogChunk } from '../protocol/agent.ts';
import type { LogPage, LogQuery } from '../protocol/coordinator.ts';

let it: TestController;
let agent: TestAgent;
let job: string;
let uid: string;
beforeEach(async () => {
  const store: MemoryLogStore = new MemoryLogStore(() => it.clock);
  const jobMetrics: MemoryLogStore = new MemoryLogStore(() => it.clock);
  it = new TestController({ logs: store, jobMetrics });
  await it.start();
  agent = await it.joinAgent();
  [job = ''] = await it.submit({});
  uid = (await agent.sync()).desired[0]?.uid ?? '';
  await agent.sync([{ uid, state: 'RUNNING' }]);
});
afterEach(() => it.close());

const chunk = (text: string, offset: number, more: Partial<LogChunk> = {}): LogChunk => ({
  uid,
  stream: 'stdout',
  offset,
  atMs: 1,
  bytes: Buffer.from(text),
  ...more,
});
const append = (...chunks: LogChunk[]) =>
  it.clock.run(it.it.appendLogs(agent.joined.token, chunks));
const ask = (more: Partial<LogQuery> = {}, who: Principal = it.admin) =>
  it.it.readLogs(who, job, { after: 0, waitMs: 0, ...more });
const read = (more: Partial<LogQuery> = {}) => it.clock.run(ask(more));
const texts = ({ records }: LogPage) => records.map(({ text }) => text).join('');
/** The command ends, having written so many bytes. */
const end = (stdoutBytes?: number) =>
  agent.sync([
    {
      uid,
      state: 'ENDED',
      cause: 'exited',
      exitCode: 0,
      ...(stdoutBytes !== undefined && { stdoutBytes, stderrBytes: 0 }),
    },
  ]);

describe('appending', () => {
  test('is acknowledged up to where it is on disk', async () => {
    expect(await append(chunk('one\n', 0), chunk('e', 0, { stream: 'stderr' }))).toEqual([
      { uid, stream: 'stdout', offset: 4 },
      { uid, stream: 'stderr', offset: 1 },
    ]);
    expect(texts(await read())).toBe('one\ne');
  });

  test('what is measured goes apart, and ends where the agent said it does', async () => {
    const metrics = { metrics: true };
    const own = chunk('{"a":1}\n', 0, { stream: 'metrics' });
    expect(await append(chunk('out\n', 0), own, chunk('{}\n', 0, { stream: 'system' }))).toEqual([
      { uid, stream: 'stdout', offset: 4 },
      { uid, stream: 'metrics', offset: 8 },
      { uid, stream: 'system', offset: 3 },
    ]);
    expect(texts(await read())).toBe('out\n');
    const page = await read(metrics);
    expect(page.records.map(({ stream }) => stream)).toEqual(['metrics', 'system']);
    const facts = { 'used.metricsFileBytes': '16', 'used.systemFileBytes': '3' };
    await agent.sync([{ uid, state: 'ENDED', cause: 'exited', exitCode: 0, facts }]);
    expect(await read({ ...metrics, after: page.next })).toMatchObject({ complete: false });
    await append(chunk('{"a":2}\n', 8, { stream: 'metrics' }));
    const rest = await read({ ...metrics, after: page.next });
    expect(texts(rest)).toBe('{"a":2}\n');
    expect(await read({ ...metrics, after: rest.next })).toMatchObject({ complete: true });
  });

  test('goes on after the end, also when the attempt was called lost', async () => {
    await end(4);
    expect(it.controller.state.attempts.size).toBe(0);
    await append(chunk('late', 0));
    expect(texts(await read())).toBe('late');
  });

  test.each([
    'never heard of',
    'j1.0.1.abcdef',
    // Names an attempt that there is, without its secret end.
    () => uid.replace(/[0-9a-f]+$/, 'ab'),
  ])('nobody’s bytes are dropped, but acknowledged: %s', async (which) => {
    const theirs = typeof which === 'string' ? which : which();
    const acks = await append(chunk('junk', 7, { uid: theirs }), chunk('mine', 0));
    expect(acks).toEqual([
      { uid, stream: 'stdout', offset: 4 },
      { uid: theirs, stream: 'stdout', offset: 11 },
    ]);
    expect(texts(await read())).toBe('mine');
  });

  test('needs a worker’s token', async () => {
    const call = it.it.appendLogs('drw_wrong', [chunk('x', 0)]);
    await expect(it.clock.run(call)).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });
  });
});

describe('a follow', () => {
  test('waits for what comes, while the job lives', async () => {
    const waiting = ask({ waitMs: 5000 });
    await it.clock.advance(1000);
    await append(chunk('news', 0));
    expect(await waiting).toMatchObject({ complete: false, next: 1 });
    expect(texts(await waiting)).toBe('news');
  });

  test('waits no longer than it was asked to, nor than a caller may', async () => {
    const waiting = ask({ waitMs: 5000 });
    await it.clock.advance(5000);
    expect(await waiting).toEqual({ records: [], next: 0, complete: false });
    const longer = ask({ waitMs: 3_600_000 });
    await pass(30_000);
    expect(await longer).toMatchObject({ complete: false });
  });

  test('hears of the end at once', async () => {
    const waiting = ask({ waitMs: 20_000 });
    await it.clock.settle();
    await end(0);
    expect(await waiting).toMatchObject({ records: [], complete: false });
    expect(await read({ waitMs: 20_000 })).toMatchObject({ records: [], complete: true });
  });

  test('ends exactly when every byte that was announced is there', async () => {
    await append(chunk('1234', 0));
    await end(10);
    expect(await read()).toMatchObject({ complete: false, next: 1 });
    expect(await read({ after: 1 })).toMatchObject({ records: [], complete: false });
    const waiting = ask({ after: 1, waitMs: 20_000 });
    await it.clock.settle();
    await append(chunk('567', 4));
    expect(texts(await waiting)).toBe('567');
    expect(await read({ after: 2 })).toMatchObject({ complete: false });
    await append(chunk('890', 7));
    const last = await read({ after: 2 });
    expect([texts(last), last.complete]).toEqual(['890', false]);
    expect(await read({ after: 3 })).toEqual({ records: [], next: 3, complete: true });
  });

  test('does not wait for a machine that is gone', async () => {
    await end(10);
    expect(await read()).toMatchObject({ complete: false });
    const worker = agent.joined.worker as never;
    it.controller.mutate({ kind: 'move-worker', worker, move: 'lose', reason: 'silent' });
    expect(await read()).toMatchObject({ complete: true });
  });

  test('does not wait for ever for bytes that never come', async () => {
    await end(10);
    await pass(10 * 60_000);
    expect(await read()).toMatchObject({ complete: false });
    await pass(1000);
    expect(await read()).toMatchObject({ complete: true });
  });

  test('waits as long when the clock is set back or forward meanwhile', async () => {
    await end(10);
    expect(await read()).toMatchObject({ complete: false });
    it.clock.step(24 * 3_600_000);
    expect(await read()).toMatchObject({ complete: false });
    it.clock.step(-48 * 3_600_000);
    await pass(11 * 60_000);
    expect(await read()).toMatchObject({ complete: true });
  });

  test('of one task shows that task', async () => {
    await append(chunk('mine', 0));
    expect(texts(await read({ task: 0 }))).toBe('mine');
    expect(texts(await read({ task: 1 }))).toBe('');
  });
});

test('another tenant’s log is not there', async () => {
  const stranger = { ...it.admin, tenant: 'other' };
  await expect(it.clock.run(ask({}, stranger))).rejects.toMatchObject({ code: 'NOT_FOUND' });
});

/** Time passes, and the agent stays in contact. */
async function pass(ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 20_000) {
    await it.clock.advance(Math.min(20_000, ms - passed));
    await agent.sync([]);
  }
}
