/** The gRPC listener: who may call what, bad input and limits. */
import { connect as connectHttp2 } from 'node:http2';
import { connect } from 'node:net';
import { Code } from '@connectrpc/connect';
import { afterEach, describe, expect, test } from 'vitest';
import type { Log } from '../../src/lib/log.ts';
import { silentLog } from '../../src/lib/log.ts';
import { FakeCoordinator } from '../../src/protocol/fakeCoordinator.ts';
import { createGrpcCoordinator } from '../../src/protocol/grpc/client.ts';
import { createGrpcServer, type GrpcServerOptions } from '../../src/protocol/grpc/server.ts';
import { jobSpec } from '../../src/protocol/jobSpec.ts';
import { API_SECRET, startGrpcFake, type GrpcFake } from '../support/grpc.ts';

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

async function start(options: Partial<GrpcServerOptions> = {}): Promise<GrpcFake> {
  const started = await startGrpcFake(options);
  closers.push(() => started.close());
  return started;
}

function client(options: Parameters<typeof createGrpcCoordinator>[0]) {
  const made = createGrpcCoordinator(options);
  closers.push(() => made.close());
  return made;
}

const nobody = { token: 't' as never, tenant: 'main', user: 'nobody', scopes: [] };
const submission = { specs: [jobSpec.parse({ command: ['true'] })] };

describe('who may call', () => {
  test('a user by token, whoever the client says it is', async () => {
    const { fake, url } = await start();
    const reader = await fake.createToken((await fake.authenticate(fake.adminSecret)) ?? nobody, {
      kind: 'user',
      name: '',
      user: 'reader',
      scopes: ['jobs:read'],
      roles: [],
      pool: 'default',
      maxLiveWorkers: 0,
    });
    const admin = client({ url, token: fake.adminSecret });
    expect(await admin.cluster(nobody)).toMatchObject({ name: 'fake' });
    const limited = client({ url, token: reader.secret ?? '' });
    await expect(limited.cluster(nobody)).rejects.toMatchObject({ code: 'PERMISSION_DENIED' });
    await expect(limited.metrics()).rejects.toMatchObject({ code: 'PERMISSION_DENIED' });
    expect(await admin.metrics()).toContain('drover_jobs');
    const stranger = client({ url, token: 'unknown' });
    await expect(stranger.cluster(nobody)).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });
    await expect(client({ url }).cluster(nobody)).rejects.toMatchObject({
      code: 'UNAUTHENTICATED',
      hint: expect.stringContaining('Bearer'),
    });
    expect(await client({ url }).readiness()).toMatchObject({ ready: true });
  });

  test('nobody becomes another user by metadata without the secret', async () => {
    const { coordinator, asAdmin } = await start();
    const claims = { 'x-token-id': 't1', 'x-tenant-id': 'main', 'x-user-id': 'admin' };
    const scopes = { 'x-scopes': 'jobs:read,fleet:read' };
    await expect(
      coordinator.getCluster({}, { headers: { ...claims, ...scopes } }),
    ).rejects.toMatchObject({ code: Code.Unauthenticated });
    const wrong = { ...asAdmin.headers, ...claims, ...scopes, 'x-api-secret': 'guess' };
    await expect(coordinator.getCluster({}, { headers: wrong })).rejects.toMatchObject({
      code: Code.Unauthenticated,
    });
    const right = { ...claims, ...scopes, 'x-api-secret': API_SECRET };
    expect((await coordinator.getCluster({}, { headers: right })).cluster?.name).toBe('fake');
  });

  test('without a secret on the server no gateway is believed', async () => {
    const fake = new FakeCoordinator();
    const listener = { host: '127.0.0.1', port: 0, log: silentLog };
    const server = await createGrpcServer({ coordinator: fake, ...listener });
    closers.push(() => server.close());
    const url = `grpc://127.0.0.1:${server.port}`;
    const gateway = client({ url, apiSecret: 'any' });
    await expect(gateway.authenticate('x')).rejects.toMatchObject({
      code: 'UNAVAILABLE',
      message: 'the controller does not trust this gateway: their secrets differ',
    });
  });

  test("a token no header can carry is nobody's", async () => {
    const { url } = await start();
    for (const token of ['tökén', 'a\nb', '']) {
      const refused = { code: 'UNAUTHENTICATED' };
      await expect(client({ url, token }).cluster(nobody)).rejects.toMatchObject(refused);
      await expect(client({ url }).appendLogs(token, [])).rejects.toMatchObject(refused);
    }
  });

  test('gateway calls are not for users', async () => {
    const { fake, url } = await start();
    const admin = client({ url, token: fake.adminSecret });
    const denied = { code: 'PERMISSION_DENIED', hint: expect.stringContaining('x-api-secret') };
    await expect(admin.authenticate(fake.adminSecret)).rejects.toMatchObject(denied);
    await expect(admin.registerGateway('ws://x', 1000)).rejects.toMatchObject(denied);
    await expect(admin.openTunnel(nobody, 'j.0', 'ws://x')).rejects.toMatchObject(denied);
    expect(fake.gateways.size).toBe(0);
  });
});

