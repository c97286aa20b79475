/** A real OpenSSH client, scp, sftp and rsync through `drover ssh`. */
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ROOT, startJourney, type, until, type Ended, type Journey } from '../support/journey.ts';
import { freePort } from '../support/postgres.ts';
import { programsAreHere } from '../support/programs.ts';

const client = 'openssh-client';
const here = programsAreHere({ ssh: client, scp: client, sftp: client, rsync: 'rsync' });

let journey: Journey;
let id: string;
let uid: string;
/** The attempt's directory on the "worker", and a folder of our own. */
let inside: string;
let outside: string;
let config: string;

beforeAll(async () => {
  journey = await startJourney({ args: ['--resources', 'cpus=4,mem=4Gi'] });
  id = await journey.submit({ command: ['sleep', '600'], env: { IN_JOB: 'yes' } });
  ({ uid } = await journey.running(id));
  outside = path.join(journey.home, 'outside');
  mkdirSync(outside);
  config = path.join(journey.home, 'ssh_config');
  const { stdout, code } = await journey.drover('ssh', '--config');
  expect(code).toBe(0);
  writeFileSync(config, stdout);
  inside = (await journey.drover('exec', '-T', id, '--', 'pwd')).stdout.trim();
});
afterAll(() => journey.close());

/** A program with our ssh_config, as a person who ran `drover ssh --config` has it. */
function run(program: string, args: string[], input?: string): Promise<Ended> {
  const options = { env: { HOME: journey.home, RSYNC_RSH: `ssh -F ${config}` }, cwd: outside };
  const first = program === 'rsync' ? [] : ['-F', config];
  return type(program, [...first, ...args], { ...options, input: input ?? '' }).ended;
}

const host = (): string => `drover-${id}`;

