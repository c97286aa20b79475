/** `drover run` with the real processes: codes, signals, bytes, limits, retries, environment. */
import { mkdtempSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startJourney, type Journey } from '../support/journey.ts';

let journey: Journey;
beforeAll(async () => {
  journey = await startJourney({ args: ['--resources', 'cpus=8,mem=4Gi'] });
});
afterAll(() => journey.close());

const run = (...args: string[]) => journey.drover('run', ...args);

describe('exit codes', () => {
  test.for([
    ['success', ['--', 'true'], 0, ''],
    ['its own code', ['--', 'sh', '-c', 'exit 3'], 3, ''],
    ['a signal', ['--', 'sh', '-c', 'kill -USR1 $$'], 138, 'killed by SIGUSR1'],
    ['no such command', ['--', '/no/such/thing'], 126, 'command not found: /no/such/thing'],
    ['not executable', ['--', '/etc/passwd'], 126, '/etc/passwd'],
    ['no such directory', ['--workdir', '/no/such', '--', 'true'], 126, 'no such directory'],
    ['time limit', ['--time', '1s', '--', 'sleep', '60'], 124, 'time limit'],
    ['never placed', ['--gpus', '1', '--start-within', '1s', '--', 'true'], 122, 'within 1 s'],
  ] as const)('%s', async ([, args, expected, words]) => {
    const { code, stdout, stderr } = await run(...args);
    expect([code, stdout]).toEqual([expected, '']);
    expect(stderr).toContain(words);
    // A code of its own needs no word of ours between its own.
    if (words === '') expect(stderr).toBe('');
    else expect(stderr).toMatch(/more: drover job j/);
  });

  test('what never was placed says what it waited for', async () => {
    const { stderr } = await run('--gpus', '1', '--start-within', '1s', '--', 'true');
    expect(stderr).toMatch(/UNSCHEDULABLE: not started within 1 s: .*device/);
  });

  test('cancelled by somebody else', async () => {
    const following = journey.start(['run', '--', 'sh', '-c', 'echo begun; sleep 60']);
    await expect.poll(() => following.stdout(), { timeout: 20_000 }).toBe('begun\n');
    const { items } = await journey.client.listJobs({ state: 'RUNNING' });
    expect(await journey.drover('cancel', items[0]!.id)).toMatchObject({ code: 0 });
    const { code, stderr } = await following.ended;
    expect([code, stderr]).toEqual([130, expect.stringContaining('CANCELLED')]);
  });
});

describe('output', () => {
  test('both streams arrive apart and byte for byte', async () => {
    const program =
      'import sys,os\n' +
      'os.write(1, bytes(range(256))*1000 + b"\\xff\\xfe no newline")\n' +
      'os.write(2, bytes(reversed(range(256)))*1000)';
    const { code, bytes, errorBytes } = await run('--', 'python3', '-c', program);
    const all = Buffer.from(Array.from({ length: 256 }, (_, at) => at));
    expect(code).toBe(0);
    const wanted = Buffer.concat([
      ...Array<Buffer>(1000).fill(all),
      Buffer.from('\xff\xfe no newline', 'latin1'),
    ]);
    expect(bytes.equals(wanted)).toBe(true);
    const reversed = Buffer.from(all.toReversed());
    expect(errorBytes.equals(Buffer.concat(Array<Buffer>(1000).fill(reversed)))).toBe(true);
    const followed = await journey.start(['logs', '-f', await newest()]).ended;
    expect(followed.bytes.equals(wanted)).toBe(true);
  });

  test('--json is one document per line', async () => {
    const { code, stdout } = await run(
      '--json',
      '--',
      'sh',
      '-c',
      'echo out; echo err >&2; exit 7',
    );
    const lines = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(code).toBe(7);
    expect(lines[0]).toMatchObject({ type: 'job', state: 'PENDING' });
    expect(lines).toContainEqual(
      expect.objectContaining({ type: 'log', stream: 'stdout', text: 'out\n' }),
    );
    expect(lines).toContainEqual(
      expect.objectContaining({ type: 'log', stream: 'stderr', text: 'err\n' }),
    );
    expect(lines.at(-1)).toMatchObject({ type: 'end', exitCode: 7, job: { state: 'FAILED' } });
  });
});

async function newest(): Promise<string> {
  return (await journey.client.listJobs({ limit: 1 })).items[0]!.id;
}

describe('surroundings', () => {
  test('variables, working directory, and nothing of the agent', async () => {
    const folder = mkdtempSync(path.join(journey.home, 'work '));
    const env = { LENT: 'from this shell', HOME: journey.home };
    const args = ['run', '--env', 'A=ü "quoted" $HOME', '--env', 'LENT', '--workdir', folder];
    const script = 'pwd; printf "%s|%s\\n" "$A" "$LENT"; env | grep -c -e TOKEN -e DROVER_AGENT';
    const typed = journey.start([...args, '--', 'sh', '-c', `${script}; true`], { env });
    const { code, stdout } = await typed.ended;
    expect([code, stdout]).toEqual([0, `${folder}\nü "quoted" $HOME|from this shell\n0\n`]);
  });

  test('a task without a directory has one of its own, and a group of its own', async () => {
    const { stdout } = await run(
      '--',
      'sh',
      '-c',
      'pwd; ls -A; ps -o pgid= -p $$ | tr -d " "; echo $$',
    );
    const [cwd, group, pid] = stdout.trim().split('\n');
    expect(cwd).toContain(path.join(journey.dir, 'agent', 'attempts'));
    expect(group).toBe(pid);
  });

  test('more memory than its limit: says out of memory', async () => {
    const hog = 'x = bytearray(400 * 1024 * 1024); print(len(x))';
    const { code, stdout, stderr } = await run('--mem', '64M', '--', 'python3', '-c', hog);
    expect([code, stdout]).toEqual([137, '']);
    expect(stderr).toMatch(/out of memory: the limit of 64 MiB was reached; it used up to 64 MiB/);
  });
});

describe('retries', () => {
  test('fails twice, then succeeds: the attempts are shown', async () => {
    const script = 'echo try $DROVER_ATTEMPT; [ "$DROVER_ATTEMPT" -ge 3 ]';
    const { code, stdout } = await run('--retries', '3', '--', 'sh', '-c', script);
    expect([code, stdout]).toEqual([0, 'try 1\ntry 2\ntry 3\n']);
    const id = await newest();
    const shown = await journey.drover('job', id);
    for (const n of [1, 2, 3]) expect(shown.stdout).toContain(`${id}.0#${n}`);
    const { stdout: json } = await journey.drover('job', '--json', id);
    const { attempts } = JSON.parse(json) as { attempts: { exitCode: number }[] };
    expect(attempts.map(({ exitCode }) => exitCode)).toEqual([1, 1, 0]);
  });

  test('all used: the last failure and the budget', async () => {
    expect(await run('--retries', '1', '--', 'sh', '-c', 'exit 9')).toMatchObject({ code: 9 });
    const { stdout } = await journey.drover('job', await newest());
    expect(stdout).toMatch(/reason +exit code 9; its retry is used/);
  });
});
