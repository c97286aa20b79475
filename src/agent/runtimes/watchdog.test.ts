/** Attempts do not outlive their lease, whatever happened to the agent. */
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { sleep, systemClock } from '../../lib/clock.ts';
import { bootId } from '../devices/machine.ts';
import { openDataFolder } from './folder.ts';
import { signalGroup } from './processes.ts';
import { Bench, ended, eventually, kill, marked, observe, shell, spawnAgent } from './testing.ts';
import { isWatchdogAlive } from './watchdog.ts';

describe.concurrent('the watchdog', { timeout: 20_000 }, () => {
  const lease = { attemptLeaseMs: 1000 };
  const stubborn = `trap '' TERM; setsid sleep 100 & echo ready; while :; do sleep 0.05; done`;

  test.each(['auto', 'off'] as const)(
    'kills what outlived its lease when the agent is dead (cgroups %s)',
    async (cgroups) => {
      await using bench = new Bench();
      const task = shell(stubborn, lease);
      const healthy = shell('sleep 100');
      const options = { killMarginMs: 0, cgroups };
      const agent = await spawnAgent(bench.dataDir, [task, healthy], options);
      await eventually(() => bench.read(task.uid, 'stdout') === 'ready\n', 'the task');
      await kill(agent);
      expect(marked(task.uid).length).toBeGreaterThan(1);
      await eventually(() => marked(task.uid).length === 0, 'the watchdog');
      const runtime = bench.open({ cgroups });
      expect(await ended(runtime, task.uid)).toMatchObject({
        cause: 'lost',
        message: 'killed: no contact before its lease ran out',
      });
      expect(observe(runtime, healthy.uid)).toMatchObject({ state: 'RUNNING' });
    },
  );

  test('kills it when the agent is stopped, and the agent says so when it wakes', async () => {
    await using bench = new Bench();
    const task = shell(stubborn, lease);
    const agent = await spawnAgent(bench.dataDir, [task], { killMarginMs: 0 });
    agent.kill('SIGSTOP');
    await eventually(() => marked(task.uid).length === 0, 'the watchdog');
    agent.kill('SIGCONT');
    const path = join(bench.directory(task.uid), 'ended.json');
    await eventually(() => existsSync(path), 'the agent to notice');
    expect(JSON.parse(readFileSync(path, 'utf8'))).toMatchObject({
      observation: { cause: 'lost' },
    });
    await kill(agent);
  });

  test('leaves alone what is renewed, and kills when renewal ends', async () => {
    await using bench = new Bench();
    const runtime = bench.open({ killMarginMs: 0 });
    const task = shell('sleep 100', lease);
    runtime.start(task);
    for (let i = 0; i < 9; i++) {
      runtime.renewLease([{ uid: task.uid, killAtBootMs: systemClock.bootMs() + 1200 }]);
      await sleep(systemClock, 200);
    }
    expect(observe(runtime, task.uid)).toMatchObject({ state: 'RUNNING' });
    expect(await ended(runtime, task.uid)).toMatchObject({ cause: 'lost', signal: 'SIGKILL' });
  });

  test('holds an attempt to the deadline it was started with', async () => {
    await using bench = new Bench();
    const runtime = bench.open();
    const task = shell('sleep 100');
    runtime.start(task, systemClock.bootMs() + 1000);
    expect(await ended(runtime, task.uid)).toMatchObject({ cause: 'lost', signal: 'SIGKILL' });
  });

  test('never kills a stranger under a reused pid', async () => {
    await using bench = new Bench();
    const runtime = bench.open({ killMarginMs: 0 });
    const task = shell('sleep 100', lease);
    runtime.start(task);
    const processes = await bench.processes(task.uid);
    await runtime.close();
    process.kill(processes.shim, 'SIGKILL');
    signalGroup(processes, 'SIGKILL');
    await using other = new Bench();
    const stranger = await spawnAgent(other.dataDir, [shell('true')]);
    const words = `${stranger.pid} 1 ${stranger.pid} 1 ${bootId()} ${task.uid}\n`;
    writeFileSync(join(bench.directory(task.uid), 'pid'), words);
    const leases = join(bench.dataDir, 'leases');
    await eventually(() => readdirSync(leases).length === 0, 'the watchdog to be done');
    expect(stranger.exitCode ?? stranger.signalCode).toBeNull();
    await kill(stranger);
  });

  test('is one per folder, comes back when killed, ends when nothing is to guard', async () => {
    await using bench = new Bench();
    const folder = openDataFolder(bench.dataDir);
    const runtime = bench.open();
    const alive = (): boolean => isWatchdogAlive(folder, bootId());
    await eventually(alive, 'the watchdog');
    const pid = (): number => Number(readFileSync(folder.watchdogPid, 'utf8').split(' ')[0]);
    const first = pid();
    const task = shell('sleep 100');
    runtime.start(task);
    await runtime.close();
    const second = bench.open();
    expect(pid()).toBe(first);
    process.kill(first, 'SIGKILL');
    await eventually(() => existsSync(folder.watchdogPid) && alive() && pid() !== first, 'another');
    second.stop({ uid: task.uid, cause: 'cancelled', graceMs: 0 });
    await ended(second, task.uid);
    await second.close();
    await eventually(() => !existsSync(folder.watchdogPid), 'the watchdog to end');
  });
});