describe.runIf(here)('ssh', () => {
  test('a command: its directory, environment, streams and exit code', async () => {
    const script = 'pwd; echo $IN_JOB $DROVER_JOB_ID; cat; echo err >&2; exit 7';
    const options = { input: 'typed\n' };
    const { code, stdout, stderr } = await journey.start(['ssh', id, '--', script], options).ended;
    expect([code, stdout]).toEqual([7, `${inside}\nyes ${id}\ntyped\n`]);
    expect(stderr).toBe('err\n');
  });

  test('by its own configuration, several sessions over one connection', async () => {
    const socket = path.join(outside, 'control');
    const shared = ['-o', 'ControlMaster=auto', '-o', `ControlPath=${socket}`];
    const master = type('ssh', ['-F', config, ...shared, '-N', host()], {
      env: { HOME: journey.home },
    });
    await until('the master is there', () => existsSync(socket));
    const ended = await Promise.all(
      [1, 2, 3, 4].map((n) => run('ssh', [...shared, host(), `sleep 0.2; echo ${n}; exit ${n}`])),
    );
    expect(ended.map(({ code, stdout }) => [code, stdout])).toEqual(
      [1, 2, 3, 4].map((n) => [n, `${n}\n`]),
    );
    expect((await run('ssh', ['-S', socket, '-O', 'exit', host()])).code).toBe(0);
    await master.ended;
  });

  test('a terminal of our size, a signal that ends it', async () => {
    const script = 'test -t 0 && echo is a tty; stty size; kill -TERM $$';
    const size = { cols: 91, rows: 33 };
    const { code, stdout } = await journey.terminal(['ssh', id, '--', '-t', script], size);
    expect(stdout).toContain('is a tty');
    expect(stdout).toContain('33 91');
    expect(code).toBe(255);
    const shell = await journey.terminal(['ssh', id], size, 'echo $((6*7)); exit 9\r');
    expect(shell.stdout).toContain('42');
    expect(shell.code).toBe(9);
  });

  test('ports and sockets: -W, -L and -D, as an editor uses them', async () => {
    const server = `import http.server,os;os.chdir("/");h=http.server.ThreadingHTTPServer(
("127.0.0.1",0),http.server.SimpleHTTPRequestHandler);
print(h.server_port,flush=True);h.serve_forever()`;
    const serving = journey.start(['exec', '-T', id, '--', 'python3', '-c', server]);
    const port = await until('it serves', () => /^\d+/.exec(serving.stdout())?.[0]);
    const request = 'GET / HTTP/1.0\r\n\r\n';
    const direct = await run('ssh', ['-W', `127.0.0.1:${port}`, host()], request);
    expect(direct.stdout).toContain('200 OK');
    const local = path.join(outside, 'local.sock');
    const forwarding = type(
      'ssh',
      ['-F', config, '-N', '-L', `${local}:127.0.0.1:${port}`, host()],
      { env: { HOME: journey.home } },
    );
    await until('it listens', () => existsSync(local));
    const args = [
      '-s',
      '-o',
      '/dev/null',
      '-w',
      '%{http_code}',
      '--unix-socket',
      local,
      'http://x/',
    ];
    const answers = await Promise.all([1, 2, 3].map(() => type('curl', args).ended));
    expect(answers.map(({ stdout }) => stdout)).toEqual(['200', '200', '200']);
    forwarding.child.kill();
    await forwarding.ended;
    const socks = await freePort();
    const dynamic = type('ssh', ['-F', config, '-N', '-D', String(socks), host()], {
      env: { HOME: journey.home },
    });
    const through = ['-s', '-o', '/dev/null', '-w', '%{http_code}', '--socks5-hostname'];
    await until('it is a proxy', async () => {
      const place = [`127.0.0.1:${socks}`, `http://localhost:${port}/`];
      return (await type('curl', [...through, ...place]).ended).stdout === '200';
    });
    dynamic.child.kill();
    await dynamic.ended;
    const refused = await run('ssh', ['-W', '127.0.0.1:1', host()], request);
    expect(refused.code).not.toBe(0);
    serving.child.kill();
  });

  test('what is left in the background stays, counts to the attempt and ends with it', async () => {
    const other = await journey.submit({ command: ['sleep', '600'], graceMs: 300 });
    const attempt = await journey.running(other);
    const script = 'nohup sleep 555 >/dev/null 2>&1 & echo $!';
    const { stdout } = await run('ssh', [`drover-${other}`, script]);
    const pid = Number(stdout);
    const environment = readFileSync(`/proc/${pid}/environ`, 'latin1');
    expect(environment).toContain(`DROVER_ATTEMPT_UID=${attempt.uid}`);
    const { stdout: own } = await journey.drover('exec', other, '--', 'cat', '/proc/self/cgroup');
    expect(readFileSync(`/proc/${pid}/cgroup`, 'utf8')).toBe(own);
    await journey.client.cancelJob(other);
    await journey.ended(other);
    await until('it is gone', () => !existsSync(`/proc/${pid}`));
  });

  test('another key and another host key are refused', async () => {
    const key = path.join(outside, 'stranger');
    await type('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', key]).ended;
    const own = readFileSync(config, 'utf8').replace(/IdentityFile .*/, `IdentityFile ${key}`);
    const file = path.join(outside, 'config2');
    writeFileSync(file, own);
    const refused = await type('ssh', ['-F', file, host(), 'true'], {
      env: { HOME: journey.home },
    }).ended;
    expect([refused.code, refused.stderr]).toEqual([
      255,
      expect.stringContaining('Permission denied (publickey)'),
    ]);
    const known = path.join(outside, 'known');
    writeFileSync(known, `${host()} ${readFileSync(`${key}.pub`, 'utf8')}`);
    const strange = await run('ssh', ['-o', `UserKnownHostsFile=${known}`, host(), 'true']);
    expect([strange.code, strange.stderr]).toEqual([
      255,
      expect.stringContaining('Host key verification failed'),
    ]);
    expect(statSync(path.join(journey.dir, 'ssh/id_ed25519')).mode & 0o777).toBe(0o600);
    expect(statSync(path.join(journey.dir, 'ssh/hosts', host())).mode & 0o777).toBe(0o600);
  });

  test('a job that has ended, one that is not there: a code and what to try', async () => {
    const ended = await journey.submit({ command: ['true'] });
    await journey.ended(ended);
    const late = await journey.drover('ssh', ended, '--', 'true');
    expect(late.code).toBe(255);
    expect(late.stderr).toMatch(/error (CONFLICT|NOT_FOUND): .*is not running/);
    const absent = await journey.drover('ssh', 'jnone', '--', 'true');
    expect([absent.code, absent.stderr]).toEqual([125, expect.stringContaining('NOT_FOUND')]);
  });

  test('it is on record who looked inside', async () => {
    const { items } = await journey.client.listAudit({ limit: 100 });
    const row = JSON.stringify(items.find((item) => JSON.stringify(item).includes('"ssh"')));
    expect(row).toContain(uid);
    expect(row).toContain('admin');
    expect(row).not.toContain('publicKey');
  });
});

