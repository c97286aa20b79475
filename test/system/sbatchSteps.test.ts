/** The nodes of a batch job come together, and nobody else gets in between. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect, createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { until } from '../support/journey.ts';

const STEPS = path.resolve(import.meta.dirname, '../../src/cli/sbatch/runtime/steps.py');

let folder: string;
let port: number;
const started: ChildProcess[] = [];
beforeEach(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'drover-steps-'));
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  ({ port } = server.address() as AddressInfo);
  server.close();
  await once(server, 'close');
});
afterEach(() => {
  for (const child of started.splice(0)) child.kill('SIGKILL');
  rmSync(folder, { recursive: true });
});

function start(role: 'hub' | 'member', rank: number, token = 'right') {
  const env = {
    PATH: process.env['PATH'],
    PYTHONDONTWRITEBYTECODE: '1',
    DROVER_SBATCH_DIR: folder,
    DROVER_GANG_TOKEN: token,
    SLURM_NNODES: '2',
    MASTER_ADDR: '127.0.0.1',
    MASTER_PORT: String(port),
    RANK: String(rank),
  };
  const child = spawn('python3', ['-u', STEPS, role], { env, stdio: ['pipe', 'ignore', 'pipe'] });
  started.push(child);
  let stderr = '';
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  const ended = once(child, 'close').then(([code]) => ({ code: code as number, stderr }));
  return { child, ended, stderr: () => stderr };
}

/** Whoever is turned away is hung up on. */
function expectReset(error: NodeJS.ErrnoException): void {
  expect(['ECONNRESET', 'EPIPE']).toContain(error.code);
}

test('strangers are turned away, members meet, and all end when the script has', async () => {
  const hub = start('hub', 0);
  await until('it listens', async () => {
    const stranger = connect(port, '127.0.0.1');
    await once(stranger, 'connect');
    stranger.on('error', expectReset);
    stranger.end('let me in');
    return true;
  });
  const wrong = await start('member', 1, 'wrong').ended;
  expect(wrong).toMatchObject({ code: 1, stderr: expect.stringContaining('is not of this gang') });
  expect(existsSync(path.join(folder, 'nodes'))).toBe(false);
  const member = start('member', 1);
  await until('both are there', () => existsSync(path.join(folder, 'nodes')));
  const nodes = readFileSync(path.join(folder, 'nodes'), 'utf8').trim().split('\n');
  expect(nodes).toHaveLength(2);
  hub.child.stdin.end();
  expect(await hub.ended).toMatchObject({ code: 0 });
  expect(await member.ended).toEqual({ code: 0, stderr: '' });
  expect(hub.stderr()).toContain('turned away');
});

test('a first node that knows no token is told nothing and runs nothing', async () => {
  const impostor = createServer((socket) => {
    socket.on('error', expectReset);
    // The length and the words of a challenge, as Python sends it.
    socket.write(Buffer.concat([Buffer.from([0, 0, 0, 31]), Buffer.from(CHALLENGE)]));
    socket.on('data', () =>
      socket.write(Buffer.concat([WELCOME_LENGTH, Buffer.from('#WELCOME#')])),
    );
  }).listen(port, '127.0.0.1');
  const { code, stderr } = await start('member', 1).ended;
  expect([code, stderr]).toEqual([1, expect.stringContaining('is not of this gang')]);
  impostor.close();
});

const CHALLENGE = `#CHALLENGE#${'x'.repeat(20)}`;
const WELCOME_LENGTH = Buffer.from([0, 0, 0, 9]);

test('a first node that is gone ends its members', async () => {
  const hub = start('hub', 0);
  const member = start('member', 1);
  await until('both are there', () => existsSync(path.join(folder, 'nodes')));
  hub.child.kill('SIGKILL');
  expect(await member.ended).toEqual({ code: 1, stderr: 'drover: the first node is gone\n' });
});