describe('bad input', () => {
  test('a spec is checked, defaults are filled in and the field is named', async () => {
    const { fake, coordinator, asAdmin } = await start();
    const { ids } = await coordinator.submitJobs({ specs: [{ command: ['true'] }] }, asAdmin);
    const admin = (await fake.authenticate(fake.adminSecret)) ?? nobody;
    expect((await fake.getJob(admin, ids[0] ?? '')).spec).toEqual(submission.specs[0]);
    for (const [specs, field] of [
      [[{}], 'jobs.0.command'],
      [[], 'jobs'],
      [[{ command: ['true'], retries: -1 }], 'jobs.0.retries'],
      [[{ command: ['true'], env: { 'no spaces': '' } }], 'jobs.0.env'],
      [[{ command: ['true'], timeLimitMs: 2n ** 60n }], 'beyond 2^53'],
      [[{ command: ['true'], priority: 77 }], 'priority 77'],
    ] as const) {
      const call = coordinator.submitJobs({ specs: [...specs] } as never, asAdmin);
      await expect(call, field).rejects.toMatchObject({
        code: Code.InvalidArgument,
        rawMessage: expect.stringContaining(field),
      });
    }
  });

  test('a key without a hash is compared by the specs', async () => {
    const { coordinator, asAdmin } = await start();
    const specs = [{ command: ['true'], env: { A: '1', B: '2' } }];
    const first = await coordinator.submitJobs({ specs, idempotencyKey: 'k' }, asAdmin);
    const turned = [{ command: ['true'], env: { B: '2', A: '1' } }];
    const again = await coordinator.submitJobs({ specs: turned, idempotencyKey: 'k' }, asAdmin);
    expect(again).toMatchObject({ ids: first.ids, replayed: true });
    const other = [{ command: ['true'], env: { A: '1', B: '3' } }];
    await expect(
      coordinator.submitJobs({ specs: other, idempotencyKey: 'k' }, asAdmin),
    ).rejects.toMatchObject({ code: Code.AlreadyExists });
  });

  test('pages and waits out of range are refused', async () => {
    const { coordinator, asAdmin } = await start();
    const refused = { code: Code.InvalidArgument };
    for (const limit of [-1, 501]) {
      await expect(coordinator.listJobs({ page: { limit } }, asAdmin)).rejects.toMatchObject(
        refused,
      );
    }
    const wait = coordinator.waitJob({ id: 'j', waitMs: -1n }, asAdmin);
    await expect(wait).rejects.toMatchObject(refused);
    const read = coordinator.readLogs({ job: 'j', after: -1n }, asAdmin);
    await expect(read).rejects.toMatchObject(refused);
  });

  test('a message over the limit is refused in both directions of the same client', async () => {
    const { fake, url } = await start({ limits: { requestBytes: 1000 } });
    const big = { specs: [jobSpec.parse({ command: ['x'.repeat(2000)] })] };
    const request = { ...big, idempotencyKey: null, bodyHash: null };
    const careless = client({ url, token: fake.adminSecret });
    await expect(careless.submit(nobody, request)).rejects.toMatchObject({
      code: 'BODY_TOO_LARGE',
    });
    const careful = client({ url, token: fake.adminSecret, limits: { requestBytes: 1000 } });
    await expect(careful.submit(nobody, request)).rejects.toMatchObject({ code: 'BODY_TOO_LARGE' });
  });

  test('garbage on the port, a broken address and an unknown path end nobody else', async () => {
    const { coordinator, asAdmin, server } = await start();
    const socket = connect(server.port, '127.0.0.1');
    socket.on('error', () => {}).resume();
    socket.end('GET / HTTP/1.1\r\n\r\n\xff\x00garbage');
    await new Promise((resolve) => socket.once('close', resolve));
    const statuses = [];
    const session = connectHttp2(`http://127.0.0.1:${server.port}`);
    closers.push(() => session.close());
    for (const headers of [
      { ':path': '/drover.v1.Coordinator/GetCluster', ':authority': 'host:99999' },
      { ':path': '/nothing/here' },
    ]) {
      const stream = session.request({ ':method': 'POST', ...headers });
      statuses.push(await new Promise((done) => stream.on('response', (h) => done(h[':status']))));
      stream.close();
    }
    expect(statuses).toEqual([415, 404]);
    expect((await coordinator.getCluster({}, asAdmin)).cluster?.name).toBe('fake');
  });
});

