/** Attempts outlive the agent that started them. */
import { existsSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { isSameProcess, readProcess, signalGroup } from './processes.ts';
import { bootId } from '../devices/machine.ts';
import { Bench, ended, eventually, inState, kill, observe, shell, spawnAgent } from './testing.ts';

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

  test('after kill -9 of the agent: one runs, one ended meanwhile, spares are swept', async () => {
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
    signalGroup(processes, 'SIGKILL');
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
    signalGroup(processes, 'SIGKILL');
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

  test('a shim that could not write down who it is', async () => {
    const first = bench.open();
    const task = shell('echo ran');
    first.start(task);
    await ended(first, task.uid);
    await first.close();
    for (const file of ['exit', 'ended.json']) rmSync(join(bench.directory(task.uid), file));
    writeFileSync(join(bench.directory(task.uid), 'pid'), '');
    expect(await ended(bench.open(), task.uid)).toMatchObject({
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
