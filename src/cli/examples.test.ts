/** The files in examples/ are jobs the API takes, and do what they say. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { jobSpec } from '../protocol/jobSpec.ts';
import { capture } from './captured.ts';
import { startFakeServer, type FakeServer } from './fakeServer.ts';

const EXAMPLES = path.resolve(import.meta.dirname, '../../examples');

let fake: FakeServer;
beforeEach(async () => {
  fake = await startFakeServer();
});
afterEach(() => fake.close());

async function submitted(file: string) {
  const options = { url: fake.url, cwd: EXAMPLES };
  expect(await capture(['submit', '-f', file], options)).toMatchObject({ code: 0, stderr: '' });
  return jobSpec.parse([...fake.jobs.values()].at(-1)!.spec);
}

test.each(readdirSync(EXAMPLES).filter((name) => name.endsWith('.yaml')))(
  '%s is a job the API takes',
  async (file) => {
    expect((await submitted(file)).command.length).toBeGreaterThan(0);
  },
);

test('array.yaml has a hundred tasks', async () => {
  const { shape } = await submitted('array.yaml');
  expect(shape).toMatchObject({ kind: 'array', indices: { length: 100 } });
});

test('the members of gang.yaml find each other', async () => {
  const { command, shape } = await submitted('gang.yaml');
  const size = shape.kind === 'gang' ? shape.size : 0;
  const port = await freePort();
  const ranks = Array.from({ length: size }, (_, rank) => rank);
  const outputs = await Promise.all(ranks.map((rank) => runMember(command, rank, size, port)));
  expect(outputs).toEqual([
    'rank 0 met ranks [1, 2, 3]\n',
    ...[1, 2, 3].map((rank) => `rank ${rank} of 4 heard: all 4 of us\n`),
  ]);
});

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

async function runMember([program, ...args]: string[], rank: number, size: number, port: number) {
  const member = { RANK: `${rank}`, WORLD_SIZE: `${size}`, MASTER_PORT: `${port}` };
  const env = { PATH: process.env['PATH'], MASTER_ADDR: '127.0.0.1', ...member };
  const child = spawn(program!, args, { env, stdio: ['ignore', 'pipe', 'inherit'] });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  await once(child, 'close');
  return output;
}
