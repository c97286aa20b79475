/** A cluster over HTTPS with an authority of its own: curl, openssl, commands, agents, SDKs. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { useClientTlsFiles } from '../../src/protocol/clientTls.ts';
import { createAuthority } from '../support/certificates.ts';
import { DROVER, ROOT, startJourney, type, until, type Journey } from '../support/journey.ts';
import type { Typed } from '../support/journey.ts';
import { sweep } from '../support/leftovers.ts';

const authority = createAuthority('lab CA');
let folder: string;
let caFile: string;
let journey: Journey;
let agent: Typed;

const at = (name: string): string => path.join(folder, name);

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'drover-lab-'));
  caFile = at('ca.pem');
  writeFileSync(caFile, authority.cert);
  writeCertificate('first');
  useClientTlsFiles({ caFile });
  journey = await startJourney({
    args: ['--ca-file', caFile, '--no-agent'],
    env: { DROVER_SERVER_CERT_FILE: at('cert.pem'), DROVER_SERVER_KEY_FILE: at('key.pem') },
  });
  agent = type(DROVER, ['agent', '--join', byName(), '--ca-file', caFile, '--name', 'far'], {
    env: {
      HOME: folder,
      DROVER_JOIN_TOKEN: journey.joinToken,
      DROVER_AGENT_RESOURCES: 'cpus=2,mem=1Gi',
    },
  });
  await until('the agent has joined', async () =>
    (await journey.client.listWorkers({})).items.some(({ state }) => state === 'ONLINE'),
  );
});
afterAll(async () => {
  // The server first: it waits until the agent has let go of its work.
  await journey?.close();
  agent?.child.kill('SIGTERM');
  await agent?.ended;
  sweep(folder);
  rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
});

function writeCertificate(name: string): void {
  const { cert, key } = authority.issue(name);
  writeFileSync(at('cert.pem'), cert);
  writeFileSync(at('key.pem'), key);
}

/** Not as `drover up` prints it: by a name. */
const byName = (): string => journey.url.replace('127.0.0.1', 'localhost');
/** As another user of another machine: with a home that knows nothing. */
const stranger = (args: string[], env: Record<string, string> = {}, input = '') =>
  type(DROVER, args, { env: { HOME: at('stranger'), ...env }, cwd: ROOT, input }).ended;

describe('clients that nobody here wrote', () => {
  test('curl trusts the authority and nothing less', async () => {
    expect(journey.url).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/);
    const curl = (...args: string[]) =>
      type('curl', ['-sS', '--max-time', '20', ...args], { env: { HOME: folder } }).ended;
    const [trusted, untrusted, plain, old] = await Promise.all([
      curl('--cacert', caFile, '-D', '-', `${byName()}/healthz`),
      curl(`${byName()}/healthz`),
      curl(`${byName().replace('https', 'http')}/healthz`),
      curl('--cacert', caFile, '--tls-max', '1.1', `${byName()}/healthz`),
    ]);
    expect(trusted).toMatchObject({ code: 0, stdout: expect.stringContaining('"alive":true') });
    expect(trusted.stdout).toMatch(/^content-security-policy: default-src 'none'/im);
    expect(untrusted.code).toBe(60);
    expect(plain.code).not.toBe(0);
    expect(old.code).not.toBe(0);
  });

  test('openssl gets TLS 1.3, 1.2 with good ciphers only, and no renegotiation', async () => {
    const to = `127.0.0.1:${new URL(journey.url).port}`;
    const openssl = (args: string[], input = 'Q\n') =>
      type('openssl', ['s_client', '-connect', to, '-CAfile', caFile, ...args], { input }).ended;
    const [newest, second, weak, again] = await Promise.all([
      openssl([]),
      openssl(['-tls1_2']),
      openssl(['-tls1_2', '-cipher', 'AES128-SHA:ECDHE-ECDSA-AES128-SHA']),
      openssl(['-tls1_2'], 'R\n'),
    ]);
    expect(newest.stdout).toContain('TLSv1.3');
    expect(newest.stdout).toContain('Verify return code: 0 (ok)');
    expect(second.stdout).toMatch(/Cipher is ECDHE-ECDSA-AES128-GCM-SHA256/);
    expect(weak.stdout).toContain('Cipher is (NONE)');
    expect(again.stderr).toMatch(/no renegotiation|handshake failure/);
  });

  test('the Python client finds the authority as the command line does', async () => {
    const script = 'from drover import Client; print(Client().cluster()["insecure"])';
    const python = (env: Record<string, string>) =>
      type('python3', ['-c', script], {
        env: { PYTHONPATH: path.join(ROOT, 'sdk/python/src'), ...env },
      }).ended;
    expect(await python({ HOME: journey.home })).toMatchObject({ code: 0, stdout: 'False\n' });
    const { url, token } = journey;
    const unknown = await python({ HOME: at('x'), DROVER_URL: url, DROVER_TOKEN: token });
    expect(unknown.stderr).toMatch(/certificate.*\n.*DROVER_CA_FILE/i);
  });
});

