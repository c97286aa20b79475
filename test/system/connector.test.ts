/** Agents that reach nobody but a connector: they join, work and are looked into by way of it. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { stringify } from 'yaml';
import type { PoolView } from '../../src/protocol/pools.ts';
import { connectExec, execUrl } from '../../src/protocol/tunnel/execClient.ts';
import { createConnector, type TestConnector } from '../support/connectors.ts';
import { gate, shell } from '../support/jobs.ts';
import { DROVER, startProcess, type TestProcess } from '../support/processes.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { until } from '../support/wait.ts';
import { finish } from './tunnelWorld.ts';

/** Nobody listens there: whoever takes it for a gateway's address gets nowhere. */
const NOWHERE = 'http://127.0.0.1:9';

let folder: string;
let server: TestServer;
let connector: TestConnector;
let token: string;

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'drover-connected-'));
  const config = path.join(folder, 'drover.yaml');
  const slurm = { site: 'hpc' };
  const pools = { hpc: { max: 1, pollMs: 300, slurm } };
  const sites = { hpc: { connector: true, commandFolder: folder } };
  writeFileSync(config, stringify({ fleet: { sites, pools } }));
  server = await startServer({
    env: { DROVER_CONFIG: config, DROVER_SERVER_PUBLIC_URL: NOWHERE },
  });
  connector = await createConnector('hpc', () => ({ DROVER_JOIN_TOKEN: token, HOME: folder }));
});
afterAll(async () => {
  try {
    await server?.close();
  } finally {
    await connector?.process().stop();
    rmSync(folder, { recursive: true, force: true });
  }
});

async function listError(): Promise<string> {
  const headers = { authorization: `Bearer ${server.token}` };
  const response = await fetch(`${server.url}/v1/pools`, { headers });
  const { data } = (await response.json()) as { data: PoolView[] };
  return data.find(({ name }) => name === 'hpc')?.listError ?? '';
}

function attempt(args: string[], env: Record<string, string> = {}): TestProcess {
  const words = [DROVER, 'connector', '--listen', '127.0.0.1:0', ...args];
  return startProcess(words, { cwd: folder, env: { HOME: folder, ...env } });
}

async function said(process: TestProcess): Promise<string> {
  const { code } = await process.ended;
  return `${code} ${process.output()}`;
}

test('what is given wrong is said, and nothing stays behind', async () => {
  const home = ['--site', 'hpc', '--join', server.url];
  // Of the pool `default`, which is at no site.
  const elsewhere = { DROVER_JOIN_TOKEN: server.joinToken };
  const [denied, none, place] = await Promise.all([
    said(attempt(home, elsewhere)),
    said(attempt(home)),
    said(attempt([...home, '--listen', 'here'], elsewhere)),
  ]);
  expect(denied).toMatch(/^1 [^]*pool default, which is at no site, not for site hpc/);
  expect(none).toMatch(/^2 [^]*DROVER_JOIN_TOKEN/);
  expect(place).toMatch(/^2 [^]*"here" is no place to listen/);
});

test('without it the pool says what to start; with it, the site answers', async () => {
  await until('the pool asks for one', async () => /drover connector/.test(await listError()));
  const made = await server.client.createToken({ kind: 'join', pool: 'hpc' });
  token = made.secret ?? '';
  await connector.start(server);
  await until('the site was asked', async () => /is not there/.test(await listError()));
  expect(connector.process().output()).not.toContain(token);
});

test('an agent joins through it: output, files and exec pass', async () => {
  const env = { DROVER_AGENT_DIAL_HOME: 'true' };
  server.agent('behind', { url: connector.url, env });
  await server.online(1);
  const go = gate(server, 'exec');
  const job = await server.submit(
    shell(`echo hello; head -c 5000000 /dev/zero >"$DROVER_RESULT_DIR/big"; ${go.wait}; echo bye`),
  );
  await until('it runs', async () => (await server.stdoutSoFar(job)).includes('hello'));
  const url = execUrl(server.url, job);
  const command = ['sh', '-c', 'head -c 2000000 /dev/zero | wc -c; echo from inside >&2; exit 7'];
  const start = { command, tty: false };
  const session = await connectExec({ url, token: server.token, start });
  expect(await finish(session)).toMatchObject({
    ...{ stdout: '2000000\n', stderr: 'from inside\n', code: 7 },
  });
  go.open();
  expect(await server.ended(job)).toMatchObject({ state: 'SUCCEEDED' });
  expect(await server.stdout(job)).toBe('hello\nbye\n');
  const { files } = await server.client.getResult(job);
  expect(files.map(({ path: name, size }) => [name, size])).toEqual([['big', 5_000_000]]);
  const closed = await fetch(`${connector.url}/v1/jobs`, {
    headers: { authorization: `Bearer ${server.token}` },
  });
  expect(closed.status).toBe(404);
});

test('its own end and the controller’s cost no work', async () => {
  const go = gate(server, 'restarts');
  const job = await server.submit(shell(`echo begun; ${go.wait}; echo done`));
  await until('it runs', async () => (await server.stdoutSoFar(job)).includes('begun'));
  await connector.process().stop('SIGKILL');
  await connector.start(server);
  await server.kill();
  await server.start();
  await until('the agent is back', async () => {
    const { items } = await server.client.listWorkers({});
    return items.some(({ state }) => state === 'ONLINE');
  });
  go.open();
  expect(await server.ended(job)).toMatchObject({ state: 'SUCCEEDED' });
  expect(await server.stdout(job)).toBe('begun\ndone\n');
  expect(await server.attempts(job)).toHaveLength(1);
  // The same connector serves the new controller.
  await until('the site is asked again', async () => /is not there/.test(await listError()));
  expect(connector.process().end()).toBeUndefined();
});
