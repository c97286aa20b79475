/** Who is asked about a token, what is remembered, and the key file. */
import { chmodSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectNodeAdapter } from '@connectrpc/connect-node';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import type { Clock } from '../../lib/clock.ts';
import { DroverError } from '../../lib/errors.ts';
import { silentLog } from '../../lib/log.ts';
import { systemRandom } from '../../lib/random.ts';
import { authSettings } from '../../model/authSettings.ts';
import { hashGatewayKey, newGatewayKey, type GatewayKeyEntry } from '../../model/gatewayKey.ts';
import type { Identity, Principal } from '../../model/token.ts';
import { Coordinator as Foreign } from '../../protocol/gen/drover/v1/coordinator_pb.ts';
import { createGrpcCoordinator } from '../../protocol/grpc/client.ts';
import { openAuthenticate, type AuthenticateOptions } from './authenticate.ts';
import { AUTH_LIMITS } from './limits.ts';
import { newTestKey, signed } from './testIssuer.ts';
import { TokenCache } from './tokenCache.ts';

const folder = mkdtempSync(join(tmpdir(), 'drover-keyfile-'));
afterAll(() => rmSync(folder, { recursive: true }));

const ISSUER = 'https://login.example.org';
const key = newTestKey('k', 'ES256');
const issuer = {
  name: 'lab',
  issuer: ISSUER,
  audience: 'drover',
  keys: [key.jwk],
  tenant: 'physics',
  roles: { users: ['user'] },
  clockSkewMs: 2000,
};

let nowMs: number;
beforeEach(() => (nowMs = Date.now()));
const clock: Clock = {
  now: () => nowMs,
  bootMs: () => nowMs,
  setTimer: () => ({ cancel() {} }),
  soon: (run) => run(),
};

function tokenFor(seconds: number): string {
  const exp = Math.floor(nowMs / 1000) + seconds;
  return signed(key, { iss: ISSUER, aud: 'drover', sub: 'ada', exp, groups: ['users'] });
}

const FOREIGN = (): never => {
  throw new DroverError('METHOD_NOT_ALLOWED', 'unimplemented');
};

async function setUp(auth: object, coordinator: Partial<AuthenticateOptions['coordinator']> = {}) {
  const asked: (string | Identity)[] = [];
  const authenticate = await openAuthenticate(authSettings.parse(auth), {
    clock,
    log: silentLog,
    coordinator: {
      authenticate: async (secret) => void asked.push(secret),
      async admit(identity) {
        asked.push(identity);
        const { tenant, user } = identity;
        return { token: 't' as Principal['token'], tenant, user, scopes: ['jobs:read'] };
      },
      ...coordinator,
    },
  });
  return { authenticate, asked };
}

