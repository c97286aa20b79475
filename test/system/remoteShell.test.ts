/** A shell on this machine and behind real sshds: what was said, what was not, and why. */
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { systemClock as clock } from '../../src/lib/clock.ts';
import { silentLog as log } from '../../src/lib/log.ts';
import { systemRandom as random } from '../../src/lib/random.ts';
import type { RemoteShell } from '../../src/providers/remote/contract.ts';
import { OUTPUT_BYTES } from '../../src/providers/remote/conversation.ts';
import { createLocalShell } from '../../src/providers/remote/localShell.ts';
import type { SshDestination } from '../../src/providers/remote/sshDestination.ts';
import { createSshShell, SESSIONS_AT_ONCE } from '../../src/providers/remote/sshShell.ts';
import {
  sshdIsHere,
  startSshServers,
  type SshHost,
  type SshServers,
} from '../support/sshServers.ts';
import { processesOf, startProcess } from '../support/processes.ts';
import { until } from '../support/wait.ts';

const here = sshdIsHere();
let servers: SshServers;
let host: SshHost;
let remote: RemoteShell;
const shells: RemoteShell[] = [];

const destination = (more: Partial<SshDestination> = {}): SshDestination => ({
  host: '127.0.0.1',
  port: host.port,
  user: servers.user,
  keyFile: servers.keyFile,
  proxyJump: '',
  knownHostsFile: servers.knownHostsFile,
  configFile: '',
  ...more,
});

function open(more: Partial<SshDestination> = {}): RemoteShell {
  const backoff = { minMs: 50, maxMs: 50 };
  const options = { destination: destination(more), backoff, connectMs: 10_000 };
  const shell = createSshShell({ ...options, clock, random, log });
  shells.push(shell);
  return shell;
}

beforeAll(async () => {
  if (!here) return;
  servers = startSshServers();
  host = await servers.host('one');
  remote = open();
});
afterAll(async () => {
  await Promise.all(shells.map((shell) => shell.close()));
  await servers?.close();
});

const each = [
  { place: 'here', shell: () => createLocalShell({ clock, random }) },
  { place: 'by ssh', shell: () => remote },
];

describe.runIf(here).each(each)('a command $place', ({ shell }) => {
  test('output, errors, exit codes, what it reads', async () => {
    const script = 'cat; echo err >&2\nprintf "no line end"; exit 255';
    expect(await shell().run(script, { stdin: 'typed\n' })).toEqual({
      kind: 'ended',
      code: 255,
      stdout: 'typed\nno line end',
      stderr: 'err',
    });
    const words = ['printf', '%s|', "it's", '$HOME', 'a\nb', '', '*', 'ü'];
    expect(await shell().run(words)).toMatchObject({ code: 0, stdout: "it's|$HOME|a\nb||*|ü|" });
    expect(await shell().run('no-such-program 2>/dev/null')).toMatchObject({ code: 127 });
    expect(await shell().run('kill -9 $$')).toMatchObject({ kind: 'lost' });
  });

  test('much in both directions, and nothing of it is in the list of processes', async () => {
    const bytes = Buffer.alloc(3_000_000, 'x');
    const copy = await shell().run('wc -c; head -c 2000000 /dev/zero | tr "\\0" y', {
      stdin: Readable.from([bytes.subarray(0, 1_000_000), bytes.subarray(1_000_000)]),
    });
    expect(copy).toMatchObject({ code: 0 });
    const text = copy.kind === 'ended' ? copy.stdout : '';
    expect(text.replace(/^\s+/, '')).toBe(`3000000\n${'y'.repeat(2_000_000)}`);
    expect(await shell().run(`head -c ${OUTPUT_BYTES + 1} /dev/zero`)).toEqual({
      kind: 'lost',
      reason: `it printed more than ${OUTPUT_BYTES} bytes`,
    });
    const shown = await shell().run(': hunter42; ps -ef | grep -c "[h]unter42"; :');
    expect(shown).toMatchObject({ code: 0, stdout: '0\n' });
  });

  test('what stays in the background does not hold it up; what is too slow is lost', async () => {
    const begun = performance.now();
    const left = await shell().run('sleep 30 & echo $!');
    expect(performance.now() - begun).toBeLessThan(5000);
    process.kill(Number(left.kind === 'ended' && left.stdout));
    expect(await shell().run('sleep 5', { timeoutMs: 300 })).toMatchObject({
      kind: 'lost',
      reason: expect.stringContaining('no end within'),
    });
    const many = Array.from({ length: 2 * SESSIONS_AT_ONCE }, (_, n) => n);
    const answers = await Promise.all(many.map((n) => shell().run(`echo ${n}; exit ${n}`)));
    expect(answers).toEqual(
      answers.map((_, n) => ({ kind: 'ended', code: n, stdout: `${n}\n`, stderr: '' })),
    );
  });
});

