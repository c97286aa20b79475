/**
 * Real S3 servers for tests, from PyPI: rclone, which checks signatures and keeps its objects as
 * files, and moto, which keeps checksums.
 */
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

export const PYTHON_PLACE = '.cache/python/s3/bin';
export const S3_KEY = 'AKIDTEST';
export const S3_SECRET = 'a/secret+with=signs';
export const S3_BUCKET = 'lab';

export interface S3Server {
  endpoint: string;
  /** rclone only: where the bucket lies as a folder. */
  bucketFolder: string;
  stop: () => Promise<void>;
}

const ADDRESS = /https?:\/\/127\.0\.0\.1:\d+/;
const START_LIMIT_MS = 60_000;

export async function startRclone(): Promise<S3Server> {
  const folder = mkdtempSync(path.join(tmpdir(), 'drover-s3-'));
  const bucketFolder = path.join(folder, S3_BUCKET);
  mkdirSync(bucketFolder);
  const key = ['--auth-key', `${S3_KEY},${S3_SECRET}`];
  // Looked at anew each time: a test takes the bucket away.
  const fresh = ['--dir-cache-time', '1ms', '--poll-interval', '0'];
  const args = ['serve', 's3', ...key, ...fresh, '--addr', '127.0.0.1:0', folder];
  const { endpoint, stop } = await start('rclone', args, { RCLONE_CONFIG: '/notfound' });
  return {
    endpoint,
    bucketFolder,
    async stop() {
      await stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export async function startMoto(): Promise<S3Server> {
  const { endpoint, stop } = await start('moto_server', ['-H', '127.0.0.1', '-p', '0'], {});
  const made = await fetch(`${endpoint}/${S3_BUCKET}`, { method: 'PUT' });
  if (!made.ok) throw new Error(`moto made no bucket: ${await made.text()}`);
  return { endpoint, bucketFolder: '', stop };
}

async function start(
  program: string,
  args: string[],
  env: Record<string, string>,
): Promise<{ endpoint: string; stop: () => Promise<void> }> {
  const command = path.resolve(PYTHON_PLACE, program);
  if (!existsSync(command)) throw new Error(`${command} is not there: make python-packages`);
  const child = spawn(command, args, { env: { PATH: process.env['PATH'], ...env } });
  // The last resort, for a test that failed before it could stop its server.
  process.once('exit', () => child.kill('SIGKILL'));
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  let output = '';
  const endpoint = await new Promise<string>((resolve, reject) => {
    const fail = (): void => reject(new Error(`${program} did not start:\n${output}`));
    const limit = setTimeout(fail, START_LIMIT_MS);
    child.once('close', fail);
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (bytes: Buffer) => {
        output += bytes.toString();
        const [found] = ADDRESS.exec(output) ?? [];
        if (!found) return;
        clearTimeout(limit);
        resolve(found);
      });
    }
  });
  const stop = async (): Promise<void> => {
    child.kill('SIGKILL');
    await ended;
  };
  return { endpoint, stop };
}
