/** Streams over gRPC: logs page after page, clients that leave or read slowly, and health. */
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { Code } from '@connectrpc/connect';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Principal } from '../../src/model/token.ts';
import type { LogPage, LogQuery } from '../../src/protocol/coordinator.ts';
import * as messages from '../../src/protocol/gen/grpc/health/v1/health_pb.ts';
import { createGrpcCoordinator } from '../../src/protocol/grpc/client.ts';
import type { LogRecordView } from '../../src/protocol/jobs.ts';
import { API_SECRET, startGrpcFake, type GrpcFake } from '../support/grpc.ts';

const Status = messages.HealthCheckResponse_ServingStatus;

let grpc: GrpcFake;
beforeEach(async () => {
  grpc = await startGrpcFake({ limits: { recheckMs: 50 } });
});
afterEach(() => grpc.close());

function record(seq: number, text = `line ${seq}\n`): LogRecordView {
  const where = { task: 'j.0', index: 0, attempt: 1, stream: 'stdout' as const };
  return { seq, ...where, offset: seq * 10, atMs: seq, text };
}

/** Serves `lines`, complete once `ended`; remembers every query. */
function serveLogs(lines: LogRecordView[], state: { ended: boolean }): LogQuery[] {
  const asked: LogQuery[] = [];
  grpc.fake.readLogs = async (_who: Principal, _job: string, query: LogQuery): Promise<LogPage> => {
    asked.push({ ...query });
    const until = performance.now() + query.waitMs;
    const found = () => lines.filter(({ seq }) => seq > query.after).slice(0, 2);
    while (found().length === 0 && !state.ended && performance.now() < until) await pause(5);
    const records = found();
    const next = records.at(-1)?.seq ?? query.after;
    return { records, next, complete: state.ended && next === (lines.at(-1)?.seq ?? 0) };
  };
  return asked;
}

test('a follow gives everything once, then ends; a resume starts after what was seen', async () => {
  const lines = [record(1), record(2), record(3)];
  const state = { ended: false };
  serveLogs(lines, state);
  const seen: bigint[] = [];
  let last = { next: 0n, complete: false };
  setTimeout(() => lines.push(record(4), record(5)), 60);
  setTimeout(() => (state.ended = true), 120);
  const { coordinator, asAdmin } = grpc;
  for await (const page of coordinator.streamJobLogs({ job: 'j', follow: true }, asAdmin)) {
    seen.push(...page.records.map(({ seq }) => seq));
    last = page;
  }
  expect(seen).toEqual([1n, 2n, 3n, 4n, 5n]);
  expect(last).toMatchObject({ next: 5n, complete: true });
  const rest: bigint[] = [];
  for await (const page of coordinator.streamJobLogs({ job: 'j', after: 3n }, asAdmin)) {
    rest.push(...page.records.map(({ seq }) => seq));
  }
  expect(rest).toEqual([4n, 5n]);
});

test('without follow it ends at what there is now; the tail is asked for once', async () => {
  const asked = serveLogs([record(1), record(2), record(3)], { ended: false });
  const request = { job: 'j', tailLines: 7, task: 0, sinceMs: 1n };
  let count = 0;
  for await (const page of grpc.coordinator.streamJobLogs(request, grpc.asAdmin)) {
    count += page.records.length;
  }
  expect(count).toBe(3);
  const filters = { task: 0, sinceMs: 1, waitMs: 0 };
  expect(asked).toEqual([
    { after: 0, tailLines: 7, ...filters },
    { after: 2, ...filters },
    { after: 3, ...filters },
  ]);
});

test.each(['cancels', 'vanishes'])('a client that %s is read for no longer', async (how) => {
  const asked = serveLogs([record(1)], { ended: false });
  // A `break` alone is no leaving: Connect's client keeps the stream open until its signal comes.
  const leaving = new AbortController();
  const options = { ...grpc.asAdmin, signal: leaving.signal };
  const follow = async (): Promise<void> => {
    for await (const page of grpc.coordinator.streamJobLogs({ job: 'j', follow: true }, options)) {
      expect(page.records).toHaveLength(1);
      if (how === 'cancels') leaving.abort();
      else grpc.hangUp();
    }
  };
  await expect(follow()).rejects.toThrow();
  await pause(100);
  const then = asked.length;
  await pause(1_000);
  expect(asked.length).toBe(then);
});

test('a client that does not read is not read for', async () => {
  let produced = 0;
  grpc.fake.readLogs = async (_who, _job, { after }) => {
    produced++;
    const records = [record(after + 1, 'x'.repeat(65_536))];
    return { records, next: after + 1, complete: false };
  };
  const { coordinator, asAdmin } = grpc;
  const stream = coordinator.streamJobLogs({ job: 'j', follow: true }, asAdmin);
  const iterator = stream[Symbol.asyncIterator]();
  await iterator.next();
  await pause(300);
  const then = produced;
  await pause(300);
  expect(produced).toBe(then);
  expect(produced).toBeLessThan(200);
  await iterator.return?.();
});

