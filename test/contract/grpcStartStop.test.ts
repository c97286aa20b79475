/** The gRPC listener: encryption, start and a clean stop. */
import { afterEach, describe, expect, test } from 'vitest';
import { silentLog } from '../../src/lib/log.ts';
import type { TlsSource } from '../../src/lib/tls/files.ts';
import type { Pems } from '../../src/lib/tls/pems.ts';
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
    const expired = ours.issue('late', { expired: true });
    await expect(as({ ca: ours.cert, ...expired })).rejects.toMatchObject(unavailable);
  });

  test('both ends take renewed files for new connections; calls in progress go on', async () => {
    const old = createAuthority('old CA');
    const renewed = createAuthority('new CA');
    const atServer = renewable({ ...old.issue('server'), ca: old.cert });
    const atClient = renewable({ ...old.issue('gateway'), ca: old.cert });
    const { fake, server } = await start({ tls: atServer });
    const url = `grpcs://127.0.0.1:${server.port}`;
    const known = client({ url, tls: atClient, token: fake.adminSecret });
    const request = { ...submission, idempotencyKey: null, bodyHash: null };
    const { ids } = await known.submit(nobody, request);
    const held = known.waitJob(nobody, ids[0] ?? '', 1_000);
    await new Promise((resolve) => setTimeout(resolve, 50));
    atServer.renew({ ...renewed.issue('server'), ca: renewed.cert });
    // On the connection it has, the old files are as good as ever.
    expect(await known.cluster(nobody)).toMatchObject({ name: 'fake' });
    const as = (tls: { ca: string; cert: string; key: string }) =>
      client({ url, tls, token: fake.adminSecret }).cluster(nobody);
    const unavailable = { name: 'DroverError' };
    const late = { ca: old.cert, ...old.issue('x') };
    await expect(as(late)).rejects.toMatchObject(unavailable);
    await expect(as({ ...late, ca: renewed.cert })).rejects.toMatchObject(unavailable);
    const { cert, key } = renewed.issue('gateway');
    expect(await as({ ca: renewed.cert, cert, key })).toMatchObject({ name: 'fake' });
    expect(await held).toMatchObject({ id: ids[0] });

    // The client's next connection is made with what its files hold by then.
    const second = client({ url, tls: atClient, token: fake.adminSecret });
    await expect(second.cluster(nobody)).rejects.toMatchObject(unavailable);
    atClient.renew({ ca: renewed.cert, cert, key });
    expect(await second.cluster(nobody)).toMatchObject({ name: 'fake' });
  });
});

/** What TlsFiles is to both ends, without files. */
function renewable(first: Pems): TlsSource & { renew(next: Pems): void } {
  let now = first;
  const appliers: (() => void)[] = [];
  return {
    get cert() {
      return now.cert;
    },
    get key() {
      return now.key;
    },
    get ca() {
      return now.ca;
    },
    onChange: (apply) => void appliers.push(apply),
    renew(next) {
      now = next;
      for (const apply of appliers) apply();
    },
  };
}

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