describe('who is asked', () => {
  test('the controller about its own tokens, and whether somebody may still come in', async () => {
    const { authenticate, asked } = await setUp({ issuers: [issuer] });
    expect(await authenticate('drv_1')).toBeUndefined();
    expect(await authenticate(tokenFor(60))).toMatchObject({ user: 'ada', scopes: ['jobs:read'] });
    expect(asked).toEqual([
      'drv_1',
      expect.objectContaining({
        issuer: ISSUER,
        subject: 'ada',
        tenant: 'physics',
        roles: ['user'],
      }),
    ]);
  });

  test('without issuers a JWT is any token', async () => {
    const { authenticate, asked } = await setUp({});
    expect(await authenticate('a.b.c')).toBeUndefined();
    expect(asked).toEqual(['a.b.c']);
  });

  test('with issuers no JWT is shown to the controller', async () => {
    const { authenticate, asked } = await setUp({ issuers: [issuer] });
    const foreign = signed(key, { iss: 'https://bank.example', aud: 'bank', exp: 9e9, sub: 'ada' });
    await expect(authenticate(foreign)).rejects.toThrow('iss');
    expect(asked).toEqual([]);
  });

  test('who has left is told so', async () => {
    const { authenticate } = await setUp({ issuers: [issuer] }, { admit: async () => undefined });
    await expect(authenticate(tokenFor(60))).rejects.toMatchObject({
      code: 'UNAUTHENTICATED',
      message: expect.stringContaining('ada has left the tenant physics'),
    });
  });

  test('a controller that is away is no refusal', async () => {
    const admit = (): never => {
      throw new DroverError('UNAVAILABLE', 'away');
    };
    const { authenticate } = await setUp({ issuers: [issuer] }, { admit });
    await expect(authenticate(tokenFor(60))).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  });

  test('in front of a foreign coordinator the word of the issuer is enough', async () => {
    const { authenticate } = await setUp(
      { issuers: [issuer] },
      { admit: FOREIGN, authenticate: FOREIGN },
    );
    expect(await authenticate(tokenFor(60))).toMatchObject({
      tenant: 'physics',
      user: 'ada',
      scopes: ['jobs:read', 'jobs:manage', 'fleet:read'],
      identity: { issuer: ISSUER, subject: 'ada' },
    });
    expect(await authenticate('drv_1')).toBeUndefined();
  });

  test('which holds while that coordinator is away, and no longer than it is foreign', async () => {
    let admit: () => Promise<Principal | undefined> = FOREIGN;
    const { authenticate } = await setUp({ issuers: [issuer] }, { admit: async () => admit() });
    await authenticate(tokenFor(60));
    admit = () => Promise.reject(new DroverError('UNAVAILABLE', 'away'));
    expect(await authenticate(tokenFor(60))).toMatchObject({ user: 'ada' });
    admit = () => Promise.resolve(undefined);
    await expect(authenticate(tokenFor(60))).rejects.toThrow('has left');
    admit = () => Promise.reject(new DroverError('UNAVAILABLE', 'away'));
    await expect(authenticate(tokenFor(60))).rejects.toThrow('away');
  });
});

test('a server of the proto that lacks both calls is such a one', async () => {
  const routes = connectNodeAdapter({ routes: (router) => router.service(Foreign, {}) });
  const server = createServer(routes);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const url = `grpc://127.0.0.1:${port}`;
  const coordinator = createGrpcCoordinator({ url, apiSecret: 'shared by both of them' });
  const { authenticate } = await setUp({ issuers: [issuer] }, coordinator);
  expect(await authenticate(tokenFor(60))).toMatchObject({ user: 'ada', tenant: 'physics' });
  expect(await authenticate('drv_1')).toBeUndefined();
  coordinator.close();
  server.close();
});

test('a JWT is not remembered past its end; a little longer it is checked each time', async () => {
  const { authenticate } = await setUp({ issuers: [issuer] });
  const limits = { tokenCacheMs: 5000, unknownTokenCacheMs: 1000, tokenCacheEntries: 10 };
  const cache = new TokenCache({ authenticate, clock, ...limits });
  nowMs = Math.floor(nowMs / 1000) * 1000;
  const token = tokenFor(3);
  expect(await cache.lookup(token)).toMatchObject({ user: 'ada' });
  nowMs += 2999;
  expect(cache.peek(token)).toBeDefined();
  nowMs += 1;
  expect(cache.peek(token)).toBeUndefined();
  expect(await cache.lookup(token)).toMatchObject({ user: 'ada' });
  expect(cache.peek(token)).toBeUndefined();
  nowMs += issuer.clockSkewMs;
  await expect(cache.lookup(token)).rejects.toThrow('expired');
});

