/** Attempts outlive the agent, and do not outlive their lease. */
import { existsSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { sleep, systemClock } from '../../lib/clock.ts';
import { openDataFolder } from './folder.ts';
import { isSameProcess, readProcess } from './processes.ts';
import { isWatchdogAlive } from './watchdog.ts';
import { bootId } from '../devices/machine.ts';
import {
  Bench,
  ended,
  eventually,
  inState,
  kill,
  marked,
  observe,
  shell,
  spawnAgent,
} from './testing.ts';

let bench: Bench;
beforeEach(() => {
  bench = new Bench();
});
afterEach(() => bench.clean());

describe('adoption', () => {
  test('a new runtime finds what runs, and its exit code when it ends', async () => {
    const first = bench.open();
    const task = shell('while [ ! -e go ]; do sleep 0.02; done; exit 6');
    first.start(task);
    await inState(first, task.uid, 'RUNNING');
    await first.close();
    const second = bench.open();
    expect(second.list()).toMatchObject([
      { observation: { uid: task.uid, state: 'RUNNING' }, attemptLeaseMs: 300_000, graceMs: 5000 },
    ]);
    second.start(task);
    writeFileSync(join(bench.directory(task.uid), 'work/go'), '');
    expect(await ended(second, task.uid)).toMatchObject({ cause: 'exited', exitCode: 6 });
  });

  test('after kill -9 of the agent: one still runs, one ended meanwhile, spares are swept', async () => {
    const running = shell('sleep 100');
    const over = shell('echo out; sleep 0.3; exit 9');
    const killed = shell('sleep 0.3; kill -9 $$');
    await kill(await spawnAgent(bench.dataDir, [running, over, killed]));
    await eventually(() => existsSync(join(bench.directory(killed.uid), 'exit')), 'an exit file');
    const runtime = bench.open();
    expect(observe(runtime, running.uid)).toMatchObject({ state: 'RUNNING' });
    expect(await ended(runtime, over.uid)).toMatchObject({
      cause: 'exited',
      exitCode: 9,
      stdoutBytes: 4,
    });
    expect(await ended(runtime, killed.uid)).toMatchObject({ signal: 'SIGKILL' });
    expect(readdirSync(join(bench.dataDir, 'spares'))).toHaveLength(1);
    runtime.stop({ uid: running.uid, cause: 'cancelled', graceMs: 1000 });
    expect(await ended(runtime, running.uid)).toMatchObject({
      cause: 'cancelled',
      signal: 'SIGTERM',
    });
    await runtime.close();
    const again = bench.open();
    expect(observe(again, over.uid)).toMatchObject({ state: 'ENDED', exitCode: 9 });
    expect(observe(again, running.uid)).toMatchObject({ state: 'ENDED', cause: 'cancelled' });
  });

  test('a stop goes on after a restart of the agent', async () => {
    const first = bench.open();
    const task = shell(`trap '' TERM; echo ready; while :; do sleep 0.05; done`);
    first.start(task);
    await eventually(() => bench.read(task.uid, 'stdout') === 'ready\n', 'the trap');
    first.stop({ uid: task.uid, cause: 'preempted', graceMs: 400 });
    await first.close();
    const second = bench.open();
    expect(observe(second, task.uid)).toMatchObject({ state: 'STOPPING' });
    expect(await ended(second, task.uid)).toMatchObject({ cause: 'preempted', signal: 'SIGKILL' });
  });

  test('shim and task killed without a trace: lost', async () => {
    const first = bench.open();
    const task = shell('sleep 100');
    first.start(task);
    const processes = await bench.processes(task.uid);
    await first.close();
    process.kill(processes.shim, 'SIGKILL');
    const second = bench.open();
    expect(observe(second, task.uid)).toMatchObject({ state: 'RUNNING' });
    process.kill(processes.task, 'SIGKILL');
    expect(await ended(second, task.uid)).toMatchObject({ cause: 'lost', exitCode: null });
  });

  test('a pid that now belongs to somebody else is neither adopted nor killed', async () => {
    const first = bench.open();
    const task = shell('sleep 100');
    first.start(task);
    const processes = await bench.processes(task.uid);
    await first.close();
    process.kill(processes.shim, 'SIGKILL');
    process.kill(-processes.task, 'SIGKILL');
    const other = new Bench();
    const stranger = await spawnAgent(other.dataDir, [shell('true')]);
    const [pid, began] = [stranger.pid!, readProcess(stranger.pid!)!.began];
    const words = `${pid} 1 ${pid} 1 ${bootId()} ${task.uid}\n`;
    writeFileSync(join(bench.directory(task.uid), 'pid'), words);
    const second = bench.open();
    expect(await ended(second, task.uid)).toMatchObject({ cause: 'lost' });
    expect(isSameProcess(pid, began)).toBe(true);
    await kill(stranger);
    await other.clean();
  });

  test('after a reboot what ran is lost', async () => {
    const first = bench.open();
    const task = shell('sleep 100');
    first.start(task);
    const processes = await bench.processes(task.uid);
    await first.close();
    process.kill(processes.shim, 'SIGKILL');
    process.kill(processes.task, 'SIGKILL');
    const pid = join(bench.directory(task.uid), 'pid');
    writeFileSync(pid, readFileSync(pid, 'utf8').replace(bootId(), 'an-earlier-boot'));
    const second = bench.open();
    expect(observe(second, task.uid)).toMatchObject({
      state: 'ENDED',
      cause: 'lost',
      message: 'the machine was restarted',
    });
  });

  test('an agent that died between writing the order and starting it', async () => {
    const first = bench.open();
    const task = shell('echo ran');
    first.start(task);
    await ended(first, task.uid);
    await first.close();
    for (const file of ['pid', 'exit', 'ended.json']) {
      rmSync(join(bench.directory(task.uid), file));
    }
    const second = bench.open();
    expect(observe(second, task.uid)).toMatchObject({
      state: 'ENDED',
      cause: 'never-started',
      hostFault: true,
    });
  });

  test('two agents on one folder: the second is refused', async () => {
    const agent = await spawnAgent(bench.dataDir, [shell('true')]);
    expect(() => bench.open()).toThrow(`another agent (pid ${agent.pid}) uses this data folder`);
    await kill(agent);
  });
});

describe('watchdog', () => {
  const lease = { attemptLeaseMs: 1000 };
  const stubborn = `trap '' TERM; setsid sleep 100 & echo ready; while :; do sleep 0.05; done`;

  test.each(['auto', 'off'] as const)(
    'kills what outlived its lease when the agent is dead (cgroups %s)',
    async (cgroups) => {
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
    const runtime = bench.open({ killMarginMs: 0 });
    const task = shell('sleep 100', lease);
    runtime.start(task);
    for (let i = 0; i < 12; i++) {
      runtime.renewLease([{ uid: task.uid, killAtBootMs: systemClock.bootMs() + 1500 }]);
      await sleep(systemClock, 200);
    }
    expect(observe(runtime, task.uid)).toMatchObject({ state: 'RUNNING' });
    expect(await ended(runtime, task.uid)).toMatchObject({ cause: 'lost', signal: 'SIGKILL' });
  });

  test('never kills a stranger under a reused pid', async () => {
    const runtime = bench.open({ killMarginMs: 0 });
    const task = shell('sleep 100', lease);
    runtime.start(task);
    const processes = await bench.processes(task.uid);
    await runtime.close();
    process.kill(processes.shim, 'SIGKILL');
    process.kill(-processes.task, 'SIGKILL');
    const other = new Bench();
    const stranger = await spawnAgent(other.dataDir, [shell('true')]);
    const words = `${stranger.pid} 1 ${stranger.pid} 1 ${bootId()} ${task.uid}\n`;
    writeFileSync(join(bench.directory(task.uid), 'pid'), words);
    const leases = join(bench.dataDir, 'leases');
    await eventually(() => readdirSync(leases).length === 0, 'the watchdog to be done');
    expect(stranger.exitCode ?? stranger.signalCode).toBeNull();
    await kill(stranger);
    await other.clean();
  });

  test('is one per folder, comes back when killed, and ends when it has nothing to guard', async () => {
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