describe.runIf(here)('a connection', () => {
  test('is one for all commands, and is made again when it breaks', async () => {
    const logins = (): number => host.log().match(/Accepted publickey/g)?.length ?? 0;
    const shell = open();
    const before = logins();
    for (const n of [1, 2, 3]) expect(await shell.run(`exit ${n}`)).toMatchObject({ code: n });
    expect(logins() - before).toBe(1);
    const running = shell.run('echo begun >begun; sleep 30');
    await until('it runs', () => existsSync(path.join(host.home, 'begun')));
    await host.stop();
    expect(await running).toMatchObject({ kind: 'lost' });
    expect(await shell.run('true')).toMatchObject({
      kind: 'unreachable',
      problem: 'network',
      reason: expect.stringMatching(/127\.0\.0\.1:\d+: nothing listens there/),
    });
    await host.start();
    await until('it is back', async () => (await shell.run('true')).kind === 'ended');
  });

  test('words of a login shell are not output; other shells than sh do', async () => {
    host.setLogin('echo Welcome; echo Maintenance on Monday >&2');
    expect(await open().run('echo hello')).toMatchObject({ code: 0, stdout: 'hello\n' });
    host.setLogin('exec fish -c "$SSH_ORIGINAL_COMMAND"');
    expect(await open().run("echo 'it is' fine\nexit 3")).toMatchObject({ code: 3 });
    host.setLogin('exec busybox sh -c "$SSH_ORIGINAL_COMMAND"');
    expect(await open().run('read a; cat', { stdin: 'one\ntwo\n' })).toMatchObject({
      code: 0,
      stdout: 'two\n',
    });
    host.setLogin('exit 1');
    expect(await open().run('true')).toMatchObject({ kind: 'unreachable' });
    host.setLogin('');
  });

  test('through a jump host, whose key is checked as well', async () => {
    const jump = await servers.host('jump');
    const proxyJump = `${servers.user}@127.0.0.1:${jump.port}`;
    expect(await open({ proxyJump }).run('echo $HOME')).toMatchObject({
      stdout: `${host.home}\n`,
    });
    await jump.changeKey();
    expect(await open({ proxyJump }).run('true')).toMatchObject({
      kind: 'unreachable',
      problem: 'host-key',
    });
    servers.trust();
  });

  test('every way to be turned away has a name, and what to try', async () => {
    const file = (name: string, text: string, mode: number): string => {
      writeFileSync(path.join(servers.folder, name), text, { mode });
      return path.join(servers.folder, name);
    };
    const stranger = path.join(servers.folder, 'stranger');
    spawnSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', stranger]);
    const open600 = file('open', readFileSync(servers.keyFile, 'utf8'), 0o644);
    const cases: [Partial<SshDestination>, string, RegExp][] = [
      [{ keyFile: stranger }, 'credentials', /it does not take the key .*stranger/],
      [{ keyFile: open600 }, 'credentials', /readable by others: chmod 600/],
      [{ keyFile: '/no/such/key' }, 'credentials', /no\/such\/key/],
      [{ keyFile: file('text', 'not a key\n', 0o600) }, 'credentials', /is not a private key/],
      [{ knownHostsFile: file('none', '', 0o600) }, 'host-key', /is not in .*ssh-keyscan -p/],
      [{ host: 'no-such-host.invalid' }, 'network', /no-such-host.invalid is not known/],
      [{ port: 1 }, 'network', /nothing listens/],
    ];
    for (const [more, problem, reason] of cases) {
      const result = await open(more).run('true');
      expect(result).toMatchObject({ kind: 'unreachable', problem });
      expect(result).toMatchObject({ reason: expect.stringMatching(reason) });
    }
    await host.changeKey();
    expect(await open().run('true')).toMatchObject({
      problem: 'host-key',
      reason: expect.stringMatching(/is not the one in .*known_hosts.*somebody may be in between/),
    });
    servers.trust();
    expect(await open().run('true')).toMatchObject({ code: 0 });
  });

  test('nothing of it is left behind', async () => {
    vi.stubEnv('TMPDIR', servers.folder);
    const folders = (): string[] =>
      readdirSync(servers.folder).filter((name) => name.startsWith('drover-ssh-'));
    const shell = open();
    await shell.run('true');
    const [folder = ''] = folders();
    expect(statSync(path.join(servers.folder, folder)).mode & 0o777).toBe(0o700);
    await shell.close();
    vi.unstubAllEnvs();
    expect(folders()).toEqual([]);
    expect(await shell.run('true')).toMatchObject({ kind: 'unreachable' });
  });

  test('it ends with a controller that is killed', async () => {
    const source = path.resolve(import.meta.dirname, '../../src');
    const code = `
      const { createSshShell } = await import('${source}/providers/remote/sshShell.ts');
      const { systemClock: clock } = await import('${source}/lib/clock.ts');
      const { systemRandom: random } = await import('${source}/lib/random.ts');
      const { silentLog: log } = await import('${source}/lib/log.ts');
      const destination = ${JSON.stringify(destination())};
      const shell = createSshShell({ destination, clock, random, log });
      console.log((await shell.run('echo open')).stdout);
      setInterval(() => {}, 1000);`;
    const env = { TMPDIR: servers.folder };
    const child = startProcess([process.execPath, '-e', code], { cwd: servers.folder, env });
    await until('it is connected', () => child.output().includes('open'));
    const sockets = `${servers.folder}/drover-ssh-`;
    expect(processesOf([sockets]).length).toBeGreaterThan(0);
    await child.stop('SIGKILL');
    await until('its ssh has ended', () => processesOf([sockets]).length === 0);
  });
});
