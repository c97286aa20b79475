/** Pools of ssh hosts for tests: three real sshds, a stand-in for the agent, and steps. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { silentLog as log } from '../../src/lib/log.ts';
import { systemRandom as random } from '../../src/lib/random.ts';
import { sshPool, type SshPool } from '../../src/model/sshSettings.ts';
import type { LaunchBatch, Listing, Machine, Provider } from '../../src/providers/contract.ts';
import { createSshProvider } from '../../src/providers/ssh/provider.ts';
import { killPid, processesOf } from './processes.ts';
import { startSshServers, type SshHost, type SshServers } from './sshServers.ts';
import { PATIENCE_MS, until as wait } from './wait.ts';

/** Each look costs a process here and some there. */
export const until: typeof wait = (what, look) => wait(what, look, PATIENCE_MS, 150);

/** Stands in for the agent: says who it is, ends when it is asked to. */
export const AGENT = `env | grep ^DROVER_ | sort >"$DROVER_AGENT_DATA_DIR/env"
trap 'echo "told to end"; exit 0' TERM
echo "agent $DROVER_AGENT_NAME is up"
[ ! -e "$HOME/broken" ] || { echo "error: no such library libstdc++.so.6" >&2; exit 127; }
while :; do sleep 0.2; done`;

export interface SshPools {
  servers: SshServers;
  hosts: SshHost[];
  settings(hosts: SshHost[], more?: object): SshPool;
  provider(pool: string, given: SshPool, more?: object): Provider;
  close(): Promise<void>;
}

export async function startSshPools(): Promise<SshPools> {
  const servers = startSshServers();
  const hosts = await Promise.all(['one', 'two', 'three'].map((name) => servers.host(name)));
  const open: Provider[] = [];
  return {
    servers,
    hosts,
    settings: (given, more) =>
      sshPool.parse({
        hosts: given.map(({ name, port }) => ({ host: '127.0.0.1', name, port })),
        ...{ user: servers.user, keyFile: servers.keyFile },
        knownHostsFile: servers.knownHostsFile,
        ...{ agentCommand: AGENT, retryMaxMs: 1000, freeBytes: 1, restarts: 2 },
        ...more,
      }),
    provider(pool, settings, more) {
      const options = { pool, settings, clusterId: 'c1', agentVersion: '2', remembered: [] };
      const made = createSshProvider({ ...options, clock: systemClock, random, log, ...more });
      open.push(made);
      return made;
    },
    async close() {
      await Promise.all(open.map((provider) => provider.close()));
      for (const { pid } of processesOf([servers.folder])) killPid(pid, 'SIGKILL');
      await servers.close();
    },
  };
}

export function batch(label: string, more: Partial<LaunchBatch> = {}): LaunchBatch {
  const agent = { url: 'http://127.0.0.1:1/', authorities: '', selfDestructAfterMs: 3_600_000 };
  return {
    ...{ id: label, intents: [{ label, joinToken: `secret-of-${label}` }], resources: null },
    ...{ workers: 1, timeLimitMs: 0, noticeMs: 0, runAs: null, name: 'p', avoid: [], target: 1 },
    agent,
    ...more,
  };
}

export async function machines(from: Provider): Promise<Machine[]> {
  const listing = await from.list();
  if (listing.kind === 'unknown') throw new Error(`unknown: ${listing.reason}`);
  return listing.machines;
}

export const notice = (listing: Listing): string =>
  listing.kind === 'known' ? (listing.notice ?? '') : listing.reason;
export const folder = (host: SshHost, pool: string): string =>
  path.join(host.home, '.drover/c1', pool, host.name);
export const pidOf = (host: SshHost, pool: string): number =>
  Number(readFileSync(path.join(folder(host, pool), 'agent.pid'), 'utf8').split(' ')[0]);
export const running = async (from: Provider): Promise<Record<string, string>> =>
  Object.fromEntries(
    (await machines(from)).map(({ label, handle, phase }) => [label, `${handle} ${phase}`]),
  );

/** Asks as the core does: until the list no longer shows it. */
export async function destroyed(from: Provider, label: string, handle: string): Promise<void> {
  expect(await from.destroy({ machines: [{ label, handle }], target: 0 })).toEqual({
    kind: 'asked',
  });
  await until(`${label} is gone`, async () =>
    (await machines(from)).every((machine) => machine.label !== label),
  );
}
