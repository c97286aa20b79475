/** The real `./drover` process: exit codes, signals, terminals, pipes, and finding its Node. */
import { spawn as spawnTerminal } from '@lydell/node-pty';
import { spawn, type ChildProcess } from 'node:child_process';
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { addJob, addOutput, endJob } from '../../src/cli/fakeJobs.ts';
import { FAKE_TOKEN, startFakeServer, type FakeServer } from '../../src/cli/fakeServer.ts';

const DROVER = path.resolve(import.meta.dirname, '../../drover');
let fake: FakeServer;
let home: string;
beforeEach(async () => {
  fake = await startFakeServer();
  home = mkdtempSync(path.join(tmpdir(), 'drover-cli-'));
});
afterEach(async () => {
  await fake.close();
  rmSync(home, { recursive: true });
});

const environment = () => ({
  PATH: process.env['PATH'] ?? '',
  HOME: home,
  DROVER_URL: fake.url,
  DROVER_TOKEN: FAKE_TOKEN,
});

interface Ended {
  code: number | null;
  stdout: Buffer;
  stderr: string;
}

function start(args: string[], program = DROVER): { child: ChildProcess; ended: Promise<Ended> } {
  const child = spawn(program, args, { cwd: home, env: environment() });
  const [stdout, stderr]: [Buffer[], Buffer[]] = [[], []];
  child.stdout.on('data', (chunk: Buffer) => stdout.push(chunk));
  child.stderr.on('data', (chunk: Buffer) => stderr.push(chunk));
  const ended = new Promise<Ended>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) => {
      resolve({ code, stdout: Buffer.concat(stdout), stderr: Buffer.concat(stderr).toString() });
    });
  });
  return { child, ended };
}

const requested = (suffix: string): Promise<void> =>
  expect
    .poll(() => fake.requests.some(({ path }) => path.endsWith(suffix)), { timeout: 10_000 })
    .toBe(true);

describe('run', () => {
  test('a megabyte of binary output arrives exactly, and the exit code too', async () => {
    const blocks = Array.from({ length: 64 }, (_, n) =>
      Buffer.from(Uint8Array.from({ length: 16_384 }, (_, i) => (i * 31 + n * 17) & 0xff)),
    );
    fake.onSubmit = (job) => {
      for (const block of blocks) addOutput(fake, job, block);
      addOutput(fake, job, 'warning\n', { stream: 'stderr' });
      endJob(fake, job, { state: 'FAILED', exitCode: 42 });
      job.attempts.push({ task: 'j1.0', n: 1, cause: 'exited', exitCode: 42 } as never);
    };
    const { code, stdout, stderr } = await start(['run', '--', 'x']).ended;
    expect(code).toBe(42);
    expect(stdout.equals(Buffer.concat(blocks))).toBe(true);
    expect(stderr).toBe('warning\n');
  });

  test('Ctrl-C detaches and leaves the job alone', async () => {
    const { child, ended } = start(['run', '--', 'x']);
    await requested('/logs');
    child.kill('SIGINT');
    const { code, stderr } = await ended;
    expect(code).toBe(130);
    expect(stderr).toContain('job j1 goes on');
    expect(stderr).toContain('drover cancel j1');
    expect(fake.jobs.get('j1')!.view.state).toBe('PENDING');
  });

  test('a second Ctrl-C cancels', async () => {
    const { child, ended } = start(['run', '--', 'x']);
    await requested('/logs');
    child.kill('SIGINT');
    setTimeout(() => child.kill('SIGINT'), 300);
    const { code, stderr } = await ended;
    expect(code).toBe(130);
    expect(stderr).toContain('cancel of job j1 requested');
    expect(fake.jobs.get('j1')!.view.state).toBe('CANCELLED');
  });

  test('a reader that leaves ends it quietly', async () => {
    const job = addJob(fake, { command: ['x'] });
    const { child, ended } = start(['logs', '-f', 'j1']);
    child.stdout!.once('data', () => child.stdout!.destroy());
    const line = Buffer.from(`${'y'.repeat(70_000)}\n`);
    const pump = setInterval(() => addOutput(fake, job, line), 10);
    const { code, stderr } = await ended;
    clearInterval(pump);
    expect([code, stderr]).toEqual([141, '']);
  });
});

