/** A pool of ssh hosts, as a person sees it: real sshds, the real server, agents from source. */
import { existsSync, mkdtempSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { InstanceView, PoolView } from '../../src/protocol/pools.ts';
import { DROVER, startJourney, until, type Journey } from '../support/journey.ts';
import { freePort } from '../support/postgres.ts';
import { isAlive, killPid, processesOf } from '../support/processes.ts';
import {
  sshdIsHere,
  startSshServers,
  type SshHost,
  type SshServers,
} from '../support/sshServers.ts';

const here = sshdIsHere();
const home = mkdtempSync(path.join(tmpdir(), 'drover-journey-'));
let servers: SshServers;
let hosts: SshHost[];
let journey: Journey;
let port: number;

beforeAll(async () => {
  if (!here) return;
  servers = startSshServers();
  hosts = await Promise.all(['red', 'blue'].map((name) => servers.host(name)));
  writeFileSync(path.join(home, 'config.yaml'), config());
  port = await freePort();
  journey = await start();
});
afterAll(async () => {
  await journey?.close();
  for (const { pid } of servers ? processesOf([servers.folder]) : []) killPid(pid, 'SIGKILL');
  await servers?.close();
});

const start = (): Promise<Journey> =>
  startJourney({
    // The same after a restart: agents know it.
    args: ['--no-agent', '--port', String(port)],
    home,
    env: { DROVER_CONFIG: path.join(home, 'config.yaml') },
  });

function config(): string {
  const pool = {
    ...{ max: 2, pollMs: 300, cooldownMs: 100, idleTimeoutMs: 2000 },
    largestWorker: { cpus: 2, memoryBytes: 2 ** 30 },
    ssh: {
      hosts: hosts.map(({ name, port }) => ({ host: '127.0.0.1', name, port })),
      ...{ user: servers.user, keyFile: servers.keyFile },
      knownHostsFile: servers.knownHostsFile,
      ...{ resources: 'cpus=2,mem=1Gi', freeBytes: 1, retryMaxMs: 2000 },
      agentCommand: `exec ${DROVER} agent --join "$DROVER_URL"`,
    },
  };
  return JSON.stringify({ fleet: { pools: { desks: pool } } });
}

const instances = async (): Promise<InstanceView[]> =>
  (await journey.api('GET /v1/instances')).body['data'] as InstanceView[];
const pool = async (): Promise<PoolView | undefined> =>
  ((await journey.api('GET /v1/pools')).body['data'] as PoolView[]).find(
    ({ name }) => name === 'desks',
  );
const folders = (): string[] => hosts.map((host) => path.join(host.home, '.drover'));
async function allGone(): Promise<void> {
  await until('nothing is left on the hosts', async () => {
    const left = processesOf(folders()).map(({ pid, command }) => `${pid} ${command}`);
    left.push(...folders().filter((one) => existsSync(one)));
    if (left.length === 0) return true;
    const listed = (await instances()).map(({ handle, state, reason }) => [handle, state, reason]);
    throw new Error(`${JSON.stringify(listed)}\n${left.join('\n')}`);
  });
  await until('no instance is left', async () => (await instances()).length === 0);
}

describe.runIf(here)('a pool of ssh hosts', () => {
  test('a job brings a host; its agent dies, the server restarts, the work goes on', async () => {
    const spec = { command: ['sh', '-c', 'while [ ! -e done ]; do sleep 0.1; done; hostname'] };
    const id = await journey.submit({ ...spec, pool: 'desks', name: 'long' });
    const attempt = await journey.running(id);
    const [instance] = await instances();
    expect(instance).toMatchObject({ state: 'JOINED', handle: 'red', host: 'red', size: 1 });
    const place = path.join(hosts[0]!.home, '.drover', readdirSync(folders()[0]!)[0]!, 'desks/red');
    const pid = (): number =>
      Number(readFileSync(path.join(place, 'agent.pid'), 'utf8').split(' ')[0]);
    const first = pid();
    killPid(-first, 'SIGKILL');
    await until('its agent is started again', () => pid() !== first);
    await journey.interrupt();
    journey = await start();
    await until('its worker is back', async () => {
      const { items } = await journey.client.listWorkers({});
      return items.some(({ name, state }) => name === 'red' && state === 'ONLINE');
    });
    expect((await journey.running(id)).uid).toBe(attempt.uid);
    const work = path.join(place, 'data/attempts', attempt.uid, 'work');
    expect(existsSync(work)).toBe(true);
    writeFileSync(path.join(work, 'done'), '');
    expect(await journey.ended(id)).toMatchObject({ state: 'SUCCEEDED' });
    expect(await journey.attempts(id)).toHaveLength(1);
    await allGone();
  });

  test('two hosts for what needs two; one is ended with what runs on it', async () => {
    const spec = { command: ['sleep', '600'], resources: { cpuMillis: 2000 }, pool: 'desks' };
    const ids = [await journey.submit(spec), await journey.submit(spec)];
    const attempts = await Promise.all(ids.map((id) => journey.running(id)));
    expect(new Set(attempts.map(({ worker }) => worker)).size).toBe(2);
    const third = await journey.submit(spec);
    await until('it says why it waits', async () => {
      const { stdout } = await journey.drover('why', third);
      return stdout.includes('desks');
    });
    await journey.client.cancelJob(third);
    const view = await until('both have joined', async () => {
      const found = await pool();
      return found?.joined === 2 && found;
    });
    expect(view).toMatchObject({ provider: 'ssh', error: '', listError: '' });
    const victim = (await instances()).find(({ handle }) => handle === 'blue')!;
    const sleeping = processesOf([path.join(hosts[1]!.home, '.drover')]).find(({ command }) =>
      command.startsWith('sleep 600'),
    )!;
    const ended = await journey.api(`DELETE /v1/instances/${victim.id}`);
    expect([ended.status, ended.body['data'].state]).toEqual([200, 'DESTROYING']);
    await until('what ran there has ended', () => !isAlive(sleeping.pid));
    for (const id of ids) await journey.client.cancelJob(id);
    await allGone();
  });
});