describe('limits and logs', () => {
  test('a call that takes too long is given up', async () => {
    const { fake, url } = await start({ limits: { unaryMs: 50 } });
    fake.cluster = () => new Promise(() => {});
    const admin = client({ url, token: fake.adminSecret });
    await expect(admin.cluster(nobody)).rejects.toMatchObject({ code: 'TIMEOUT' });
  });

  test('many large posts share one connection, and each gets its answer', async () => {
    const { fake, url } = await start();
    const { joinSecret } = fake;
    fake.appendLogs = async (_token, chunks) => {
      await new Promise((resolve) => setTimeout(resolve, 50));
      return chunks.map(({ uid, stream, bytes }) => ({ uid, stream, offset: bytes.length }));
    };
    const gateway = client({ url, apiSecret: API_SECRET });
    const bytes = Buffer.alloc(1024 * 1024, 'x');
    const chunk = { uid: 'u', stream: 'stdout' as const, offset: 0, atMs: 0, bytes };
    const posts = Array.from({ length: 60 }, () => gateway.appendLogs(joinSecret, [chunk]));
    for (const acks of await Promise.all(posts)) {
      expect(acks).toEqual([{ uid: 'u', stream: 'stdout', offset: bytes.length }]);
    }
  });

  test('a wait longer than the server holds calls is asked for again', async () => {
    const { fake, url } = await start({ limits: { heldMs: 20 } });
    const admin = client({ url, token: fake.adminSecret });
    const request = { ...submission, idempotencyKey: null, bodyHash: null };
    const { ids } = await admin.submit(nobody, request);
    const waiting = admin.waitJob(nobody, ids[0] ?? '', 10_000);
    setTimeout(() => void admin.cancelJob(nobody, ids[0] ?? ''), 100);
    expect(await waiting).toMatchObject({ state: 'CANCELLED' });
  });

  test('an unexpected failure is logged under the id the client was told', async () => {
    const logged: object[] = [];
    const log: Log = { ...silentLog, error: (fields) => logged.push(fields) };
    const { fake, coordinator } = await start({ log });
    fake.readiness = async () => {
      throw new TypeError('the inside shows');
    };
    const headers = { 'x-request-id': 'my-request.1' };
    const failed = coordinator.readiness({}, { headers });
    await expect(failed).rejects.toMatchObject({
      code: Code.Internal,
      rawMessage: expect.not.stringContaining('the inside shows'),
    });
    expect(logged).toMatchObject([
      { requestId: 'my-request.1', error: expect.stringContaining('the inside shows') },
    ]);
  });

  test('a request id that cannot be printed is replaced', async () => {
    const { coordinator } = await start();
    const seen: string[] = [];
    const onHeader = (headers: Headers): number => seen.push(headers.get('x-request-id') ?? '');
    await coordinator.readiness({}, { headers: { 'x-request-id': 'a'.repeat(500) }, onHeader });
    await coordinator.readiness({}, { headers: { 'x-request-id': 'mine' }, onHeader });
    expect(seen).toEqual([expect.stringMatching(/^[0-9a-f]{16}$/), 'mine']);
  });
});
