/** Starting, ending and stopping attempts as real processes. */
import { chmodSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sleep, systemClock } from '../../lib/clock.ts';
import { observation } from '../../protocol/agent.ts';
import { JOB_LIMITS } from '../../protocol/jobSpec.ts';
import type { ProcessRuntime } from './processRuntime.ts';
import {
  Bench,
  ended,
  eventually,
  inState,
  marked,
  observe,
  order,
  run,
  shell,
} from './testing.ts';

const bench = new Bench();
let runtime: ProcessRuntime;
beforeAll(() => {
  runtime = bench.open();
});
afterAll(() => bench.clean());

describe('how an attempt ends', () => {
  test('its exit code is told', async () => {
    expect(await run(runtime, shell('exit 0'))).toMatchObject({ cause: 'exited', exitCode: 0 });
    expect(await run(runtime, shell('exit 7'))).toMatchObject({ cause: 'exited', exitCode: 7 });
  });

  test('a signal is told by name; an exit code that looks like one is not one', async () => {
    expect(await run(runtime, shell('kill -SEGV $$'))).toMatchObject({
      cause: 'signalled',
      signal: 'SIGSEGV',
      exitCode: null,
    });
    expect(await run(runtime, shell('kill -INT $$'))).toMatchObject({ signal: 'SIGINT' });
    expect(await run(runtime, shell('kill -KILL $$'))).toMatchObject({ signal: 'SIGKILL' });
    expect(await run(runtime, shell('exit 137'))).toMatchObject({ cause: 'exited', exitCode: 137 });
  });

  test('output goes to files byte by byte, and the end says how much there is', async () => {
    const task = order([
      process.execPath,
      '-e',
      'process.stdout.write(Buffer.from([...Array(256).keys()])); ' +
        'process.stderr.write("no newline")',
    ]);
    const end = await run(runtime, task);
    expect(end).toMatchObject({ exitCode: 0, stdoutBytes: 256, stderrBytes: 10 });
    const { stdout, stderr } = runtime.outputFiles(task.uid);
    expect([...readFileSync(stdout)]).toEqual([...Array(256).keys()]);
    expect(readFileSync(stderr, 'utf8')).toBe('no newline');
  });

  test('what it leaves behind in its group is killed with it', async () => {
    const task = shell('sleep 1000 & sleep 1000 & exit 3');
    expect(await run(runtime, task)).toMatchObject({ cause: 'exited', exitCode: 3 });
    expect(marked(task.uid)).toEqual([]);
  });

  test('signals are as a fresh process expects: SIGINT is not ignored', async () => {
    const task = shell('grep SigIgn /proc/self/status');
    await run(runtime, task);
    const mask = /SigIgn:\s+([0-9a-f]+)/.exec(bench.read(task.uid, 'stdout'))?.[1] ?? 'missing';
    // The 31 standard signals; what lies above is the C library's own.
    expect(Number(BigInt(`0x${mask}`) & 0x7fff_ffffn)).toBe(0);
  });
});

describe('what cannot start', () => {
  test('a command that does not exist', async () => {
    expect(await run(runtime, order(['no-such-program-x']))).toMatchObject({
      cause: 'never-started',
      exitCode: 127,
      message: 'command not found: no-such-program-x',
      hostFault: false,
    });
    expect(await run(runtime, order(['./missing']))).toMatchObject({ exitCode: 127 });
    const longName = await run(runtime, order(['x'.repeat(100_000)]));
    expect(observation.parse(longName)).toMatchObject({ exitCode: 127 });
  });

  test('a file that is not executable, or a folder', async () => {
    const path = join(bench.dataDir, 'plain');
    writeFileSync(path, 'echo hi');
    chmodSync(path, 0o644);
    const message = `not executable: ${path}`;
    expect(await run(runtime, order([path]))).toMatchObject({
      cause: 'never-started',
      exitCode: 126,
      message,
    });
    expect(await run(runtime, order([bench.dataDir]))).toMatchObject({ exitCode: 126 });
  });

  test('a missing directory is named', async () => {
    expect(await run(runtime, shell('true', { workdir: '/no/such/place' }))).toMatchObject({
      cause: 'never-started',
      message: 'no such directory: /no/such/place',
      hostFault: false,
    });
    expect(await run(runtime, shell('true', { workdir: '/etc/passwd' }))).toMatchObject({
      message: 'not a directory: /etc/passwd',
    });
  });

  test('a word longer than Linux takes says which', async () => {
    const big = 'x'.repeat(JOB_LIMITS.envBytes);
    const end = await run(runtime, shell('true', { env: { HUGE: big } }));
    expect(end).toMatchObject({ cause: 'never-started', hostFault: false });
    expect(end.message).toContain('environment variable HUGE is 262149 bytes');
    expect((await run(runtime, shell('true', { env: { 'A;touch x': '1' } }))).message).toContain(
      'not a name',
    );
  });
});