describe('the key file', () => {
  const path = join(folder, 'keys.yaml');
  const secret = newGatewayKey(systemRandom);
  const entry: GatewayKeyEntry = {
    id: 'laptop',
    hash: hashGatewayKey(secret),
    tenant: 'physics',
    user: 'ada',
    roles: ['viewer'],
  };
  let version = 1;
  /** With a time of its own: two writes may fall into one tick of the file system. */
  const write = (text: string): void => {
    writeFileSync(path, text);
    utimesSync(path, version, version++);
  };

  test('lets its keys in, in front of whatever coordinator', async () => {
    write(stringify([entry]));
    const { authenticate, asked } = await setUp({ keyFile: path });
    expect(await authenticate(secret)).toMatchObject({ user: 'ada', tenant: 'physics' });
    expect(asked).toEqual([expect.objectContaining({ issuer: 'key-file', subject: 'laptop' })]);
    expect(await authenticate(newGatewayKey(systemRandom))).toBeUndefined();
    const foreign = await setUp({ keyFile: path }, { admit: FOREIGN });
    expect(await foreign.authenticate(secret)).toMatchObject({
      scopes: ['jobs:read', 'fleet:read'],
    });
  });

  test('a key that is taken out is refused within 5 s', async () => {
    write(stringify([entry]));
    const { authenticate } = await setUp({ keyFile: path });
    const limits = { tokenCacheMs: 5000, unknownTokenCacheMs: 1000, tokenCacheEntries: 10 };
    const cache = new TokenCache({ authenticate, clock, ...limits });
    // The file was looked at just before it changed, the key asked for just before the next look.
    expect(await cache.lookup(secret)).toBeDefined();
    write('[]');
    nowMs += AUTH_LIMITS.fileCheckMs - 1;
    cache.forget('t');
    expect(await cache.lookup(secret)).toBeDefined();
    nowMs += 5000 - AUTH_LIMITS.fileCheckMs;
    expect(await cache.lookup(secret)).toBeUndefined();
  });

  test('an expired key is refused, and not remembered past its end', async () => {
    const expires = new Date(nowMs + 1500).toISOString();
    write(stringify([{ ...entry, expires }]));
    const { authenticate } = await setUp({ keyFile: path });
    expect(await authenticate(secret)).toMatchObject({ untilMs: nowMs + 1500 });
    nowMs += 1500;
    expect(await authenticate(secret)).toBeUndefined();
  });

  test('a file that broke lets nobody in, and says so without its content', async () => {
    write(stringify([entry]));
    const { authenticate } = await setUp({ keyFile: path });
    write('- id: [');
    nowMs += AUTH_LIMITS.fileCheckMs;
    await expect(authenticate(secret)).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    await expect(authenticate(secret)).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    // Tokens of the controller are another matter.
    expect(await authenticate('drv_1')).toBeUndefined();
    write(stringify([entry]));
    nowMs += AUTH_LIMITS.fileCheckMs;
    expect(await authenticate(secret)).toMatchObject({ user: 'ada' });
  });

  test('one that everybody may write to is not believed', async () => {
    write(stringify([entry]));
    chmodSync(path, 0o666);
    await expect(setUp({ keyFile: path })).rejects.toThrow('everybody may write');
    chmodSync(path, 0o600);
    await setUp({ keyFile: path });
  });

  test.for<[string, string, string]>([
    ['absent', '', 'ENOENT'],
    ['no YAML', `- id: [\n  hash: ${secret}`, 'auth.keyFile'],
    ['no list', 'id: laptop', 'the file'],
    ['a key instead of its hash', stringify([{ ...entry, hash: secret }]), 'entry 1: hash'],
    ['a role that is none', stringify([{ ...entry, roles: ['king'] }]), 'entry 1: roles.0'],
    ['no roles', stringify([{ ...entry, roles: [] }]), 'entry 1: roles'],
    ['a date that is none', stringify([{ ...entry, expires: 'soon' }]), 'entry 1: expires'],
    ['a word too much', stringify([{ ...entry, role: 'admin' }]), 'role'],
    ['the same twice', stringify([entry, entry]), 'laptop is there twice'],
  ])('one that does not fit keeps a gateway from starting: %s', async ([name, text, word]) => {
    const bad = join(folder, `${name}.yaml`);
    if (text) writeFileSync(bad, text);
    const failure = (await setUp({ keyFile: bad }).catch((error: unknown) => error)) as Error;
    expect(failure).toMatchObject({ code: 'INVALID_ARGUMENT' });
    expect(failure.message).toContain(word);
    expect(failure.message).not.toContain(secret);
  });
});
