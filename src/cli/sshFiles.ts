/** Keys and known hosts of `drover ssh`, in the data folder, and the options that name them. */
import { execFile } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { UsageError } from './args.ts';
import type { Connection } from './connection.ts';
import type { Environment } from './environment.ts';

export interface SshFiles {
  folder: string;
  /** `ssh-ed25519 AAAA…`, without the comment. */
  publicKey: string;
}

const PREFIX = 'drover-';

export function hostName(id: string): string {
  return id.startsWith(PREFIX) ? id : `${PREFIX}${id}`;
}

export function taskOfHost(host: string): string {
  return host.startsWith(PREFIX) ? host.slice(PREFIX.length) : host;
}

/** Makes the key on first use; no other key is ever offered to a task or taken by it. */
export async function prepareSshFiles(env: Environment): Promise<SshFiles> {
  const folder = folderOf(env);
  mkdirSync(path.join(folder, 'hosts'), { recursive: true, mode: 0o700 });
  const key = path.join(folder, 'id_ed25519');
  if (!existsSync(key)) await makeKey(key);
  chmodSync(key, 0o600);
  const [type, data] = readFileSync(`${key}.pub`, 'utf8').trim().split(' ');
  return { folder, publicKey: `${type} ${data}` };
}

async function makeKey(key: string): Promise<void> {
  // Several may start at once: each makes one of its own, and the last to rename wins whole.
  const fresh = `${key}.${process.pid}`;
  try {
    const args = ['-q', '-t', 'ed25519', '-N', '', '-C', 'drover', '-f', fresh];
    await promisify(execFile)('ssh-keygen', args);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    throw new UsageError('there is no ssh-keygen on this machine', 'install openssh-client');
  }
  renameSync(`${fresh}.pub`, `${key}.pub`);
  renameSync(fresh, key);
}

/** One file for each host, because several sessions may begin at once. */
export function rememberHost(files: SshFiles, host: string, hostKey: string): void {
  const file = path.join(files.folder, 'hosts', host);
  const fresh = `${file}.${process.pid}`;
  writeFileSync(fresh, `${host} ${hostKey}\n`, { mode: 0o600 });
  renameSync(fresh, file);
}

/** As `ssh -o NAME=VALUE` and as lines of ssh_config. */
export function sshOptions(connection: Connection, env: Environment): Record<string, string> {
  const folder = folderOf(env);
  return {
    ProxyCommand: proxyCommand(connection, env),
    User: 'drover',
    IdentityFile: quoted(path.join(folder, 'id_ed25519')),
    IdentitiesOnly: 'yes',
    UserKnownHostsFile: quoted(path.join(folder, 'hosts', '%n')),
    GlobalKnownHostsFile: '/dev/null',
    StrictHostKeyChecking: 'yes',
    CheckHostIP: 'no',
    UpdateHostKeys: 'no',
    ForwardAgent: 'no',
    ServerAliveInterval: '30',
  };
}

export function sshConfig(connection: Connection, env: Environment): string {
  const lines = Object.entries(sshOptions(connection, env)).map(
    ([name, value]) => `  ${name} ${value}\n`,
  );
  return `Host ${PREFIX}*\n${lines.join('')}`;
}

/** The same program and server again; the token is found as always, never written down here. */
function proxyCommand(connection: Connection, env: Environment): string {
  // A program of one file is its own script.
  const program = new Set([process.execPath, path.resolve(process.argv[1] ?? '')]);
  const data = env['DROVER_DATA'];
  const { caFile } = connection.tls;
  const words = [
    ...(data ? ['env', `DROVER_DATA=${path.resolve(data)}`] : []),
    ...program,
    'ssh',
    '--proxy',
    '--url',
    connection.url,
    ...(caFile ? ['--ca-file', path.resolve(caFile)] : []),
  ];
  return `${words.map(shellWord).join(' ')} %n`;
}

/** For the shell that ssh starts; a percent sign is ssh's own. */
function shellWord(word: string): string {
  const plain = word.replaceAll('%', '%%');
  return /^[\w@%+=:,./-]+$/.test(plain) ? plain : `'${plain.replaceAll("'", `'\\''`)}'`;
}

function quoted(text: string): string {
  return /\s/.test(text) ? `"${text}"` : text;
}

function folderOf(env: Environment): string {
  const home = env['HOME'] || homedir();
  return path.resolve(env['DROVER_DATA'] || path.join(home, '.drover'), 'ssh');
}
