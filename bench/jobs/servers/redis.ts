/** Redis from the system's packages, on loopback, with an append-only file. */
import { execFileSync } from 'node:child_process';
import { freePort } from '../support/ports.ts';
import { start } from '../support/processes.ts';

export interface RedisServer {
  port: number;
  close(): Promise<void>;
}

export async function startRedis(
  directory: string,
  fsync: 'always' | 'everysec',
): Promise<RedisServer> {
  requireRedis();
  const port = await freePort();
  const settings = {
    bind: '127.0.0.1',
    port: String(port),
    dir: directory,
    save: '',
    appendonly: 'yes',
    appendfsync: fsync,
    'maxmemory-policy': 'noeviction',
  };
  const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
  const child = start('redis-server', args);
  await child.line('Ready to accept connections');
  return { port, close: () => child.stop() };
}

function requireRedis(): void {
  try {
    execFileSync('redis-server', ['--version'], { stdio: 'ignore' });
    return;
  } catch {
    // Not there: try the package, below.
  }
  process.stderr.write('  redis-server is missing; installing the package of that name\n');
  try {
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
    const args = ['install', '-y', '--no-install-recommends', 'redis-server'];
    execFileSync('apt-get', args, { stdio: 'ignore', env });
  } catch (error) {
    throw new Error(
      'redis-server is not here and apt-get could not install it; install it as root, or leave ' +
        'BullMQ out with --systems',
      { cause: error },
    );
  }
}
