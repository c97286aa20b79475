/** Two machines, one of which has a large input already: jobs that need it go there. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Client } from '../../src/protocol/sdk.ts';
import type { SubmittedSpec } from '../../src/protocol/jobSpec.ts';
import { DROVER, type } from '../support/journey.ts';
import { startServer, type TestServer } from '../support/server.ts';

const SIZE = 3 * 1024 * 1024;
const folder = mkdtempSync(path.join(tmpdir(), 'drover-held-'));
let server: TestServer;
let blob: string;
let tree: string;
beforeAll(async () => {
  server = await startServer({ env: { DROVER_LEASES_LONG_POLL_MS: '1000' } });
  for (const name of ['one', 'two']) server.agent(name, { resources: 'cpus=4,mem=1Gi' });
  await server.online(2);
  const { url, token } = server;
  writeFileSync(path.join(folder, 'large'), Buffer.alloc(SIZE, 'x'));
  blob = await new Client({ url, token }).upload(path.join(folder, 'large'));
  mkdirSync(path.join(folder, 'set'));
  writeFileSync(path.join(folder, 'set', 'part'), Buffer.alloc(SIZE, 'y'));
  const env = { HOME: folder, DROVER_URL: url, DROVER_TOKEN: token };
  const put = await type(DROVER, ['data', 'put', path.join(folder, 'set')], { env }).ended;
  expect([put.code, put.stderr]).toEqual([0, '']);
  tree = 'data:set';
});
afterAll(async () => {
  await server.close();
  rmSync(folder, { recursive: true });
});

async function ranOn(spec: Partial<SubmittedSpec>): Promise<string> {
  const job = await server.submit({ command: ['true'], ...spec });
  expect(await server.ended(job)).toMatchObject({ state: 'SUCCEEDED' });
  const [attempt] = await server.attempts(job);
  const { items } = await server.client.listWorkers({});
  return items.find(({ id }) => id === attempt?.worker)?.name ?? '';
}

const inputs = (uri: string) => [{ name: 'data', uri }];
const only = (name: string): SubmittedSpec['placement'] => ({
  constraints: [{ attribute: 'name', operator: 'EQ', values: [name] }],
});

test('a job with a large input goes to the machine that has it', async () => {
  const usual = await ranOn({});
  const other = usual === 'one' ? 'two' : 'one';
  expect(await ranOn({ inputs: inputs(blob), placement: only(other) })).toBe(other);
  expect(await ranOn({ inputs: inputs(tree), placement: only(other) })).toBe(other);
  for (const uri of [blob, tree, blob]) expect(await ranOn({ inputs: inputs(uri) })).toBe(other);
  // Not worth a wait: it goes where there is room.
  const busy = await server.running({
    command: ['sleep', '100'],
    resources: { cpuMillis: 4000 },
    placement: only(other),
  });
  expect(await ranOn({ inputs: inputs(blob) })).toBe(usual);
  await server.client.cancelJob(busy.job);
  await server.ended(busy.job);
});

test('also after the controller was restarted', async () => {
  const fresh = path.join(folder, 'fresh');
  writeFileSync(fresh, Buffer.alloc(SIZE, 'z'));
  const { url, token } = server;
  const uri = await new Client({ url, token }).upload(fresh);
  const usual = await ranOn({});
  const other = usual === 'one' ? 'two' : 'one';
  expect(await ranOn({ inputs: inputs(uri), placement: only(other) })).toBe(other);
  await server.stop();
  await server.start();
  await server.online(2);
  // Each says what it has with the second sync that the new controller answers.
  await new Promise((resolve) => setTimeout(resolve, 2500));
  expect(await ranOn({ inputs: inputs(uri) })).toBe(other);
});
