/**
 * A real podman in a folder of its own, with an image made of busybox and a registry that asks for
 * a password. Nothing of it touches the machine's own images.
 */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import { until } from './journey.ts';

export const LOGIN = { user: 'student', password: 'open-the-registry-7' };
const APPLETS = ['sh', 'sleep', 'cat', 'ls', 'id', 'env', 'df', 'touch', 'kill', 'pwd', 'test'];

export interface Podman {
  /** For the agent: where this podman has its things. */
  env: Record<string, string>;
  /** Made here, in no registry. */
  image: string;
  /** `127.0.0.1:PORT`; `box:1` is in it, for those who know the password. */
  registry: string;
  run(...args: string[]): string;
  close(): void;
}

/** Why there is none, or undefined. */
export function missingPodman(): string | undefined {
  const needed = ['/usr/bin/podman', '/usr/bin/docker-registry', '/bin/busybox'];
  const missing = needed.filter((file) => !existsSync(file));
  return missing.length > 0 ? `${missing.join(', ')}: run make system-packages` : undefined;
}

export async function startPodman(folder: string): Promise<Podman> {
  const port = await freePort();
  const registry = `127.0.0.1:${port}`;
  const env = writeSettings(folder, registry);
  const run = (...args: string[]): string =>
    execFileSync('podman', args, { env: { ...process.env, ...env }, encoding: 'utf8' });
  const image = 'localhost/box:1';
  run('import', '--quiet', makeRoot(folder), image);
  const server = startRegistry(folder, port);
  await until('the registry answers', async () => (await fetch(`http://${registry}/v2/`)).status);
  const auth = path.join(folder, 'push.json');
  const { user, password } = LOGIN;
  const login = Buffer.from(`${user}:${password}`).toString('base64');
  writeFileSync(auth, JSON.stringify({ auths: { [registry]: { auth: login } } }));
  run('push', '--quiet', '--authfile', auth, image, `${registry}/box:1`);
  return {
    env,
    image,
    registry,
    run,
    close() {
      server.kill();
      run('rm', '-f', '--all');
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function writeSettings(folder: string, registry: string): Record<string, string> {
  const at = (name: string): string => path.join(folder, name);
  mkdirSync(folder, { recursive: true });
  const places = `runroot = "${at('run')}"\ngraphroot = "${at('graph')}"\n`;
  const storage = `[storage]\ndriver = "vfs"\n${places}`;
  writeFileSync(at('storage.conf'), storage);
  // Limits that a machine without CAP_SYS_RESOURCE can still set; runc, since crun takes no
  // machine with both kinds of cgroups.
  const containers =
    '[containers]\ndefault_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]\n' +
    '[engine]\nruntime = "runc"\ncgroup_manager = "cgroupfs"\n';
  writeFileSync(at('containers.conf'), containers);
  writeFileSync(at('registries.conf'), `[[registry]]\nlocation = "${registry}"\ninsecure = true\n`);
  return {
    CONTAINERS_STORAGE_CONF: at('storage.conf'),
    CONTAINERS_CONF: at('containers.conf'),
    CONTAINERS_REGISTRIES_CONF: at('registries.conf'),
  };
}

function makeRoot(folder: string): string {
  const root = path.join(folder, 'root');
  for (const name of ['bin', 'tmp', 'app']) mkdirSync(path.join(root, name), { recursive: true });
  copyFileSync('/bin/busybox', path.join(root, 'bin', 'busybox'));
  for (const name of APPLETS) symlinkSync('busybox', path.join(root, 'bin', name));
  const tar = path.join(folder, 'root.tar');
  execFileSync('tar', ['-cf', tar, '-C', root, '.']);
  return tar;
}

function startRegistry(folder: string, port: number): ChildProcess {
  const at = (name: string): string => path.join(folder, name);
  const salt = `$2y$05$${'a'.repeat(21)}.`;
  const crypt = ['-e', 'print crypt($ARGV[0], $ARGV[1])', LOGIN.password, salt];
  writeFileSync(
    at('htpasswd'),
    `${LOGIN.user}:${execFileSync('perl', crypt, { encoding: 'utf8' })}`,
  );
  const settings = {
    version: 0.1,
    log: { level: 'error' },
    storage: { filesystem: { rootdirectory: at('registry') } },
    http: { addr: `127.0.0.1:${port}` },
    auth: { htpasswd: { realm: 'test', path: at('htpasswd') } },
  };
  writeFileSync(at('registry.yml'), JSON.stringify(settings));
  return spawn('docker-registry', ['serve', at('registry.yml')], { stdio: 'ignore' });
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}
