/**
 * Who comes in, in real processes: a controller, two gateways in front of it, an OpenID provider
 * that nobody here wrote, and a key file.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { systemRandom } from '../../src/lib/random.ts';
import { hashGatewayKey, newGatewayKey } from '../../src/model/gatewayKey.ts';
import { createClient } from '../../src/protocol/client.ts';
import { call, DROVER, type, until, type Typed } from '../support/journey.ts';
import { sweep } from '../support/leftovers.ts';
import { startOidcServer, type OidcServer } from './oidcServer.ts';

const SECRET = 'a-secret-of-both-that-is-long-enough';
const AUDIENCE = 'https://drover.example.org';
/** The promise of docs/identity.md. */
const REVOKED_WITHIN_MS = 5000;
/** For a question that is under way then, on a busy machine. */
const ANSWER_MS = 500;

let home: string;
let keyFile: string;
let oidc: OidcServer;
let admin: string;
let urls: string[];
const started: Typed[] = [];

function start(args: string[], env: Record<string, string>): Typed {
  const process = type(DROVER, args, { env: { HOME: home, DROVER_LOG_LEVEL: 'info', ...env } });
  started.push(process);
  return process;
}

const listens = (role: Typed, message: string): Promise<string> =>
  until(`${message}: ${role.stderr()}`, () => {
    const lines = role.stderr().split('\n');
    const line = lines.find((text) => text.includes(message));
    return line && (JSON.parse(line) as { url: string }).url;
  });

const drover = (args: string[], env: Record<string, string> = {}, input = '') =>
  type(DROVER, args, { env: { HOME: home, ...env }, input }).ended;