function terminal(args: string[], cols: number, extra: object = {}) {
  const env = { ...environment(), TERM: 'xterm', ...extra };
  const pty = spawnTerminal(DROVER, args, { cols, rows: 24, cwd: home, env });
  let output = '';
  pty.onData((data) => (output += data));
  const ended = new Promise<number>((resolve) => pty.onExit(({ exitCode }) => resolve(exitCode)));
  return { pty, ended, output: () => output };
}

describe('in a terminal', () => {
  test('a list has colour and fits', async () => {
    addJob(fake, { command: ['x'], name: 'train' }).view.reason = 'busy '.repeat(40);
    const { ended, output } = terminal(['jobs'], 72);
    expect(await ended).toBe(0);
    expect(output()).toContain('\x1b[33mPENDING');
    expect(output().trim().split('\r\n')).toHaveLength(2);
  });

  test('login asks for the token and does not show it', async () => {
    const { pty, ended, output } = terminal(['login', fake.url], 80, { DROVER_URL: '' });
    await expect.poll(output, { timeout: 10_000 }).toContain('token for');
    pty.write(`${FAKE_TOKEN}x\x7f\r`);
    expect(await ended).toBe(0);
    expect(output()).toContain('logged in to lab');
    expect(output()).not.toContain(FAKE_TOKEN);
    expect(statSync(path.join(home, '.config/drover/context.json')).mode & 0o777).toBe(0o600);
  });
});

/** A checkout with nothing but the wrapper in it. */
function bareCheckout(nodeVersion: string): { root: string; bin: string } {
  const root = path.join(home, 'a checkout');
  const bin = path.join(home, 'bin');
  mkdirSync(root);
  mkdirSync(bin);
  copyFileSync(DROVER, path.join(root, 'drover'));
  const node = path.join(bin, 'node');
  const script = `[ "$1" = --version ] && echo ${nodeVersion} && exit\necho ran "$@"\n`;
  writeFileSync(node, `#!/bin/sh\n${script}`);
  chmodSync(node, 0o755);
  return { root, bin };
}

async function runBare({ root, bin }: { root: string; bin: string }, args: string[]) {
  const env = { PATH: `${bin}:/usr/bin:/bin`, HOME: home };
  const child = spawn(path.join(root, 'drover'), args, { env });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const code = await new Promise((resolve) => child.on('close', resolve));
  return { code, output };
}

describe('the wrapper', () => {
  test('works from anywhere and through links to links', async () => {
    symlinkSync(DROVER, path.join(home, 'one'));
    symlinkSync('one', path.join(home, 'two'));
    const { code, stdout } = await start(['version'], path.join(home, 'two')).ended;
    expect([code, stdout.toString()]).toEqual([0, expect.stringMatching(/^drover \d/)]);
  });

  test('an old Node and none of its own: says what to do', async () => {
    for (const version of ['v20.20.2', 'v24.14.9']) {
      const { code, output } = await runBare(bareCheckout(version), ['jobs']);
      expect([code, output]).toEqual([125, expect.stringContaining('Node 24.15 or newer')]);
      expect(output).toContain('setup');
      rmSync(path.join(home, 'a checkout'), { recursive: true });
      rmSync(path.join(home, 'bin'), { recursive: true });
    }
  });

  test('no packages: says what to do', async () => {
    const { code, output } = await runBare(bareCheckout('v24.15.0'), ['jobs']);
    expect([code, output]).toEqual([125, expect.stringContaining('packages are not installed')]);
  });

  test('a new system Node is used, with the arguments as they are', async () => {
    const checkout = bareCheckout('v25.0.0');
    mkdirSync(path.join(checkout.root, 'node_modules'));
    const { output } = await runBare(checkout, ['run', '--', 'a b', '*']);
    expect(output).toBe(`ran ${checkout.root}/src/bin/drover.ts run -- a b *\n`);
  });
});
