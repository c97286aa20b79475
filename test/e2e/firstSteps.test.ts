/** The first minutes of a new user: `drover up`, the three commands it names, and its end. */
import { execFileSync } from 'node:child_process';
import { statSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ROOT, startJourney, type, until, type Journey } from '../support/journey.ts';

let journey: Journey;
beforeAll(async () => {
  journey = await startJourney();
});
afterAll(() => journey.close());

/** As another terminal would: a login shell that knows nothing but the home. */
const inShell = (command: string, cwd = ROOT) =>
  type('/bin/sh', ['-c', command], { cwd, env: { HOME: journey.home } }).ended;

function commandsOf(greeting: string): string[] {
  const [, list = ''] = greeting.split('Try, in another terminal:\n');
  return list
    .split('\n\n')[0]!
    .split('\n')
    .map((line) => line.trim());
}

describe('drover up', () => {
  test('says where it is, the admin token, its log, and three commands', () => {
    const text = journey.up.stdout();
    expect(text).toContain(`Drover is up at ${journey.url}`);
    expect(text).toMatch(new RegExp(`admin token +${journey.token}\n`));
    expect(text).toContain(path.join(journey.dir, 'drover.log'));
    expect(commandsOf(text)).toHaveLength(3);
    expect(journey.up.stderr()).toBe('');
    expect(text).not.toContain('"level"');
    for (const file of ['connection.json', 'drover.log', 'drover.db']) {
      expect([file, statSync(path.join(journey.dir, file)).mode & 0o077]).toEqual([file, 0]);
    }
  });

  test('the three commands work as they stand', async () => {
    const [run, submit, workers] = commandsOf(journey.up.stdout()) as [string, string, string];
    expect(await inShell(run)).toMatchObject({ code: 0, stdout: 'hi\n', stderr: '' });
    const submitted = await inShell(submit);
    expect(submitted).toMatchObject({ code: 0, stderr: '' });
    const listed = await inShell(workers);
    expect(listed).toMatchObject({ code: 0, stderr: '' });
    expect(listed.stdout).toMatch(/ONLINE/);
    const job = await journey.ended(submitted.stdout.trim());
    expect(job).toMatchObject({ state: 'SUCCEEDED', tasks: { total: 100, succeeded: 100 } });
  });

  test('its log is JSON lines with ids', () => {
    const lines = journey.log().trim().split('\n');
    const entries = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(new Set(entries.map(({ part }) => part))).toEqual(
      new Set(['controller', 'server', 'agent']),
    );
    expect(entries.find(({ msg }) => msg === 'this machine is a worker')).toHaveProperty('worker');
  });

  test('a server that dies is started again under the same address, and says so', async () => {
    const job = await journey.submit({ command: ['sh', '-c', 'sleep 3; echo through'] });
    await journey.running(job);
    process.kill(serverPid(), 'SIGKILL');
    expect(await journey.ended(job)).toMatchObject({ state: 'SUCCEEDED', exitCode: 0 });
    expect(journey.up.stderr()).toContain('the server ended (SIGKILL) and starts again');
    const { stdout } = await journey.drover('logs', job);
    expect(stdout).toBe('through\n');
  });

  test('Ctrl-C says until when running jobs wait; a start before then adopts them', async () => {
    const job = await journey.submit({ command: ['sh', '-c', 'sleep 6; echo adopted; exit 5'] });
    await journey.running(job);
    const { code, stdout, stderr } = await journey.interrupt();
    expect(code).toBe(0);
    expect(stdout).toMatch(/1 running task goes on and waits for a restart until \d\d:\d\d:\d\d/);
    expect(stderr).not.toMatch(/^error|Error|at .*\.ts/m);
    journey = await startJourney({ home: journey.home });
    expect(await journey.ended(job)).toMatchObject({ state: 'FAILED', exitCode: 5 });
    expect(await journey.attempts(job)).toHaveLength(1);
    expect((await journey.drover('logs', job)).stdout).toBe('adopted\n');
  });

  test('nothing running: says so, and ends within seconds', async () => {
    const { code, stdout } = await journey.interrupt();
    expect([code, stdout]).toEqual([0, expect.stringContaining('Nothing is running')]);
    journey = await startJourney({ home: journey.home });
  });
});

/** The one child of this `drover up` that is the server. */
function serverPid(): number {
  const children = execFileSync('ps', ['-o', 'pid=,args=', '--ppid', String(journey.up.child.pid)]);
  const line = children
    .toString()
    .split('\n')
    .find((text) => text.includes('--with-gateway'));
  return Number(line?.trim().split(' ')[0]);
}

test('from another folder the commands name their files in full', async () => {
  const other = path.join(journey.home, "it's another");
  const up = type(path.join(ROOT, 'drover'), ['up', '--port', '0', '--data', other, '--no-agent'], {
    env: { ...journey.env },
    cwd: journey.home,
  });
  try {
    await until('it is up', () => up.stdout().includes('Ctrl-C'));
    const [, , workers] = commandsOf(up.stdout()) as [string, string, string];
    const listed = await inShell(workers, '/');
    expect(listed).toMatchObject({ code: 0, stdout: '' });
    expect(listed.stderr).toContain('no workers');
  } finally {
    up.child.kill('SIGTERM');
    expect((await up.ended).code).toBe(0);
  }
});