beforeAll(async () => {
  home = mkdtempSync(path.join(tmpdir(), 'drover-identity-'));
  keyFile = path.join(home, 'keys.yaml');
  writeFileSync(keyFile, '[]');
  oidc = await startOidcServer({
    clients: [
      { id: 'ada', secret: 'of-ada', claims: { groups: ['gpu-users'], org: 'org-7f' } },
      { id: 'bob', secret: 'of-bob', claims: { groups: ['gpu-users'], org: 'org-7f' } },
      { id: 'eve', secret: 'of-eve', claims: { groups: ['visitors'], org: 'org-7f' } },
      { id: 'zoe', secret: 'of-zoe', claims: { groups: ['gpu-users'], org: 'org-8' } },
    ],
    scopes: ['scaimind:manage'],
  });
  const controller = start(['controller', '--data', path.join(home, 'data')], {
    DROVER_GRPC_PORT: '0',
    DROVER_GRPC_API_SECRET: SECRET,
  });
  const grpcUrl = await listens(controller, 'gRPC listens');
  const issuer = {
    name: 'lab',
    issuer: oidc.issuer,
    audience: AUDIENCE,
    discovery: true,
    claims: { tenant: 'org' },
    tenants: { 'org-7f': 'default' },
    roles: { 'gpu-users': ['user'] },
  };
  const env = {
    DROVER_GRPC_API_SECRET: SECRET,
    DROVER_AUTH_ISSUERS: JSON.stringify([issuer]),
    DROVER_AUTH_KEY_FILE: keyFile,
  };
  const gateway = ['gateway', '--coordinator', grpcUrl, '--port', '0'];
  const gateways = [start(gateway, env), start(gateway, env)];
  urls = await Promise.all(gateways.map((one) => listens(one, 'gateway listens')));
  const connection = readFileSync(path.join(home, 'data/connection.json'), 'utf8');
  admin = (JSON.parse(connection) as { token: string }).token;
});
afterAll(async () => {
  for (const { child } of started.toReversed()) child.kill('SIGTERM');
  const ends = await Promise.all(started.map(({ ended }) => ended));
  await oidc.close();
  sweep(home);
  rmSync(home, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  expect(ends.map(({ code }) => code)).toEqual(ends.map(() => 0));
});

/** What the first gateway answers to somebody who asks for a terminal. */
function upgrade(token: string): Promise<number | undefined> {
  const headers = {
    authorization: `Bearer ${token}`,
    connection: 'upgrade',
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-key': Buffer.alloc(16).toString('base64'),
  };
  return new Promise((resolve, reject) => {
    const asked = request(`${urls[0]}/v1/tasks/j1.0/exec`, { headers });
    asked.on('response', (response) => resolve(response.resume().statusCode));
    asked.on('upgrade', (response, socket) => {
      socket.destroy();
      resolve(response.statusCode);
    });
    asked.on('error', reject);
    asked.end();
  });
}

/** What each gateway answers to this token. */
const statuses = (token: string): Promise<number[]> =>
  Promise.all(
    urls.map(async (url) => (await call(url, 'GET /v1/jobs', undefined, { token })).status),
  );

describe('tokens of an OpenID provider', () => {
  test('let people in at every gateway, with the roles of their groups', async () => {
    const token = await oidc.token('ada', AUDIENCE);
    expect(await statuses(token)).toEqual([200, 200]);
    const spec = { command: ['true'] };
    const submitted = await call(urls[0]!, 'POST /v1/jobs', spec, { token });
    expect(submitted.status).toBe(201);
    const seen = await call(urls[1]!, 'GET /v1/jobs', undefined, { token: admin });
    expect(seen.body['data']).toMatchObject([{ owner: 'ada', tenant: 'default' }]);
    const tokens = await call(urls[0]!, 'GET /v1/tokens', undefined, { token });
    expect([tokens.status, tokens.body['code']]).toEqual([403, 'PERMISSION_DENIED']);
  });

  test('log in by the command line', async () => {
    const token = await oidc.token('ada', AUDIENCE);
    const there = { HOME: path.join(home, 'ada') };
    const login = await drover(['login', urls[0]!], there, `${token}\n`);
    expect([login.code, login.stderr]).toEqual([0, '']);
    expect(login.stdout).toContain('logged in');
  });

  test('are good for terminals too, and only for those who may', async () => {
    const good = await oidc.token('ada', AUDIENCE);
    // That there is no such task is told in the terminal.
    expect(await upgrade(good)).toBe(101);
    expect(await upgrade(`${good.slice(0, -8)}AAAAAAAA`)).toBe(401);
    expect(await upgrade(await oidc.token('eve', AUDIENCE))).toBe(403);
  });

  test('of nobody that is known here let nobody in', async () => {
    expect(await statuses(await oidc.token('eve', AUDIENCE))).toEqual([403, 403]);
    expect(await statuses(await oidc.token('zoe', AUDIENCE))).toEqual([401, 401]);
    expect(await statuses(await oidc.token('ada', 'https://payroll.example.org'))).toEqual([
      401, 401,
    ]);
  });

  test('with a new key are taken once it is published, the old key no more', async () => {
    const before = await oidc.token('ada', AUDIENCE);
    expect(await statuses(before)).toEqual([200, 200]);
    oidc.rotate();
    const after = await oidc.token('ada', AUDIENCE);
    oidc.away = true;
    // Nobody can say whether the issuer has such a key: that is no refusal.
    await until('it is asked', async () => (await statuses(after)).every((code) => code === 503));
    oidc.away = false;
    await until('the new key is taken', async () =>
      (await statuses(after)).every((c) => c === 200),
    );
    await until('the old is not', async () => (await statuses(before)).every((c) => c === 401));
    const asked = oidc.asked.filter((line) => line === 'GET /jwks').length;
    expect(asked).toBeLessThanOrEqual(8);
  });
});

describe('what is taken back stops within 5 s at every gateway', () => {
  test('a token, a key of the file, a user who leaves', async () => {
    const client = createClient({ url: urls[0]!, token: admin });
    const api = await client.createToken({ name: 'ci', scopes: ['jobs:read'] });
    const key = newGatewayKey(systemRandom);
    const entry = { id: 'ci', hash: hashGatewayKey(key), tenant: 'default', user: 'ci' };
    writeFileSync(keyFile, stringify([{ ...entry, roles: ['viewer'] }]));
    const jwt = await oidc.token('bob', AUDIENCE);
    const all = [api.secret!, key, jwt];
    for (const token of all) {
      await until('it is taken', async () => (await statuses(token)).every((c) => c === 200));
    }
    await delay(200);
    for (const token of all) expect(await statuses(token)).toEqual([200, 200]);

    await client.revokeToken(api.id);
    writeFileSync(keyFile, '[]');
    const left = await call(urls[0]!, 'DELETE /v1/users/bob', undefined, { token: admin });
    expect(left.status).toBe(200);
    const begun = performance.now();
    for (const token of all) {
      await until(
        'it is refused',
        async () => (await statuses(token)).every((code) => code === 401),
        REVOKED_WITHIN_MS + ANSWER_MS - (performance.now() - begun),
      );
    }
    const told = await call(urls[1]!, 'GET /v1/jobs', undefined, { token: jwt });
    expect(told.body['detail']).toContain('bob has left');
  });
});

test('no token and no key is in a log', async () => {
  const token = await oidc.token('ada', AUDIENCE);
  await statuses(`${token.slice(0, -4)}AAAA`);
  const text = started.map((process) => process.stderr()).join('\n');
  expect(text).toContain('the key file was read');
  for (const part of token.split('.')) expect(text).not.toContain(part);
  expect(text).not.toMatch(/drg_[0-9a-f]/);
});
