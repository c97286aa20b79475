/** `drover logs` and `drover exec` with the real processes. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startJourney, until, type Journey } from '../support/journey.ts';

let journey: Journey;
beforeAll(async () => {
  journey = await startJourney({ args: ['--resources', 'cpus=4,mem=4Gi'] });
});
afterAll(() => journey.close());

const sh = (script: string) => ['sh', '-c', script];

describe('logs', () => {
  test('-f follows as it comes; --tail and --since choose; Ctrl-C leaves it running', async () => {
    const script = 'for i in 1 2 3 4 5 6; do echo line $i; sleep 0.4; done; sleep 30';
    const id = await journey.submit({ command: sh(script) });
    const following = journey.start(['logs', '-f', id]);
    await until('the first line', () => following.stdout().includes('line 1'));
    expect(following.stdout()).not.toContain('line 6');
    await until('the last line', () => following.stdout().includes('line 6'));
    const [tail, since, old] = await Promise.all([
      journey.drover('logs', id, '--tail', '2'),
      journey.drover('logs', id, '--since', '10m'),
      journey.drover('logs', id, '--since', '1s', '--tail', '0'),
    ]);
    expect(tail.stdout).toBe('line 5\nline 6\n');
    expect(since.stdout).toBe([1, 2, 3, 4, 5, 6].map((n) => `line ${n}\n`).join(''));
    expect([old.code, old.stdout]).toEqual([0, '']);
    following.child.kill('SIGINT');
    expect((await following.ended).code).toBe(130);
    expect((await journey.client.getJob(id)).state).toBe('RUNNING');
    await journey.drover('cancel', id);
  });

  test('--json gives records', async () => {
    const id = await journey.submit({ command: sh('echo one; printf "\\377" >&2') });
    await journey.ended(id);
    const { stdout } = await journey.drover('logs', id, '--json');
    const records = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as object);
    expect(records).toContainEqual(expect.objectContaining({ stream: 'stdout', text: 'one\n' }));
    expect(records).toContainEqual(expect.objectContaining({ stream: 'stderr', base64: '/w==' }));
  });
});

describe('exec', () => {
  let id: string;
  beforeAll(async () => {
    id = await journey.submit({
      command: sh('export IN=no; echo $$ > me; sleep 300'),
      env: { IN_JOB: 'yes' },
    });
    await journey.running(id);
  });
  afterAll(() => journey.drover('cancel', id));

  test('pipes: stdin to cat, both streams, the exit code', async () => {
    const input = Buffer.from(Array.from({ length: 300_000 }, (_, at) => (at * 7) % 256));
    const cat = await journey.start(['exec', id, '--', 'cat'], { input }).ended;
    expect([cat.code, cat.bytes.equals(input)]).toEqual([0, true]);
    const command = 'echo out; echo err >&2; echo $IN_JOB $DROVER_JOB_ID; ls me; exit 23';
    const { code, stdout, stderr } = await journey.start(['exec', id, '--', ...sh(command)], {
      input: '',
    }).ended;
    expect([code, stdout, stderr]).toEqual([23, `out\nyes ${id}\nme\n`, 'err\n']);
  });

  test('a terminal: it is one, of our size', async () => {
    const command = 'test -t 0 && test -t 1 && echo is a tty; stty size; exit 4';
    const { code, stdout } = await journey.terminal(['exec', id, '--', ...sh(command)], {
      cols: 91,
      rows: 33,
    });
    expect(stdout).toContain('is a tty');
    expect(stdout).toContain('33 91');
    expect(code).toBe(4);
  });

  test('a shell in a terminal, typed at', async () => {
    const { code, stdout } = await journey.terminal(
      ['exec', id],
      { cols: 80, rows: 24 },
      'echo $((6*7)); exit 9\r',
    );
    expect(stdout).toContain('42');
    expect(code).toBe(9);
  });

  test('no such command, and a job that does not run', async () => {
    const ended = await journey.submit({ command: ['true'] });
    await journey.ended(ended);
    const [missing, late] = await Promise.all([
      journey.start(['exec', id, '--', '/no/such'], { input: '' }).ended,
      journey.start(['exec', ended, '--', 'true'], { input: '' }).ended,
    ]);
    expect(missing.code).toBe(127);
    expect(missing.stderr).toContain('/no/such');
    expect([late.code, late.stderr]).toEqual([
      125,
      expect.stringMatching(/error (CONFLICT|NOT_FOUND)/),
    ]);
  });
});
