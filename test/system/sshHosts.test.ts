/** The ssh provider against real sshds: three hosts, every way they can fail. */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { LAUNCH_TRIES } from '../../src/providers/ssh/provider.ts';
import { isAlive, killPid } from '../support/processes.ts';
import { AGENT, batch, destroyed, folder, machines, notice } from '../support/sshPools.ts';
import { pidOf, running, startSshPools, until, type SshPools } from '../support/sshPools.ts';
import { sshdIsHere, type SshHost, type SshServers } from '../support/sshServers.ts';

const here = sshdIsHere();
let pools: SshPools;
let servers: SshServers;
let [one, two, three]: SshHost[] = [];
beforeAll(async () => {
  if (!here) return;
  pools = await startSshPools();
  servers = pools.servers;
  [one, two, three] = pools.hosts;
});
afterAll(() => pools?.close());

const settings: SshPools['settings'] = (hosts, more) => pools.settings(hosts, more);
const provider: SshPools['provider'] = (...words) => pools.provider(...words);

describe.runIf(here)('ssh hosts', () => {
  test('one instance each, found again by a new controller, gone without a trace', async () => {
    const first = provider('p', settings([one!, two!]));
    expect(await machines(first)).toEqual([]);
    const launched = await first.launch(batch('i1'));
    expect(launched).toMatchObject({ kind: 'launched', handles: ['one'] });
    expect(JSON.stringify(launched)).not.toContain('secret');
    expect(await first.launch(batch('i1'))).toMatchObject({ handles: ['one'] });
    expect(await first.launch(batch('i2'))).toMatchObject({ handles: ['two'] });
    expect(await first.launch(batch('i3'))).toEqual({
      kind: 'refused',
      refusal: 'capacity',
      reason: 'no host is free: 2 in use',
      retryAfterMs: expect.any(Number),
    });
    const home = folder(one!, 'p');
    const env = await until('it is up', () => readFileSync(path.join(home, 'data/env'), 'utf8'));
    expect(env).toContain('DROVER_AGENT_INSTANCE=i1\nDROVER_AGENT_MACHINE=ssh:p:one\n');
    expect(env).toContain('DROVER_AGENT_SELF_DESTRUCT_AFTER_MS=3600000\n');
    expect(env).toContain('DROVER_JOIN_TOKEN=secret-of-i1\nDROVER_URL=http://127.0.0.1:1/\n');
    expect(statSync(path.join(home, 'token')).mode & 0o777).toBe(0o600);
    expect(spawnSync('ps', ['-ef']).stdout.toString()).not.toContain('secret-of');

    await first.close();
    const second = provider('p', settings([one!, two!]));
    expect(await running(second)).toEqual({ i1: 'one running', i2: 'two running' });
    expect(await second.probe?.({ label: 'i1', handle: 'one' })).toMatchObject({ kind: 'ready' });
    expect(await second.logs?.({ label: 'i1', handle: 'one' })).toBe(
      'drover: start 1 under i1\nagent one is up\n',
    );
    const pid = pidOf(one!, 'p');
    await destroyed(second, 'i1', 'one');
    expect(isAlive(pid)).toBe(false);
    // Its handle may never have been told; a second time changes nothing; others stay.
    await destroyed(second, 'i2', '');
    await destroyed(second, 'i2', 'two');
    expect([one, two].map((host) => readdirSync(host!.home))).toEqual([[], []]);
  });

  test('an agent that dies is started again, until it is hopeless', async () => {
    const pool = provider('restart', settings([one!], { restarts: 1 }));
    await machines(pool);
    await pool.launch(batch('i1'));
    const pid = pidOf(one!, 'restart');
    killPid(-pid, 'SIGKILL');
    const [told] = await machines(pool);
    expect(told).toMatchObject({
      phase: 'running',
      reason: /the agent was killed.*again \(1 of 1/,
    });
    const [again] = await until('it is up again', async () =>
      (await machines(pool)).some(({ reason }) => reason === '') ? machines(pool) : undefined,
    );
    // Not a new machine: what runs there outlives its agent.
    expect(again).toMatchObject({ label: 'i1', phase: 'running', restarts: 0 });
    expect(pidOf(one!, 'restart')).not.toBe(pid);
    // As after a reboot: the pid is of another boot, and whoever has it now is none of ours.
    const [before, file] = [
      pidOf(one!, 'restart'),
      path.join(folder(one!, 'restart'), 'agent.pid'),
    ];
    killPid(-before, 'SIGKILL');
    writeFileSync(file, `${process.pid} 1 another-boot\n`);
    expect((await machines(pool))[0]?.reason).toMatch(/^the machine was started anew/);
    await until('it is up after the reboot', () => pidOf(one!, 'restart') !== process.pid);
    writeFileSync(path.join(one!.home, 'broken'), '');
    killPid(-pidOf(one!, 'restart'), 'SIGKILL');
    const [over] = await until('it is over', async () => {
      const list = await machines(pool);
      return list[0]?.phase === 'gone' && list;
    });
    expect(over).toMatchObject({ failure: 'INFRA_FATAL', reason: /code 127.*2 times in a row/ });
    // A new one takes the place of what is over, and says why it does not run.
    expect(await pool.launch(batch('i2'))).toMatchObject({ kind: 'refused' });
    await until('the host is free', async () => (await machines(pool)).length === 0);
    expect(await pool.launch(batch('i2'))).toMatchObject({ kind: 'launched' });
    const [failed] = await until('it failed', async () => {
      const list = await machines(pool);
      return list[0]?.reason.includes('127') && list;
    });
    expect(failed?.reason).toMatch(/code 127: agent one is up \| error: no such library libstdc/);
    await destroyed(pool, 'i2', 'one');
    spawnSync('rm', [path.join(one!.home, 'broken')]);
  });

  test('a host that cannot be reached hides nothing, and others go on', async () => {
    const pool = settings([one!, two!], { connectMs: 3000 });
    const first = provider('away', pool);
    await machines(first);
    await first.launch(batch('i1'));
    await one!.stop();
    await until('it is noticed', async () => {
      const [machine] = await machines(first);
      return machine?.reason.startsWith('cannot be reached: ');
    });
    expect(await running(first)).toEqual({ i1: 'one running' });
    expect(notice(await first.list())).toMatch(/^one: cannot be reached: .*nothing listens there/);
    expect(await first.launch(batch('i2'))).toMatchObject({ handles: ['two'] });
    const ask = { machines: [{ label: 'i1', handle: 'one' }], target: 0 };
    expect(await first.destroy(ask)).toMatchObject({ kind: 'unknown' });
    expect(await first.probe?.({ label: 'i1', handle: 'one' })).toMatchObject({ kind: 'unknown' });
    // A controller that starts just now knows of i1 from its store alone.
    const remembered = [{ label: 'i1', handle: 'one' }];
    const second = provider('away', pool, { remembered });
    expect(await running(second)).toEqual({ i1: 'one running', i2: 'two running' });
    await two!.stop();
    await until('nobody answers', async () => (await first.list()).kind === 'unknown');
    await Promise.all([one!.start(), two!.start()]);
    await until('they are back', async () =>
      (await machines(second)).every(({ reason }) => reason === ''),
    );
    expect(await running(second)).toEqual({ i1: 'one running', i2: 'two running' });
    await destroyed(second, 'i1', 'one');
    expect(await running(second)).toEqual({ i2: 'two running' });
    await destroyed(second, 'i2', 'two');
  });

  test('what is wrong with a host is named, and the next one is taken', async () => {
    const named = async (more: object, tells: RegExp): Promise<void> => {
      const pool = provider('wrong', settings([one!, two!], more));
      const listing = await pool.list();
      expect(await pool.launch(batch('i1'))).toMatchObject({ kind: 'launched', handles: ['two'] });
      expect(notice(listing) + notice(await pool.list())).toMatch(tells);
      await destroyed(pool, 'i1', 'two');
      await pool.close();
    };
    // Its folder cannot be made: a file is in its place, as on a read-only or full disk.
    writeFileSync(path.join(one!.home, 'file'), '');
    const hosts = (first: object): object => ({
      hosts: [
        { host: '127.0.0.1', name: 'one', port: one!.port, ...first },
        { host: '127.0.0.1', name: 'two', port: two!.port },
      ],
    });
    await named(hosts({ folder: 'file/below' }), /one: .*cannot make the folder .*file\/below/);
    await named(hosts({ keyFile: '/no/such/key' }), /one: cannot be reached: .*no\/such\/key/);
    // A PATH without setsid, as on a host without util-linux.
    const bin = path.join(servers.folder, 'bin');
    mkdirSync(bin, { recursive: true });
    spawnSync('busybox', ['--install', '-s', bin]);
    spawnSync('rm', [path.join(bin, 'setsid')]);
    one!.setLogin(`export PATH='${bin}'`);
    await named({}, /one: could not be launched on: there is no setsid: install util-linux/);
    one!.setLogin('');
    // So many are tried at once; then they rest, and the next launch comes to the one that works.
    const bad = Array.from({ length: LAUNCH_TRIES }, (_, n) => ({
      ...{ host: '127.0.0.1', name: `bad${n}`, port: one!.port, folder: 'file/below' },
    }));
    const good = { host: '127.0.0.1', name: 'good', port: two!.port };
    const many = provider('many', settings([], { hosts: [...bad, good], retryMaxMs: 600_000 }));
    expect(await many.launch(batch('i1'))).toMatchObject({ kind: 'refused' });
    expect(await many.launch(batch('i2'))).toMatchObject({ handles: ['good'] });
    await destroyed(many, 'i2', 'good');
    const full = provider('wrong', settings([one!], { freeBytes: 2 ** 50 }));
    expect(notice(await full.list())).toMatch(/one: only \d+ MiB are free/);
    expect(await full.launch(batch('i1'))).toMatchObject({
      refusal: 'unreachable',
      reason: expect.stringMatching(/no host is free: one: has only \d+ MiB free/),
    });
    await one!.changeKey();
    const changed = provider('wrong', settings([one!]));
    await until('it is noticed', async () => /host key/.test(notice(await changed.list())));
    expect(await changed.launch(batch('i1'))).toMatchObject({ refusal: 'configuration' });
    servers.trust();
    await until('it is trusted again', async () => (await changed.list()).kind === 'known');
  });

  test('two launches at once, by two controllers: one host each, never both', async () => {
    const [left, right] = [1, 2].map(() => provider('race', settings([one!, three!])));
    await Promise.all([machines(left!), machines(right!)]);
    const results = await Promise.all([left!.launch(batch('i1')), right!.launch(batch('i2'))]);
    expect(results.map(({ kind }) => kind)).toEqual(['launched', 'launched']);
    expect(Object.values(await running(left!)).toSorted()).toEqual([
      'one running',
      'three running',
    ]);
    // Another cluster's host is taken too, and its instance is nobody's business.
    const stranger = provider('race', settings([one!]), { clusterId: 'c2' });
    expect(await machines(stranger)).toEqual([]);
    expect(await stranger.launch(batch('i3'))).toMatchObject({
      refusal: 'capacity',
      reason: 'no host is free: 1 in use',
    });
    const avoided = provider('other', settings([two!]));
    expect(await avoided.launch(batch('i4', { avoid: ['two'] }))).toMatchObject({
      kind: 'refused',
      reason: 'no host is free: two: is to be avoided',
    });
    for (const [label, at] of Object.entries(await running(left!))) {
      await destroyed(left!, label, at.split(' ')[0] ?? '');
    }
  });

  test('drift is told: version, resources, clock, and what a host lacks', async () => {
    const before = provider('drift', settings([three!], { resources: 'cpus=1' }));
    await machines(before);
    await before.launch(batch('i1'));
    await before.close();
    const off = { ...systemClock, now: () => systemClock.now() + 60_000 };
    const resources = 'cpus=4096,mem=99Ti';
    const after = provider('drift', settings([three!], { resources }), {
      ...{ agentVersion: '3', clock: off },
    });
    const told = notice(await after.list());
    expect(told).toContain('its agent is 2, ours is 3');
    expect(told).toContain(`to offer cpus=1, the settings say ${resources}`);
    expect(told).toMatch(/its clock is (58|59|60) s behind/);
    expect(told).toMatch(/it has \d+ cores, the settings say 4096/);
    expect(told).toMatch(/it has \d+ MiB of memory, the settings say mem=99Ti/);
    expect((await machines(after))[0]).toMatchObject({ phase: 'running', reason: /ours is 3/ });
    await destroyed(after, 'i1', 'three');
  });

  test('the agent comes from the gateway, or by ssh where it cannot be fetched', async () => {
    const agent = `#!/bin/sh\ncase $1 in --version) echo 2 ;; *) ${AGENT} ;; esac\n`;
    const sum = createHash('sha256').update(agent).digest('hex');
    const asked: string[] = [];
    const gateway = createServer((request, response) => {
      asked.push(`${request.headers['user-agent']?.split('/')[0]} ${request.url}`);
      const { pathname } = new URL(request.url ?? '', 'http://x');
      if (pathname === '/install/join.sh') response.end(`set -- agent; ${AGENT}`);
      else if (pathname === '/install/agent.sha256') response.end(`${sum}  agent\n`);
      else if (pathname === '/install/agent') response.end(agent);
      else response.writeHead(404).end();
    }).listen(0, '127.0.0.1');
    await once(gateway, 'listening');
    const url = `http://127.0.0.1:${(gateway.address() as AddressInfo).port}`;
    const home = { agent: { url, authorities: '', selfDestructAfterMs: 60_000 } };
    // Two has neither curl nor wget.
    two!.setLogin(`export PATH='${path.join(servers.folder, 'bin')}'`);
    const bin = path.join(servers.folder, 'bin');
    mkdirSync(bin, { recursive: true });
    spawnSync('busybox', ['--install', '-s', bin]);
    spawnSync('rm', [path.join(bin, 'wget')]);
    const pool = provider('fetch', settings([one!, two!], { agentCommand: '' }));
    await machines(pool);
    await pool.launch(batch('i1', home));
    await pool.launch(batch('i2', home));
    const log = (host: SshHost): string =>
      readFileSync(path.join(folder(host, 'fetch'), 'log'), 'utf8');
    await until('both are up', async () => {
      await pool.list();
      return log(one!).includes('agent one is up') && log(two!).includes('agent two is up');
    });
    expect(asked.filter((line) => line.startsWith('curl'))).toEqual(['curl /install/join.sh']);
    expect(log(two!)).toMatch(/start 1 .*\n.*neither curl nor wget\n.*start 2 .*\nagent two is up/);
    expect(readdirSync(path.join(two!.home, '.drover/agents'))).toEqual([`agent-${sum}`]);
    await destroyed(pool, 'i1', 'one');
    await destroyed(pool, 'i2', 'two');
    two!.setLogin('');
    gateway.close();
  });
});
