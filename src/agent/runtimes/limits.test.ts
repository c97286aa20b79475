/** Memory, process and disk limits, as the kernel of this machine enforces them. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { cgroupHost, detectCgroups } from './cgroups.ts';
import { readCgroupDirectories } from './folder.ts';
import { Bench, ended, eventually, inState, marked, order, run, shell } from './testing.ts';

const MIB = 1024 ** 2;
const bench = new Bench();
afterAll(() => bench.clean());
const hungry = (mebibytes: number): string[] => [
  process.execPath,
  '-e',
  `const all = [];
   for (let i = 0; i < ${mebibytes}; i++) all.push(Buffer.alloc(${MIB}, 1));
   console.log('fits')`,
];

test('this machine can make cgroups: the tests below mean something', () => {
  expect(detectCgroups()?.kind, 'run the tests as root, or with a delegated cgroup').toBeDefined();
});

describe('with cgroups', () => {
  const runtime = bench.open({ pidsLimit: 50 });

  test('more memory than asked for ends as oom', async () => {
    const end = await run(runtime, order(hungry(300), { memoryBytes: 150 * MIB }));
    expect(end).toMatchObject({ cause: 'oom', signal: 'SIGKILL' });
    expect(end.message).toMatch(/^the limit of 150 MiB was reached; it used up to 1(4\d|50) MiB$/);
    expect(await run(runtime, order(hungry(300)))).toMatchObject({ cause: 'exited', exitCode: 0 });
  });

  test('also when a child was killed and its parent says 1, or 137 as a shell does', async () => {
    const eat = hungry(300)
      .map((word) => `'${word}'`)
      .join(' ');
    for (const code of [1, 137]) {
      const task = shell(`${eat} || exit ${code}`, { memoryBytes: 150 * MIB });
      const end = await run(runtime, task);
      expect(end).toMatchObject({ cause: 'oom', exitCode: code, signal: null });
      expect(end.message).toContain('the limit of 150 MiB was reached');
    }
    const survived = shell(`${eat} || exit 0`, { memoryBytes: 150 * MIB });
    expect(await run(runtime, survived)).toMatchObject({ cause: 'exited', exitCode: 0 });
  });

  test('137 and SIGKILL alone are no want of memory', async () => {
    const limit = { memoryBytes: 150 * MIB };
    const said = await run(runtime, shell('exit 137', limit));
    expect(said).toMatchObject({ cause: 'exited', exitCode: 137 });
    const killed = await run(runtime, shell('kill -9 $$', limit));
    expect(killed).toMatchObject({ cause: 'signalled', signal: 'SIGKILL' });
    expect(killed.message).toMatch(/^Drover did not send it; it used up to \d+ MiB$/);
  });

  test('a new agent still knows that memory was short', async () => {
    const own = new Bench();
    const first = own.open();
    const task = shell(
      `sleep 0.5; ${hungry(300)
        .map((word) => `'${word}'`)
        .join(' ')}`,
      {
        memoryBytes: 150 * MIB,
      },
    );
    first.start(task);
    await inState(first, task.uid, 'RUNNING');
    await first.close();
    await eventually(() => existsSync(join(own.directory(task.uid), 'exit')), 'the exit file');
    expect(await ended(own.open(), task.uid)).toMatchObject({ cause: 'oom' });
    await own.clean();
  });

  test('too many processes are refused to the task, not to the machine', async () => {
    const script = `const { spawn } = require('node:child_process');
      for (let i = 0; i < 80; i++) spawn('sleep', ['100']).on('error', (e) => console.log(e.code));
      setTimeout(() => process.exit(3), 100)`;
    const task = order([process.execPath, '-e', script]);
    expect(await run(runtime, task)).toMatchObject({ cause: 'exited', exitCode: 3 });
    expect(bench.read(task.uid, 'stdout')).toContain('EAGAIN');
    expect(marked(task.uid)).toEqual([]);
  });

  test('its group is there while it runs, can be joined, and is gone afterwards', async () => {
    const task = shell('sleep 100', { cpuMillis: 1500, env: { A: 'b' } });
    runtime.start(task);
    await inState(runtime, task.uid, 'RUNNING');
    const groups = readCgroupDirectories(bench.directory(task.uid));
    expect(groups.length).toBeGreaterThan(0);
    const context = runtime.execContext(task.uid)!;
    expect(context.cwd).toBe(join(bench.directory(task.uid), 'work'));
    expect(context.env).toMatchObject({ A: 'b', DROVER_ATTEMPT_UID: task.uid });
    const guest = spawnSync('sh', ['-c', 'sleep 100 >/dev/null 2>&1 & echo $!']);
    const pid = Number(String(guest.stdout));
    context.joinCgroup!(pid);
    expect(readFileSync(join(groups[0]!, 'cgroup.procs'), 'utf8')).toContain(`${pid}\n`);
    runtime.stop({ uid: task.uid, cause: 'cancelled', graceMs: 0 });
    await ended(runtime, task.uid);
    expect(
      existsSync(`/proc/${pid}/cmdline`) && readFileSync(`/proc/${pid}/cmdline`).length > 0,
    ).toBe(false);
    await eventually(() => groups.every((group) => !existsSync(group)), 'the groups to go');
    expect(runtime.execContext(task.uid)).toBeUndefined();
  });
});

test('an agent goes before its tasks, whose groups stay where they were', () => {
  const script = `import { detectCgroups } from '${join(import.meta.dirname, 'cgroups.ts')}';
    import { readFileSync } from 'node:fs';
    detectCgroups().favourAgent(process.pid);
    const mine = readFileSync('/proc/self/cgroup', 'utf8');
    const host = detectCgroups();
    const groups = host.create('favoured-' + process.pid);
    host.remove(groups);
    console.log(JSON.stringify({ mine, groups }));`;
  const child = spawnSync(process.execPath, ['--input-type=module', '-e', script]);
  expect(String(child.stderr)).toBe('');
  const told = JSON.parse(String(child.stdout)) as { mine: string; groups: string[] };
  expect(told.mine).toMatch(/drover-agent$/m);
  for (const group of told.groups) expect(group).not.toContain('drover-agent');
});

describe('with rlimits only', () => {
  const other = new Bench();
  const runtime = other.open({ cgroups: 'off' });
  afterAll(() => other.clean());

  test('memory is limited, and stragglers are found by their marker', async () => {
    expect(runtime.limits).toBe('rlimit');
    const greedy = order(hungry(600), { memoryBytes: 300 * MIB });
    const end = await run(runtime, greedy);
    expect(end.exitCode === 0 ? end : 'ended').toBe('ended');
    const task = shell(`setsid sh -c 'echo ready; exec sleep 100' & sleep 0.2; exit 4`);
    expect(await run(runtime, task)).toMatchObject({ cause: 'exited', exitCode: 4 });
    expect(marked(task.uid)).toEqual([]);
    expect(other.read(task.uid, 'stderr')).toBe('');
  });
});

test('version 2 is told memory, swap, processes and weight', () => {
  const parent = mkdtempSync(join(tmpdir(), 'drover-cgroup-'));
  const host = cgroupHost('cgroup2', [parent]);
  const [group] = host.create('x') as [string];
  for (const file of ['cpu.weight', 'memory.swap.max', 'memory.oom.group']) {
    writeFileSync(join(group, file), '');
  }
  host.limit([group], { cpuMillis: 2500, memoryBytes: 64 * MIB, pids: 99 });
  const read = (file: string): string => readFileSync(join(group, file), 'utf8');
  expect(read('cpu.weight')).toBe('250');
  expect(read('memory.max')).toBe(String(64 * MIB));
  expect(read('memory.swap.max')).toBe('0');
  expect(read('pids.max')).toBe('99');
  writeFileSync(join(group, 'memory.events'), 'oom 3\noom_kill 2\n');
  expect(host.oomKills([group])).toBe(2);
  expect(host.peakBytes([group])).toBeUndefined();
  writeFileSync(join(group, 'memory.peak'), '67108864\n');
  expect(host.peakBytes([group])).toBe(64 * MIB);
  mkdirSync(join(parent, 'drover-agent'));
  writeFileSync(join(parent, 'drover-agent', 'cpu.weight'), '100');
  host.favourAgent(4711);
  expect(readFileSync(join(parent, 'drover-agent', 'cpu.weight'), 'utf8')).toBe('10000');
  expect(readFileSync(join(parent, 'drover-agent', 'cgroup.procs'), 'utf8')).toBe('4711');
  writeFileSync(join(group, 'cgroup.procs'), '11\n12\n');
  mkdirSync(join(group, 'inner'));
  writeFileSync(join(group, 'inner', 'cgroup.procs'), '13\n');
  expect(host.members([group])).toEqual([11, 12, 13]);
  rmSync(parent, { recursive: true });
});

describe('a full disk', () => {
  const place = mkdtempSync(join(tmpdir(), 'drover-full-'));
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=512k', 'tmpfs', place]);
  const small = new Bench(join(place, 'data'));
  afterAll(async () => {
    await small.clean();
    spawnSync('umount', ['--lazy', place]);
    rmSync(place, { recursive: true, force: true });
  });
  const fill = (): void => {
    spawnSync('dd', ['if=/dev/zero', `of=${join(place, 'filler')}`, 'bs=4k']);
  };
  const free = (): void => rmSync(join(place, 'filler'), { force: true });

  test('a failed start is a host fault; what runs keeps lease and exit code', async () => {
    expect(mounted.status, `needs a tmpfs: ${String(mounted.stderr)}`).toBe(0);
    const runtime = small.open();
    const task = shell('while [ ! -e go ]; do sleep 0.02; done; kill -9 $$');
    runtime.start(task);
    await inState(runtime, task.uid, 'RUNNING');
    fill();
    expect(await run(runtime, shell('true'))).toMatchObject({
      cause: 'never-started',
      hostFault: true,
      message: expect.stringContaining('ENOSPC'),
    });
    runtime.renewLease([{ uid: task.uid, killAtBootMs: 123_456_789_000 }]);
    const lease = readFileSync(join(small.dataDir, 'leases', task.uid), 'utf8');
    expect(lease).toBe('000123456789000\n');
    spawnSync('ln', ['-s', '/', join(small.directory(task.uid), 'work', 'go')]);
    expect(await ended(runtime, task.uid)).toMatchObject({ cause: 'signalled', signal: 'SIGKILL' });
    free();
    expect(await run(runtime, shell('exit 3'))).toMatchObject({ exitCode: 3 });
  });
});