describe('what a task sees', () => {
  test('environment and arguments up to the limits arrive unchanged', async () => {
    const env: Record<string, string> = {
      ODD: `a'b"c$d\`e\\f\n\tü€漢𝄞 ā\u0081`,
      EMPTY: '',
      IFS: 'x',
    };
    for (let i = 0; i < JOB_LIMITS.envEntries - 10; i++) env[`V${i}`] = 'v'.repeat(50);
    const words = Array.from({ length: 1000 }, (_, i) => `${i} '"$(touch x)${'w'.repeat(100)}`);
    const script = `const { env, argv } = process;
      const seen = [env.ODD, env.EMPTY, env.IFS, Object.keys(env).length, argv.slice(1)];
      console.log(JSON.stringify(seen))`;
    const task = order([process.execPath, '-e', script, ...words], { env });
    expect(await run(runtime, task)).toMatchObject({ exitCode: 0 });
    const [odd, empty, ifs, count, argv] = JSON.parse(bench.read(task.uid, 'stdout')) as unknown[];
    expect({ odd, empty, ifs }).toEqual({ odd: env['ODD'], empty: '', ifs: 'x' });
    expect(count).toBeGreaterThanOrEqual(Object.keys(env).length);
    expect(argv).toEqual(words);
  });

  test('its own empty folder, or the directory it named', async () => {
    const own = shell('pwd; ls -A');
    await run(runtime, own);
    expect(bench.read(own.uid, 'stdout')).toBe(`${join(bench.directory(own.uid), 'work')}\n`);
    const named = shell('pwd', { workdir: '/usr' });
    await run(runtime, named);
    expect(bench.read(named.uid, 'stdout')).toBe('/usr\n');
  });

  test('nothing of the agent that could be a secret', async () => {
    process.env['AGENT_SECRET_TOKEN'] = 'hidden';
    const task = shell('env; ls -l /proc/self/fd | wc -l');
    await run(runtime, task);
    const seen = bench.read(task.uid, 'stdout');
    delete process.env['AGENT_SECRET_TOKEN'];
    expect(seen).not.toContain('AGENT_SECRET_TOKEN');
    expect(seen).toContain(`DROVER_ATTEMPT_UID=${task.uid}\n`);
    expect(seen).not.toContain('OLDPWD');
    expect(bench.read(task.uid, 'stderr')).toBe('');
  });

  test('secrets are in no command line and in no file others can read', async () => {
    const secret = `s3cret-${Date.now()}`;
    const task = shell('sleep 100', { env: { API_KEY: secret } });
    runtime.start(task);
    await inState(runtime, task.uid, 'RUNNING');
    for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
      let line = '';
      try {
        line = readFileSync(`/proc/${pid}/cmdline`, 'latin1');
      } catch {
        continue; // Ended while we looked.
      }
      expect(line).not.toContain(secret);
    }
    for (const file of ['order.json', 'task.sh', 'stdout', 'stderr']) {
      expect(statSync(join(bench.directory(task.uid), file)).mode & 0o077).toBe(0);
    }
    expect(statSync(bench.directory(task.uid)).mode & 0o077).toBe(0);
    runtime.stop({ uid: task.uid, cause: 'cancelled', graceMs: 0 });
    await ended(runtime, task.uid);
  });

  test('its GPUs by number; without any, none where the machine has some', async () => {
    const show = 'echo "[${CUDA_VISIBLE_DEVICES-unset}]"';
    const some = shell(show, {
      devices: [
        { index: 3, kind: 'gpu' },
        { index: 1, kind: 'gpu' },
      ],
    });
    await run(runtime, some);
    expect(bench.read(some.uid, 'stdout')).toBe('[3,1]\n');
    const none = shell(show);
    await run(runtime, none);
    expect(bench.read(none.uid, 'stdout')).toBe('[unset]\n');
    const other = new Bench();
    const withGpus = other.open({ machineHasGpus: true });
    const hidden = shell(show, { env: { CUDA_VISIBLE_DEVICES: '0' } });
    await run(withGpus, hidden);
    expect(other.read(hidden.uid, 'stdout')).toBe('[]\n');
    await other.clean();
  });
});

test('starts once, forgets everything, and refuses a late order', async () => {
  const task = shell('echo ran');
  runtime.start(task);
  runtime.start(task);
  await ended(runtime, task.uid);
  expect(bench.read(task.uid, 'stdout')).toBe('ran\n');
  runtime.forget(task.uid);
  expect(observe(runtime, task.uid)).toBeUndefined();
  await eventually(
    () => !readdirSync(join(bench.dataDir, 'attempts')).includes(task.uid),
    'removal',
  );
  runtime.start(task);
  expect(observe(runtime, task.uid)).toBeUndefined();
});

test('files stay until the spool has them, also across a restart', async () => {
  const other = new Bench();
  const task = shell('echo kept');
  const first = other.open({ beforeForget: () => new Promise(() => {}) });
  await run(first, task);
  first.forget(task.uid);
  await first.close();
  let asked = '';
  const { promise, resolve } = Promise.withResolvers<void>();
  const second = other.open({
    beforeForget(uid) {
      asked = uid;
      return promise;
    },
  });
  expect(second.list()).toEqual([]);
  expect(asked).toBe(task.uid);
  expect(readFileSync(second.outputFiles(task.uid).stdout, 'utf8')).toBe('kept\n');
  resolve();
  await eventually(
    () => !readdirSync(join(other.dataDir, 'attempts')).includes(task.uid),
    'removal',
  );
  await other.clean();
});

const middle = (all: number[]): number => all.toSorted((a, b) => a - b)[10]!;

test('from start to a running process takes a few milliseconds', async () => {
  const tookMs: number[] = [];
  const changeMs: number[] = [];
  let changedAt = 0;
  runtime.onChange(() => {
    changedAt = performance.now();
  });
  for (let i = 0; i < 21; i++) {
    const task = order(['date', '+%s%N']);
    await sleep(systemClock, 60);
    const began = performance.now();
    const wall = performance.timeOrigin + began;
    runtime.start(task);
    await inState(runtime, task.uid, 'ENDED');
    tookMs.push(Number(bench.read(task.uid, 'stdout')) / 1e6 - wall);
    changeMs.push(changedAt - began);
  }
  console.log(
    `start -> process running: p50 ${middle(tookMs).toFixed(1)} ms, ` +
      `start -> end told: p50 ${middle(changeMs).toFixed(1)} ms (limits: ${runtime.limits})`,
  );
  // The best of them: other tests share the machine.
  expect(Math.min(...tookMs)).toBeLessThan(15);
});
