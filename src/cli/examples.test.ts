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

async function allSubmitted(file: string) {
  const options = { url: fake.url, cwd: EXAMPLES };
  expect(await capture(['submit', '-f', file], options)).toMatchObject({ code: 0, stderr: '' });
  return [...fake.jobs.values()].map((job) => jobSpec.parse(job.spec));
}

async function submitted(file: string) {
  const specs = await allSubmitted(file);
  expect(specs).toHaveLength(1);
  return specs[0]!;
}

test.each(readdirSync(EXAMPLES).filter((name) => name.endsWith('.yaml')))(
  '%s is a job the API takes',
  async (file) => {
    for (const spec of await allSubmitted(file)) expect(spec.command.length).toBeGreaterThan(0);
  },
);

test('array.yaml has a hundred tasks', async () => {
  const { shape } = await submitted('array.yaml');
  expect(shape).toMatchObject({ kind: 'array', indices: { length: 100 } });
});

test('constraint.yaml tests workers, and would rather have some', async () => {
  const { constraints } = (await submitted('constraint.yaml')).placement;
  expect(constraints).toEqual([
    { attribute: 'pool', operator: 'EQ', values: ['default'], preferred: false },
    { attribute: 'name', operator: 'NE', values: ['the-old-one'], preferred: false },
    { attribute: 'disk', operator: 'IN', values: ['nvme', 'ssd'], preferred: true },
  ]);
});

test('the jobs of chain.yaml wait for each other, by name', async () => {
  const specs = await allSubmitted('chain.yaml');
  expect(specs.map(({ name, after }) => [name, after])).toEqual([
    ['prepare', []],
    ['train', [{ job: 'prepare', when: 'ok' }]],
    ['report', [{ job: 'train', when: 'any' }]],
  ]);
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