describe.runIf(here)('files', () => {
  test.each(['sftp', 'legacy'])('scp there and back (%s)', async (mode) => {
    const legacy = mode === 'legacy' ? ['-O'] : [];
    const bytes = randomBytes(20_000_000);
    writeFileSync(path.join(outside, 'big.bin'), bytes);
    const begun = performance.now();
    const put = await run('scp', [...legacy, '-p', 'big.bin', `${host()}:copy.bin`]);
    const get = await run('scp', [...legacy, `${host()}:copy.bin`, 'back.bin']);
    const seconds = (performance.now() - begun) / 1000;
    expect([put.code, put.stderr, get.code, get.stderr]).toEqual([0, '', 0, '']);
    expect(readFileSync(path.join(outside, 'back.bin')).equals(bytes)).toBe(true);
    console.log(`scp (${mode}) of 2 x 20 MB: ${(40 / seconds).toFixed(0)} MB/s`);
    const absent = await run('scp', [...legacy, `${host()}:no-such-file`, '.']);
    expect([absent.code, absent.stderr]).toEqual([1, expect.stringMatching(/no.such.file/i)]);
  });

  test('a folder by scp -r, and sftp by hand', async () => {
    mkdirSync(path.join(outside, 'tree/below'), { recursive: true });
    for (let n = 0; n < 250; n++) writeFileSync(path.join(outside, `tree/below/${n}`), `${n}`);
    expect((await run('scp', ['-r', 'tree', `${host()}:`])).code).toBe(0);
    expect(readdirSync(path.join(inside, 'tree/below'))).toHaveLength(250);
    const commands = [
      'pwd',
      'cd tree',
      'ls -l below/7',
      'rename below/7 below/seven',
      'chmod 600 below/seven',
      'ln -s below/seven link',
      'mkdir new',
      'rmdir new',
      'rm below/8',
      '-rename below/1 below/2',
      'get link fetched',
      'bye',
    ];
    const batch = commands.join('\n');
    const { code, stdout, stderr } = await run('sftp', ['-b', '-', host()], batch);
    expect([code, stderr.replaceAll(/^sftp>.*\n/gm, '')]).toEqual([
      0,
      expect.stringContaining('Failure'),
    ]);
    expect(stdout).toContain(`Remote working directory: ${inside}`);
    expect(readFileSync(path.join(outside, 'fetched'), 'utf8')).toBe('7');
    expect(readFileSync(path.join(inside, 'tree/link'), 'utf8')).toBe('7');
    expect(statSync(path.join(inside, 'tree/below/seven')).mode & 0o777).toBe(0o600);
    expect(existsSync(path.join(inside, 'tree/below/8'))).toBe(false);
  });

  test('rsync there and back, and again with nothing to do', async () => {
    mkdirSync(path.join(outside, 'many'));
    for (let n = 0; n < 300; n++) writeFileSync(path.join(outside, `many/${n}`), randomBytes(2000));
    const there = await run('rsync', ['-a', '--stats', 'many/', `${host()}:synced/`]);
    expect([there.code, there.stderr]).toEqual([0, '']);
    const again = await run('rsync', ['-ai', 'many/', `${host()}:synced/`]);
    expect([again.code, again.stdout]).toEqual([0, '']);
    writeFileSync(path.join(inside, 'synced/7'), 'changed inside');
    const back = await run('rsync', ['-aic', `${host()}:synced/`, 'many/']);
    expect([back.code, back.stdout.trim().split('\n').length]).toEqual([0, 1]);
    expect(readFileSync(path.join(outside, 'many/7'), 'utf8')).toBe('changed inside');
  });
});

test.runIf(here)('examples/inside.sh does what it says', async () => {
  const PATH = `${ROOT}:${process.env['PATH'] ?? ''}`;
  const script = path.join(ROOT, 'examples/inside.sh');
  const { code, stdout, stderr } = await type(script, [], { env: { HOME: journey.home, PATH } })
    .ended;
  expect([code, stdout.match(/^42$/gm)?.length, stderr]).toEqual([0, 3, '']);
  expect(stdout).toContain('http.server');
  expect(stdout).toContain('--- done');
});
