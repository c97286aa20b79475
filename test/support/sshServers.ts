/**
 * Real sshds on loopback: each is a host of its own, with its own key, port and home folder. Who
 * logs in is the user that runs the tests; a script of the host's stands between, so that a host
 * can lack things.
 */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { writeFileSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import path from 'node:path';
import { freePort } from './postgres.ts';
import { programsAreHere } from './programs.ts';
import { until } from './wait.ts';

const SSHD = '/usr/sbin/sshd';

/** Said out loud where it is missing. */
export function sshdIsHere(): boolean {
  const client = 'openssh-client';
  const programs = { ssh: client, 'ssh-keygen': client };
  if (existsSync(SSHD)) return programsAreHere(programs);
  return programsAreHere({ ...programs, sshd: 'openssh-server' });
}

export interface SshHost {
  name: string;
  port: number;
  home: string;
  /** What stands between sshd and the command; changed while it runs, the next login has it. */
  setLogin(lines: string): void;
  start(): Promise<void>;
  /** Also the connections it has: each is a process of its own. */
  stop(): Promise<void>;
  /** Another key for the host, as after a reinstallation. */
  changeKey(): Promise<void>;
  /** What it said. */
  log(): string;
}

export interface SshServers {
  folder: string;
  user: string;
  keyFile: string;
  knownHostsFile: string;
  host(name: string): Promise<SshHost>;
  /** Writes the keys of all hosts to the known_hosts file. */
  trust(): void;
  close(): Promise<void>;
}

export function startSshServers(): SshServers {
  const folder = mkdtempSync(path.join(tmpdir(), 'drover-sshd-'));
  const keyFile = path.join(folder, 'id');
  keygen(keyFile);
  const knownHostsFile = path.join(folder, 'known_hosts');
  writeFileSync(knownHostsFile, '');
  // Its privileged half insists on an empty folder.
  if (process.getuid?.() === 0) mkdirSync('/run/sshd', { recursive: true, mode: 0o755 });
  const hosts: (SshHost & { key: string })[] = [];
  const trust = (): void => {
    const lines = hosts.map(({ port, key }) => `[127.0.0.1]:${port} ${publicHalf(key)}`);
    writeFileSync(knownHostsFile, `${lines.join('\n')}\n`);
  };
  return {
    folder,
    user: userInfo().username,
    keyFile,
    knownHostsFile,
    trust,
    async host(name) {
      const host = createHost(path.join(folder, name), name, await freePort(), keyFile);
      hosts.push(host);
      await host.start();
      trust();
      return host;
    },
    async close() {
      await Promise.all(hosts.map((host) => host.stop()));
      rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
    },
  };
}

function createHost(folder: string, name: string, port: number, keyFile: string) {
  const [home, key] = [path.join(folder, 'home'), path.join(folder, 'host_key')];
  const [config, login] = [path.join(folder, 'sshd_config'), path.join(folder, 'login')];
  mkdirSync(home, { recursive: true });
  keygen(key);
  writeFileSync(config, configText({ port, key, keyFile, login }));
  let sshd: ChildProcess | undefined;
  let said = '';
  const host: SshHost & { key: string } = {
    name,
    port,
    home,
    key,
    log: () => said,
    setLogin(lines) {
      const run = 'exec /bin/sh -c "$SSH_ORIGINAL_COMMAND"';
      const text = `#!/bin/sh\nexport HOME='${home}'\ncd\n${lines}\n${run}\n`;
      writeFileSync(login, text);
      chmodSync(login, 0o755);
    },
    async start() {
      sshd = spawn(SSHD, ['-D', '-e', '-f', config], {
        stdio: ['ignore', 'ignore', 'pipe'],
        detached: true,
      });
      sshd.stderr?.on('data', (chunk: Buffer) => (said += chunk.toString()));
      const from = said.length;
      await until(`sshd ${name} listens: ${said}`, () =>
        said.slice(from).includes('Server listening'),
      );
    },
    async stop() {
      if (!sshd?.pid || sshd.exitCode !== null || sshd.signalCode !== null) return;
      for (const pid of [sshd.pid, ...childrenOf(sshd.pid)]) endProcess(pid);
      await until(`sshd ${name} is gone`, () => sshd?.signalCode ?? sshd?.exitCode !== null);
    },
    async changeKey() {
      await host.stop();
      rmSync(key);
      keygen(key);
      await host.start();
    },
  };
  host.setLogin('');
  return host;
}

interface ConfigFiles {
  port: number;
  key: string;
  keyFile: string;
  login: string;
}

function configText({ port, key, keyFile, login }: ConfigFiles): string {
  return `
ListenAddress 127.0.0.1:${port}
HostKey ${key}
PidFile none
AuthorizedKeysFile ${keyFile}.pub
StrictModes no
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
MaxStartups 100
ForceCommand ${login}
# A bash of the tester's must not read its own .bashrc first.
SetEnv SHLVL=5
`;
}

function keygen(file: string): void {
  const made = spawnSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', file], {
    input: 'y\n',
  });
  if (made.status !== 0) throw new Error(`ssh-keygen: ${made.stderr.toString()}`);
}

function publicHalf(key: string): string {
  return readFileSync(`${key}.pub`, 'utf8').split(' ').slice(0, 2).join(' ');
}

/** Those of each of its connections: sshd-session, and what it runs as the user. */
function childrenOf(pid: number): number[] {
  const found = spawnSync('ps', ['-o', 'pid=', '--ppid', String(pid)]).stdout.toString();
  const own = found.split('\n').map(Number).filter(Boolean);
  return [...own, ...own.flatMap((child) => childrenOf(child))];
}

function endProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
