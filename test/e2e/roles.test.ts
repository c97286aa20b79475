/** The roles apart: controller and gateway as two processes, joined by gRPC with mTLS. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createClient, type DroverClient } from '../../src/protocol/client.ts';
import { DROVER, ROOT, call, type, until, type Typed } from '../support/journey.ts';
import { createAuthority } from '../support/certificates.ts';
import { sweep } from '../support/leftovers.ts';

const SECRET = 'a-secret-of-both-that-is-long-enough';
let home: string;
let data: string;
let grpcUrl: string;
let url: string;
let token: string;
let client: DroverClient;
const authority = createAuthority('cluster CA');
const started: Typed[] = [];

function start(args: string[], env: Record<string, string>): Typed {
  const process = type(DROVER, args, { env: { HOME: home, ...certificates('own'), ...env } });
  started.push(process);
  return process;
}

/** Settings that name a certificate, its key and the authority of both ends. */
function certificates(name: string): Record<string, string> {
  const at = (kind: string): string => path.join(home, `${name}-${kind}.pem`);
  return {
    DROVER_GRPC_CERT_FILE: at('cert'),
    DROVER_GRPC_KEY_FILE: at('key'),
    DROVER_GRPC_CA_FILE: at('ca'),
  };
}

function writeCertificates(name: string, { issuer = authority, expired = false } = {}): void {
  const { cert, key } = issuer.issue(name, { expired });
  const { DROVER_GRPC_CERT_FILE, DROVER_GRPC_KEY_FILE, DROVER_GRPC_CA_FILE } = certificates(name);
  writeFileSync(DROVER_GRPC_CERT_FILE!, cert);
  writeFileSync(DROVER_GRPC_KEY_FILE!, key, { mode: 0o600 });
  writeFileSync(DROVER_GRPC_CA_FILE!, authority.cert);
}

/** From its own JSON line. */
const listens = (role: Typed, message: string): Promise<string> =>
  until(`${message}: ${role.stderr()}`, () => {
    const line = role
      .stderr()
      .split('\n')
      .find((text) => text.includes(message));
    return line && (JSON.parse(line) as { url: string }).url;
  });

