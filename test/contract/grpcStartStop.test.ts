/** The gRPC listener: encryption, start and a clean stop. */
import { afterEach, describe, expect, test } from 'vitest';
import { silentLog } from '../../src/lib/log.ts';
import { FakeCoordinator } from '../../src/protocol/fakeCoordinator.ts';
import { createGrpcCoordinator } from '../../src/protocol/grpc/client.ts';
import { createGrpcServer, type GrpcServerOptions } from '../../src/protocol/grpc/server.ts';
import { jobSpec } from '../../src/protocol/jobSpec.ts';
import { createAuthority } from '../support/certificates.ts';
import { startGrpcFake, type GrpcFake } from '../support/grpc.ts';

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

describe('encryption', () => {
  test('clear text is refused where others can listen, on both sides', async () => {
    const options = { coordinator: new FakeCoordinator(), port: 0, log: silentLog };
    const refused = { code: 'INVALID_ARGUMENT', message: expect.stringContaining('clear text') };
    await expect(createGrpcServer({ ...options, host: '0.0.0.0' })).rejects.toMatchObject(refused);
    await expect(createGrpcServer({ ...options, host: '::' })).rejects.toMatchObject(refused);
    expect(() => createGrpcCoordinator({ url: 'grpc://10.0.0.1:7070' })).toThrow('clear text');
    expect(() => createGrpcCoordinator({ url: 'http://x' })).toThrow("not a controller's URL");
    const open = await createGrpcServer({ ...options, host: '0.0.0.0', insecure: true });
    closers.push(() => open.close());
    expect(open.port).toBeGreaterThan(0);
  });

  test('with a CA only clients it signed get in, and the server is checked, too', async () => {
    const ours = createAuthority('drover test CA');
    const theirs = createAuthority('another CA');
    const { fake, server } = await start({ tls: { ...ours.issue('server'), ca: ours.cert } });
    const url = `grpcs://127.0.0.1:${server.port}`;
    const as = (tls: { ca: string; cert?: string; key?: string }) =>
      client({ url, tls, token: fake.adminSecret }).cluster(nobody);
    expect(await as({ ca: ours.cert, ...ours.issue('gateway') })).toMatchObject({ name: 'fake' });
    const unavailable = { name: 'DroverError' };
    await expect(as({ ca: ours.cert })).rejects.toMatchObject(unavailable);
    await expect(as({ ca: ours.cert, ...theirs.issue('x') })).rejects.toMatchObject(unavailable);
    await expect(as({ ca: theirs.cert, ...ours.issue('x') })).rejects.toMatchObject(unavailable);
  });
});

describe('start and stop', () => {
  test('a port in use is named', async () => {
    const { server } = await start();
    const again = startGrpcFake({ port: server.port });
    await expect(again).rejects.toMatchObject({
      code: 'CONFLICT',
      message: expect.stringContaining(`${server.port}: the port is in use`),
    });
  });

  test('a stop lets calls finish, ends held ones, and takes no new ones', async () => {
    const { fake, server, url } = await start();
    const admin = client({ url, token: fake.adminSecret });
    const request = { ...submission, idempotencyKey: null, bodyHash: null };
    const { ids } = await admin.submit(nobody, request);
    const cluster = fake.cluster.bind(fake);
    fake.cluster = async (who) => {
      await new Promise((resolve) => setTimeout(resolve, 200));
      return cluster(who);
    };
    const inProgress = admin.cluster(nobody);
    const held = admin.waitJob(nobody, ids[0] ?? '', 20_000);
    const heldEnds = expect(held).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    await new Promise((resolve) => setTimeout(resolve, 50));
    const stopped = server.close();
    expect(await inProgress).toMatchObject({ name: 'fake' });
    await heldEnds;
    await stopped;
    await expect(admin.cluster(nobody)).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  });

  test('a call that never ends holds up a stop only so long', async () => {
    const { fake, server, url } = await start({ limits: { drainMs: 100 } });
    fake.cluster = () => new Promise(() => {});
    const stuck = client({ url, token: fake.adminSecret }).cluster(nobody);
    const ends = expect(stuck).rejects.toMatchObject({ name: 'DroverError' });
    await new Promise((resolve) => setTimeout(resolve, 50));
    const began = performance.now();
    await server.close();
    expect(performance.now() - began).toBeLessThan(2_000);
    await ends;
  });
});