test('follows beyond a connection’s share get another, and calls wait for none', async () => {
  const narrow = await startGrpcFake({ limits: { streamsPerConnection: 4 } });
  narrow.fake.readLogs = async (_who, _job, { after, waitMs }) => {
    if (waitMs > 0) await pause(waitMs);
    return { records: after === 0 ? [record(1)] : [], next: 1, complete: false };
  };
  const limits = { followsPerConnection: 3 };
  const client = createGrpcCoordinator({ url: narrow.url, apiSecret: API_SECRET, limits });
  const leaving = new AbortController();
  try {
    const who = await client.authenticate(narrow.fake.adminSecret);
    expect(who).toBeDefined();
    const follows = Array.from({ length: 10 }, () => {
      const pages = client.followLogs(who!, 'j', { after: 0, waitMs: 0 }, leaving.signal);
      return pages[Symbol.asyncIterator]();
    });
    const first = await Promise.all(follows.map((pages) => pages.next()));
    expect(first.map(({ value }) => (value as LogPage).next)).toEqual(first.map(() => 1));
    expect(await client.readiness()).toMatchObject({ ready: true });
    // Who leaves is told nothing: the stream is over.
    const waiting = follows.map((pages) => pages.next());
    leaving.abort();
    expect(await Promise.all(waiting)).toEqual(follows.map(() => ({ done: true })));
  } finally {
    client.close();
    await narrow.close();
  }
});

test('a revoked token ends the stream', async () => {
  serveLogs([record(1)], { ended: false });
  const { fake, coordinator, asAdmin } = grpc;
  const admin = await fake.authenticate(fake.adminSecret);
  const follow = async (): Promise<void> => {
    for await (const page of coordinator.streamJobLogs({ job: 'j', follow: true }, asAdmin)) {
      expect(page.records).toHaveLength(1);
      if (admin) await fake.revokeToken(admin, admin.token);
    }
  };
  await expect(follow()).rejects.toMatchObject({ code: Code.Unauthenticated });
});

test('an error in the middle of a stream keeps its code', async () => {
  const { coordinator, asAdmin } = grpc;
  const stream = coordinator.streamJobLogs({ job: 'j-none', follow: true }, asAdmin);
  const first = stream[Symbol.asyncIterator]().next();
  await expect(first).rejects.toMatchObject({ code: Code.NotFound });
});

test('a long way does not make large messages slow', async () => {
  const bytes = Buffer.alloc(4 * 1024 * 1024, 0xff);
  const page = { records: [{ ...record(1), text: 'x'.repeat(bytes.length) }], next: 1 };
  grpc.fake.readLogs = async () => ({ ...page, complete: true });
  grpc.fake.appendLogs = async () => [{ uid: 'u', stream: 'stdout', offset: bytes.length }];
  const proxy = await startSlowProxy(grpc.server.port, 20);
  const client = createGrpcCoordinator({ url: proxy.url, apiSecret: API_SECRET });
  try {
    const who = await client.authenticate(grpc.fake.adminSecret);
    const began = performance.now();
    await client.appendLogs('t', [{ uid: 'u', stream: 'stdout', offset: 0, atMs: 0, bytes }]);
    const sent = performance.now();
    if (who) await client.readLogs(who, 'j', { after: 0, waitMs: 0 });
    // With the window HTTP/2 starts with, each would take more than four seconds.
    expect(sent - began).toBeLessThan(2_500);
    expect(performance.now() - sent).toBeLessThan(2_500);
  } finally {
    client.close();
    proxy.close();
  }
});

/** Passes bytes on, each way this much later. */
async function startSlowProxy(port: number, delayMs: number) {
  const pass = (from: Socket, to: Socket): void => {
    from.on('data', (bytes) => setTimeout(() => to.write(bytes), delayMs));
    from.on('close', () => to.destroy()).on('error', () => to.destroy());
  };
  const server = createServer((near) => {
    const far = connect(port, '127.0.0.1');
    pass(near, far);
    pass(far, near);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address() as AddressInfo;
  return { url: `grpc://127.0.0.1:${address.port}`, close: () => server.close() };
}

test('health follows readiness, and needs no token', async () => {
  const { fake, health } = grpc;
  expect(await health.check({})).toMatchObject({ status: Status.SERVING });
  const named = await health.check({ service: 'drover.v1.Coordinator' });
  expect(named).toMatchObject({ status: Status.SERVING });
  await expect(health.check({ service: 'nothing' })).rejects.toMatchObject({ code: Code.NotFound });
  fake.ready = { ready: false, reasons: ['the store is away'], loops: [] };
  expect(await health.check({})).toMatchObject({ status: Status.NOT_SERVING });
  fake.readiness = async () => {
    throw new Error('cannot say');
  };
  expect(await health.check({})).toMatchObject({ status: Status.NOT_SERVING });
  const { statuses } = await health.list({});
  expect(Object.keys(statuses)).toEqual(['', 'drover.v1.Coordinator', 'drover.v1.Agent']);
});

test('a watcher sees changes and the stop', async () => {
  const { fake, health, server } = grpc;
  const seen: number[] = [];
  for await (const { status } of health.watch({})) {
    seen.push(status);
    if (seen.length === 1) fake.ready = { ready: false, reasons: ['busy'], loops: [] };
    if (seen.length === 2) fake.ready = { ready: true, reasons: [], loops: [] };
    if (seen.length === 3) void server.close();
  }
  expect(seen).toEqual([Status.SERVING, Status.NOT_SERVING, Status.SERVING, Status.NOT_SERVING]);
  const second = await startGrpcFake();
  for await (const { status } of second.health.watch({ service: 'nothing' })) {
    expect(status).toBe(Status.SERVICE_UNKNOWN);
    break;
  }
  await second.close();
});

function pause(delayMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, delayMs));
}