describe('commands', () => {
  test('beside `drover up` they work as always: run, a followed log, exec over wss', async () => {
    const ran = await journey.drover('run', '--', 'sh', '-c', 'echo over TLS; exit 3');
    expect(ran).toMatchObject({ code: 3, stdout: 'over TLS\n' });
    const job = await journey.submit({ command: ['sleep', '60'] });
    await journey.running(job);
    const inside = await journey.drover('exec', job, '--', 'echo', 'inside');
    expect(inside).toMatchObject({ code: 0, stdout: 'inside\n' });
    await journey.client.cancelJob(job);
  });

  test('elsewhere an unknown authority is told at once, and --ca-file is the way out', async () => {
    const env = { DROVER_URL: byName(), DROVER_TOKEN: journey.token };
    const begun = performance.now();
    const refused = await stranger(['workers'], env);
    expect(performance.now() - begun).toBeLessThan(10_000);
    expect(refused.code).not.toBe(0);
    expect(refused.stderr).toMatch(/^error UNTRUSTED_SERVER: no connection to https:/);
    expect(refused.stderr).toContain('--ca-file');
    expect(await stranger(['workers', '--ca-file', caFile], env)).toMatchObject({ code: 0 });
    const named = { ...env, DROVER_CA_FILE: caFile };
    expect((await stranger(['workers'], named)).stdout).toContain('ONLINE');
    const wrong = await stranger(['workers', '--ca-file', at('none.pem')], env);
    expect(wrong.stderr).toMatch(/none\.pem, which cannot be read/);
  });

  test('login keeps the authority, and later commands need nothing', async () => {
    const login = ['login', byName(), '--ca-file', path.relative(ROOT, caFile), '--name', 'lab'];
    expect(await stranger(login, {}, journey.token)).toMatchObject({ code: 0 });
    const listed = await stranger(['workers', '--json']);
    expect(JSON.parse(listed.stdout)).toMatchObject([{ name: 'far', state: 'ONLINE' }]);
    expect((await stranger(['context'])).stderr).toBe('');
  });

  test('a job that may submit others is handed the authority', async () => {
    const script =
      'curl -sS --cacert "$DROVER_CA_FILE" -H "Authorization: Bearer $DROVER_TOKEN" ' +
      '"$DROVER_URL/v1/jobs?limit=1" | grep -c \'"data"\'';
    const ran = await journey.drover('run', '--may-submit', '--', 'sh', '-c', script);
    expect(ran).toMatchObject({ code: 0, stdout: '1\n' });
  });
});

test('a renewed certificate is shown without a restart, and the agent stays', async () => {
  writeCertificate('second');
  const port = new URL(journey.url).port;
  const args = ['s_client', '-connect', `127.0.0.1:${port}`, '-CAfile', caFile];
  await until('the new one is shown', async () => {
    const { stdout } = await type('openssl', args, { input: 'Q\n' }).ended;
    return stdout.includes('CN = second');
  });
  const ran = await journey.drover('run', '--', 'echo', 'still here');
  expect(ran).toMatchObject({ code: 0, stdout: 'still here\n' });
  expect(journey.log()).toContain('certificates were renewed');
  expect(readFileSync(path.join(journey.dir, 'connection.json'), 'utf8')).toContain(caFile);
});

test('without TLS beyond loopback it must be allowed, and then everybody is told', async () => {
  const open = await startJourney({
    args: ['--host', '0.0.0.0', '--no-agent'],
    env: { DROVER_SERVER_INSECURE: 'true' },
  });
  try {
    const words = 'HTTP on 0.0.0.0 has no TLS: tokens cross the network readable';
    expect(open.up.stdout()).toContain(`INSECURE      ${words}`);
    // Warnings of the log reach the terminal a moment later.
    await until('the terminal is told', async () => open.up.stderr().includes(words));
    expect((await open.drover('workers')).stderr).toContain('this cluster is insecure');
    const ready = await open.api('GET /readyz');
    expect(ready.body['data']['warnings']).toEqual([words]);
    expect(ready.headers.get('x-drover-insecure')).toBe('true');
  } finally {
    await open.close();
  }
});
