/** What keeps `drover up` from starting: a port, a folder, a file, a setting. */
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { DROVER, ROOT, startJourney, type, until, type Ended } from '../support/journey.ts';
import { sweep } from '../support/leftovers.ts';

let home: string;
beforeAll(() => {
  home = mkdtempSync(path.join(tmpdir(), 'drover-start-'));
  chmodSync(home, 0o755);
});
afterAll(() => {
  sweep(home);
  rmSync(home, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
});

const SETTINGS = { DROVER_GRPC_PORT: '0' };

function up(args: string[], env: Record<string, string> = {}): Promise<Ended> {
  const all = { HOME: home, ...SETTINGS, ...env };
  return type(DROVER, ['up', '--port', '0', ...args], { env: all }).ended;
}

function expectRefusal(ended: Ended, code: number, words: RegExp): void {
  expect(ended.stderr).toMatch(words);
  expect(ended.stderr).toMatch(/^error [A-Z_]+: /m);
  expect(ended.stderr).toMatch(/^try: /m);
  expect(ended.stderr).not.toMatch(/\n {4}at |node:internal|"level"|\ufffd/);
  expect([ended.code, ended.stdout]).toEqual([code, '']);
}

async function taken(): Promise<{ server: Server; port: number }> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return { server, port: typeof address === 'object' && address ? address.port : 0 };
}

test('a port in use, of either listener', async () => {
  const { server, port } = await taken();
  const [http, grpc] = await Promise.all([
    up(['--data', path.join(home, 'a'), '--port', String(port)]),
    up(['--data', path.join(home, 'b')], { DROVER_GRPC_PORT: String(port) }),
  ]);
  server.close();
  expectRefusal(http, 1, new RegExp(`error CONFLICT: Another process listens on port ${port}`));
  expectRefusal(grpc, 1, new RegExp(`error CONFLICT: .*127.0.0.1:${port}: the port is in use`));
});

test('a second one on the same data folder; the first is not disturbed', async () => {
  const journey = await startJourney();
  try {
    const second = await type(DROVER, ['up', '--port', '0'], { env: journey.env }).ended;
    expectRefusal(second, 1, /error CONFLICT: another controller is running on this store/);
    expect(journey.up.stderr()).toBe('');
    expect((await journey.drover('run', '--', 'echo', 'still here')).stdout).toBe('still here\n');
  } finally {
    await journey.close();
  }
});

test('a data folder that may not be written, and one that is a file', async () => {
  const locked = path.join(home, 'locked');
  mkdirSync(locked, { mode: 0o555 });
  const file = path.join(home, 'file');
  writeFileSync(file, '');
  const asNobody = process.getuid?.() === 0 ? ['setpriv', '--reuid=65534', '--clear-groups'] : [];
  const words = [...asNobody, DROVER, 'up', '--port', '0'];
  // Node writes nothing into the checkout either, as another user.
  const env = { HOME: locked, ...SETTINGS, NODE_COMPILE_CACHE: '/nonexistent' };
  const [denied, notFolder] = await Promise.all([
    type(words[0]!, words.slice(1), { env }).ended,
    up(['--data', file]),
  ]);
  expectRefusal(denied, 1, /error UNAVAILABLE: cannot write to the data folder .*locked\/\.drover/);
  expectRefusal(notFolder, 1, /error UNAVAILABLE: cannot write to the data folder .*file/);
  expect(readdirSync(locked)).toEqual([]);
});

test('a database of something else', async () => {
  const garbage = path.join(home, 'garbage');
  mkdirSync(garbage);
  writeFileSync(path.join(garbage, 'drover.db'), 'this is no database, '.repeat(500));
  expectRefusal(await up(['--data', garbage]), 1, /drover\.db/);
});

test.for([
  [
    'an unknown key',
    'server:\n  prot: 1\n',
    /server\.prot .*config.*:2.*did you mean server\.port/,
  ],
  ['an unknown section', 'sever: {}\n', /sever .*did you mean server/],
  ['a wrong type', 'grpc:\n  enabled: perhaps\n', /grpc\.enabled .*perhaps/],
  ['out of range', 'limits:\n  listPage: 70000\n', /limits\.listPage/],
  ['values that do not go together', 'leases:\n  workerMs: 1000\n', /leases\.longPollMs.*below/],
  ['no YAML', 'server: [\n', /config/],
  ['a list', '- a\n', /config/],
  ['a secret', 'grpc:\n  apiSecret: 0123456789abcdef\n', /DROVER_GRPC_API_SECRET/],
] as const)('a config with %s', async ([name, text, words]) => {
  const config = path.join(home, `config-${name.replaceAll(' ', '-')}.yaml`);
  writeFileSync(config, text);
  const data = path.join(home, 'never');
  const ended = await up(['--data', data], { DROVER_CONFIG: config });
  expectRefusal(ended, 2, words);
  expect(readdirSync(home)).not.toContain('never');
});

test('a config that cannot be read; one that is not there is only a warning', async () => {
  const folder = path.join(home, 'a-folder.yaml');
  mkdirSync(folder);
  expectRefusal(await up([], { DROVER_CONFIG: folder }), 2, /config file .* cannot be read/);
  const env = { HOME: home, ...SETTINGS, DROVER_CONFIG: '/nonexistent.yaml' };
  const args = ['up', '--port', '0', '--no-agent', '--data', path.join(home, 'warned')];
  const started = type(DROVER, args, { env });
  await until('it is up', () => started.stdout().includes('Ctrl-C'));
  expect(started.stderr()).toMatch(/^warning: DROVER_CONFIG names \/nonexistent.yaml.*\n$/);
  started.child.kill('SIGTERM');
  expect((await started.ended).code).toBe(0);
});

test.for([
  [['--port', 'many'], 2, /server\.port/],
  [['--prot', '1'], 2, /--prot/],
  [['--host', '0.0.0.0'], 2, /0\.0\.0\.0 can be reached from other machines/],
  [['--host', '203.0.113.7'], 2, /203\.0\.113\.7 can be reached/],
] as [string[], number, RegExp][])('%j', async ([args, code, words]) => {
  expectRefusal(await up(['--data', path.join(home, 'flags'), ...args]), code, words);
});

test('bad variables are told all at once', async () => {
  const env = { DROVER_SERVER_PROT: '1', DROVER_LEASES_ATTEMPT_MS: 'soon' };
  const ended = await up([], env);
  expectRefusal(ended, 2, /DROVER_SERVER_PROT.*did you mean DROVER_SERVER_PORT/);
  expect(ended.stderr).toMatch(/leases\.attemptMs .*DROVER_LEASES_ATTEMPT_MS/);
});

test('bad resources end `up` with the reason, not in a circle of restarts', async () => {
  const ended = await up(['--data', path.join(home, 'res'), '--resources', 'cpus=many']);
  expectRefusal(ended, 2, /cpus/);
});

test('help of every role and command', async () => {
  const names = ['up', 'controller', 'gateway', 'agent', 'run', 'submit', 'jobs', 'exec', 'tokens'];
  for (const name of names) {
    const { code, stdout } = await type(DROVER, [name, '--help'], { cwd: ROOT }).ended;
    expect([name, code, stdout]).toEqual([name, 0, expect.stringContaining(`drover ${name}`)]);
  }
});