beforeAll(async () => {
  home = mkdtempSync(path.join(tmpdir(), 'drover-roles-'));
  data = path.join(home, 'data');
  writeCertificates('own');
  const secretFile = path.join(home, 'secret');
  writeFileSync(secretFile, `${SECRET}\n`, { mode: 0o600 });
  const controller = start(['controller', '--data', data], {
    DROVER_GRPC_PORT: '0',
    DROVER_GRPC_API_SECRET_FILE: secretFile,
    DROVER_LEASES_LONG_POLL_MS: '2000',
  });
  grpcUrl = await listens(controller, 'gRPC listens');
  const gateway = start(['gateway', '--coordinator', grpcUrl, '--port', '0'], {
    DROVER_GRPC_API_SECRET: SECRET,
  });
  url = await listens(gateway, 'gateway listens');
  const file = path.join(data, 'connection.json');
  const connection = JSON.parse(
    await until('connection.json', () => readFileSync(file, 'utf8')),
  ) as { token: string; joinToken: string };
  token = connection.token;
  client = createClient({ url, token });
  start(['agent', '--join', url, '--data', path.join(home, 'agent'), '--name', 'far'], {
    DROVER_JOIN_TOKEN: connection.joinToken,
    DROVER_AGENT_RESOURCES: 'cpus=2,mem=1Gi',
  });
  await until('the agent has joined through the gateway', async () =>
    (await client.listWorkers({})).items.some(({ name }) => name === 'far'),
  );
});
afterAll(async () => {
  for (const { child } of started.toReversed()) child.kill('SIGTERM');
  const ends = await Promise.all(started.map(({ ended }) => ended));
  sweep(home);
  rmSync(home, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  expect(ends.map(({ code }) => code)).toEqual(ends.map(() => 0));
});

const drover = (args: string[], input = '') =>
  type(DROVER, args, { env: { HOME: home, DROVER_URL: url, DROVER_TOKEN: token }, input }).ended;

describe('through a gateway of its own', () => {
  test('a job from submit to exit code, its log followed', async () => {
    const { code, stdout, stderr } = await drover([
      'run',
      '--',
      'sh',
      '-c',
      'echo out; echo err >&2; exit 6',
    ]);
    expect([code, stdout, stderr]).toEqual([6, 'out\n', 'err\n']);
  });

  test('exec goes through the tunnel', async () => {
    const { stdout: id } = await drover(['run', '-d', '--', 'sleep', '300']);
    await until('it runs', async () => (await client.getJob(id.trim())).state === 'RUNNING');
    const { code, stdout } = await drover(
      ['exec', id.trim(), '--', 'sh', '-c', 'cat; exit 3'],
      'in',
    );
    expect([code, stdout]).toEqual([3, 'in']);
    await drover(['cancel', id.trim()]);
    expect((await drover(['wait', id.trim()])).code).toBe(130);
  });

  test('lists, tokens, metrics and readiness as with one process', async () => {
    const [info, workers, ready, metrics, created] = await Promise.all([
      drover(['info', '--json']),
      drover(['workers', '--json']),
      call(url, 'GET /readyz'),
      call(url, 'GET /metrics'),
      client.createToken({ name: 'reader', scopes: ['jobs:read'] }),
    ]);
    expect(JSON.parse(info.stdout)).toMatchObject({ store: 'sqlite', workers: { online: 1 } });
    expect(JSON.parse(workers.stdout)).toMatchObject([{ name: 'far', state: 'ONLINE' }]);
    expect(ready).toMatchObject({ status: 200, body: { data: { ready: true } } });
    expect(metrics.text).toContain('drover_workers{state="ONLINE"} 1');
    expect(metrics.text).toContain('drover_gateway_requests_total');
    const denied = await call(
      url,
      'POST /v1/jobs',
      { command: ['true'] },
      { token: created.secret! },
    );
    expect(denied).toMatchObject({ status: 403, body: { code: 'PERMISSION_DENIED' } });
  });

  test('errors keep their codes and hints', async () => {
    const [missing, bad, nobody, pool] = await Promise.all([
      call(url, 'GET /v1/jobs/nope', undefined, { token }),
      call(url, 'POST /v1/jobs', { comand: ['true'] }, { token }),
      call(url, 'GET /v1/jobs', undefined, { token: 'wrong' }),
      call(url, 'POST /v1/jobs', { command: ['true'], pool: 'nowhere' }, { token }),
    ]);
    expect([missing, bad, nobody, pool].map(({ status }) => status)).toEqual([404, 400, 401, 422]);
    for (const { body } of [missing, bad, nobody, pool]) expect(body['hint']).toBeTruthy();
  });

  test('gRPC health, asked by a foreign client', async () => {
    const how = ['--schema', 'proto', '--protocol', 'grpc'];
    const health = `${grpcUrl.replace('grpc', 'http')}/grpc.health.v1.Health/Check`;
    const own = certificates('own');
    how.push('--cacert', own['DROVER_GRPC_CA_FILE']!);
    how.push('--cert', own['DROVER_GRPC_CERT_FILE']!, '--key', own['DROVER_GRPC_KEY_FILE']!);
    const buf = path.join(ROOT, 'node_modules/.bin/buf');
    const { stdout } = await type(buf, ['curl', ...how, '--data', '{}', health], {
      env: { HOME: home },
    }).ended;
    expect(JSON.parse(stdout)).toEqual({ status: 'SERVING' });
  });
});

describe('a gateway that cannot', () => {
  const gateway = (coordinator: string[], env: Record<string, string>) =>
    type(DROVER, ['gateway', '--port', '0', ...coordinator], {
      env: { HOME: home, ...certificates('own'), ...env },
    });

  test.for([
    ['no controller named', [], { DROVER_GRPC_API_SECRET: SECRET }, 'not named'],
    ['no secret', ['--coordinator', 'grpc://127.0.0.1:1'], {}, 'DROVER_GRPC_API_SECRET'],
    [
      'a short secret',
      ['--coordinator', 'grpc://127.0.0.1:1'],
      { DROVER_GRPC_API_SECRET: 'abc' },
      '16',
    ],
    ['a bad URL', ['--coordinator', 'http://x'], { DROVER_GRPC_API_SECRET: SECRET }, 'grpc://'],
    [
      'clear text abroad',
      ['--coordinator', 'grpc://10.0.0.1:1'],
      { DROVER_GRPC_API_SECRET: SECRET },
      'grpcs://',
    ],
  ] as const)('%s', async ([, args, env, words]) => {
    const { code, stderr } = await gateway([...args], env).ended;
    expect([code, stderr]).toEqual([2, expect.stringContaining(words)]);
    expect(stderr).toMatch(/^error INVALID_ARGUMENT: .*/);
    expect(stderr).toMatch(/^try: /m);
  });

  test('another secret than the controller: nobody is let in, and it says why', async () => {
    const wrong = gateway(['--coordinator', grpcUrl], { DROVER_GRPC_API_SECRET: `${SECRET}-not` });
    const at = await listens(wrong, 'gateway listens');
    const [jobs, ready] = await Promise.all([
      call(at, 'GET /v1/jobs', undefined, { token }),
      call(at, 'GET /readyz'),
    ]);
    for (const { status, body } of [jobs, ready]) {
      expect([status, body['detail']]).toEqual([503, expect.stringContaining('secrets differ')]);
      expect(body['hint']).toContain('DROVER_GRPC_API_SECRET');
    }
    wrong.child.kill('SIGTERM');
    await wrong.ended;
  });

  test('a certificate that its controller does not take: nobody is let in', async () => {
    const strangers = createAuthority('another CA');
    writeCertificates('stranger', { issuer: strangers });
    writeCertificates('late', { expired: true });
    const [stranger, late] = ['stranger', 'late'].map((name) =>
      gateway(['--coordinator', grpcUrl], {
        DROVER_GRPC_API_SECRET: SECRET,
        ...certificates(name),
      }),
    );
    for (const refused of [stranger!, late!]) {
      const at = await listens(refused, 'gateway listens');
      const { status } = await call(at, 'GET /v1/jobs', undefined, { token });
      expect(status).toBe(503);
    }
    // Renewed while it runs: its next connection is made with what the files hold by then.
    writeCertificates('late');
    const at = await listens(late!, 'gateway listens');
    await until('it is let in', async () => {
      const { status } = await call(at, 'GET /v1/jobs', undefined, { token });
      return status === 200;
    });
    const { text } = await call(at, 'GET /metrics');
    expect(text).toContain('drover_gateway_caller_certificate_renewals_total{outcome="taken"} 1');
    expect(text).toContain('drover_grpc_certificate_renewals_total{outcome="taken"} 0');
    for (const { child } of [stranger!, late!]) child.kill('SIGTERM');
    expect((await Promise.all([stranger!.ended, late!.ended])).map(({ code }) => code)).toEqual([
      0, 0,
    ]);
  });

  test('a controller that is away: 503 with a hint, alive but not ready', async () => {
    const alone = gateway(['--coordinator', 'grpc://127.0.0.1:1'], {
      DROVER_GRPC_API_SECRET: SECRET,
    });
    const at = await listens(alone, 'gateway listens');
    const [alive, ready, jobs] = await Promise.all([
      call(at, 'GET /healthz'),
      call(at, 'GET /readyz'),
      call(at, 'GET /v1/jobs', undefined, { token }),
    ]);
    expect([alive.status, ready.status, jobs.status]).toEqual([200, 503, 503]);
    expect(jobs.body).toMatchObject({ code: 'UNAVAILABLE', hint: expect.any(String) });
    alone.child.kill('SIGTERM');
    expect((await alone.ended).code).toBe(0);
  });
});
