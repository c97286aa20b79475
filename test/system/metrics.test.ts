/** What is measured of jobs, with real processes: no line lost or doubled, and idle devices. */
import { execFile } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test as each } from 'vitest';
import type { MetricSample } from '../../src/protocol/metrics.ts';
import { gate, shell } from '../support/jobs.ts';
import { DROVER } from '../support/processes.ts';
import { startServer, type TestAgent, type TestServer } from '../support/server.ts';
import { until } from '../support/wait.ts';

const SAMPLE_MS = 200;
const GPU = { cpuMillis: 100, device: { models: ['fake'] } };

let server: TestServer;
let agents: { plain: TestAgent };
let devicePercent: (percent: number | string) => void;
beforeAll(async () => {
  server = await startServer({
    env: {
      DROVER_AGENT_METRICS_MS: String(SAMPLE_MS),
      DROVER_IDLE_DEVICES_FOR_MS: '1500',
      DROVER_IDLE_DEVICES_ACTION: 'warn',
    },
  });
  const tools = path.join(server.root, 'tools');
  const file = path.join(tools, 'percent');
  mkdirSync(tools);
  devicePercent = (percent) => writeFileSync(file, String(percent));
  devicePercent(90);
  const script = path.join(tools, 'nvidia-smi');
  writeFileSync(
    script,
    '#!/bin/sh\ncase "$1" in --query-gpu=index,utilization.gpu*) ' +
      `echo "0, $(cat ${file}), 2048";; esac\n`,
  );
  chmodSync(script, 0o755);
  // Its device cannot be measured: there is no nvidia-smi.
  const plain = server.agent('plain', { resources: 'cpus=8,mem=2Gi,gpus=1:mute' });
  server.agent('devices', {
    resources: 'cpus=8,mem=2Gi,gpus=1:fake',
    env: { PATH: `${tools}:${process.env['PATH']}` },
  });
  agents = { plain };
  await server.online(2);
});
afterAll(() => server.close());

const test = each.concurrent;

async function drover(...args: string[]): Promise<string> {
  const env = { PATH: process.env['PATH'], DROVER_URL: server.url, DROVER_TOKEN: server.token };
  const run = promisify(execFile)(DROVER, args, { env: { ...env, HOME: server.root } });
  return (await run).stdout;
}

const get = async (url: string, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(`${server.url}/v1/jobs/${url}`, {
    headers: { authorization: `Bearer ${server.token}`, ...headers },
  });

/** Events of a stream until it ends, or until so many of them have come. */
async function events(url: string, headers: Record<string, string>, most = Infinity) {
  const found: { id: number; samples: MetricSample[] }[] = [];
  const response = await get(url, headers);
  let text = '';
  for await (const chunk of response.body!) {
    text += Buffer.from(chunk).toString();
    const blocks = text.split('\n\n');
    text = blocks.pop() ?? '';
    for (const block of blocks) {
      const id = Number(/^id: (\d+)$/m.exec(block)?.[1]);
      const data = /^event: metrics\ndata: (.*)$/m.exec(block)?.[1];
      if (data) found.push({ id, samples: JSON.parse(data) as MetricSample[] });
      if (found.length >= most || block.includes('event: end')) return found;
    }
  }
  return found;
}

test('its own and what is seen of it, over a killed agent: each line once', async () => {
  const agent = agents.plain;
  const go = gate(server, 'metrics');
  const burn =
    'i=0; while [ $i -lt 40 ]; do i=$((i+1)); ' +
    'echo "{\\"step\\": $i, \\"loss\\": $i}" >>"$DROVER_METRICS_FILE"; ' +
    '[ $i -eq 20 ] && { echo half way; ' +
    `${go.wait}; }; n=0; while [ $n -lt 30000 ]; do n=$((n+1)); done; done; ` +
    `printf '{"step": 99, "loss": null, "done": 1, "system.cpuPercent": 5, "word": "x"}\\n` +
    'no json\\n\' >>"$DROVER_METRICS_FILE"; sleep 0.5; ' +
    'printf \'{"last": 7}\' >>"$DROVER_METRICS_FILE"';
  const resources = { cpuMillis: 100, device: { models: ['mute'] } };
  const { job, attempt } = await server.running(shell(burn, { resources }));
  expect(attempt.n).toBe(1);
  const following = events(`${job}/metrics/stream?name=loss`, {});
  await until('half of it has come in', async () => {
    const series = await server.client.metrics(job);
    const isMeasured = series.some(({ name }) => name === 'system.cpuPercent');
    return isMeasured && series.find(({ name }) => name === 'loss')?.count === 20;
  });
  await agent.kill();
  go.open();
  agent.start();
  expect(await server.ended(job)).toMatchObject({ state: 'SUCCEEDED' });

  const streamed = (await following).flatMap(({ samples }) => samples);
  expect(streamed.map(({ step }) => step)).toEqual([
    ...Array.from({ length: 40 }, (_, i) => i + 1),
    99,
  ]);
  expect(streamed.at(-1)!.values).toEqual({ loss: null });

  const series = await server.client.metrics(job, { maxPoints: 10 });
  const byName = new Map(series.map((one) => [one.name, one]));
  const loss = byName.get('loss')!;
  expect(loss).toMatchObject({
    task: `${job}.0`,
    count: 40,
    min: 1,
    max: 40,
    last: 40,
    mean: 20.5,
  });
  expect(loss.points.length).toBeLessThanOrEqual(10);
  expect(loss.points.reduce((sum, { count }) => sum + count, 0)).toBe(40);
  expect(byName.get('last')).toMatchObject({ last: 7, count: 1 });
  expect(byName.get('system.cpuPercent')!.max).toBeGreaterThan(5);
  expect(byName.get('system.memoryBytes')!.min).toBeGreaterThan(100_000);
  expect([...byName.keys()].filter((name) => name.includes('evice'))).toEqual([]);

  // A stream that breaks goes on behind the last event it had.
  const all = await events(`${job}/metrics/stream`, {});
  const begun = await events(`${job}/metrics/stream`, {}, 2);
  const rest = await events(`${job}/metrics/stream`, { 'last-event-id': String(begun[1]!.id) });
  expect([...begun, ...rest]).toEqual(all);

  const csv = await (await get(`${job}/metrics?format=csv&name=loss`)).text();
  const rows = csv.trimEnd().split('\n');
  expect(rows[0]).toBe('atMs,task,attempt,step,name,value');
  expect(rows).toHaveLength(42);
  expect(rows[40]).toMatch(new RegExp(`^\\d+,${job}\\.0,1,40,loss,40$`));
  expect(rows[41]).toMatch(/,99,loss,$/);
  const lines = (await (await get(`${job}/metrics?format=jsonl`)).text()).trimEnd().split('\n');
  expect(lines.map((line) => (JSON.parse(line) as MetricSample).attempt)).toContain(1);
  const answer = (await (await get(`${job}/metrics`)).json()) as { meta: { skipped: number } };
  expect(answer.meta.skipped).toBe(1);

  const table = await drover('metrics', job);
  expect(table).toMatch(/METRIC +LATEST +MIN +MEAN +MAX +STEP +AT +COURSE/);
  expect(table).toMatch(/loss +40 +1 +20.5 +40 +40 .*▁.*█/);
  const file = path.join(server.root, 'metrics.csv');
  await drover('metrics', job, '--name', 'loss', '--csv', file);
  expect(readFileSync(file, 'utf8')).toBe(csv);
  expect((await drover('metrics', job, '--watch', '--name', 'done')).trim()).toMatch(
    /step 99 +done=1$/,
  );
  const [ended] = await server.attempts(job);
  expect(Number(ended!.facts['used.peakMemoryBytes'])).toBeGreaterThan(100_000);
  // What is measured is no output.
  expect(await server.stdout(job)).toBe('half way\n');
});

test('examples/metrics.yaml: all it wrote is there when it has ended', async () => {
  const example = path.resolve(import.meta.dirname, '../../examples/metrics.yaml');
  const job = (await drover('submit', '-f', example)).trim();
  expect(await server.ended(job)).toMatchObject({ state: 'SUCCEEDED' });
  const series = await server.client.metrics(job);
  expect(series.map(({ name, count, last }) => [name, count, last])).toEqual([
    ['loss', 20, 50],
    ['rate', 20, 0.1],
  ]);
  expect(await drover('metrics', job)).toMatch(/loss +50 +50 .* 20 /);
});

test('a short job has nothing measured, and wrong questions are refused', async () => {
  const job = await server.submit(shell('true'));
  expect(await server.ended(job)).toMatchObject({ state: 'SUCCEEDED' });
  expect(await server.client.metrics(job)).toEqual([]);
  expect(await events(`${job}/metrics/stream`, {})).toEqual([]);
  const status = async (url: string) => (await get(url)).status;
  expect(await status(`${job}/metrics?maxPoints=0`)).toBe(400);
  expect(await status(`${job}/metrics?since=yesterday`)).toBe(400);
  expect(await status(`${job}/metrics?format=xml`)).toBe(400);
  expect(await status('jnone/metrics')).toBe(404);
  expect(await status('jnone/metrics/stream')).toBe(404);
});

test('idle devices: told once, until they work again; stopped where the job says so', async () => {
  devicePercent(90);
  const job = await server.submit(shell('exec sleep 100', { name: 'idler', resources: GPU }));
  const message = async () => (await server.attempts(job))[0]?.message ?? '';
  const idleEvents = async (id: string) =>
    (await server.client.listEvents(id, {})).items.filter(({ kind }) => kind === 'job.idle');
  await until('its devices are measured', async () => {
    const [percent] = await server.client.metrics(job, { name: 'system.devicePercent' });
    return percent?.max === 90;
  });
  devicePercent(1);
  await until('it is idle', async () => (await message()).includes('its devices are idle'));
  expect(await message()).toMatch(
    /its devices are idle: [\d.]+ % used on average for 2s, below 5 %/,
  );
  expect(await drover('why', job)).toContain('its devices are idle');
  expect(await drover('job', job)).toContain('its devices are idle');
  devicePercent(95);
  await until('it works again', async () => (await message()) === '');
  expect(await idleEvents(job)).toHaveLength(1);
  await server.client.cancelJob(job);
  await server.ended(job);

  // A device that does not tell is not idle.
  devicePercent('[N/A]');
  const quiet = await server.submit(shell('sleep 3', { resources: GPU }));
  expect(await server.ended(quiet)).toMatchObject({ state: 'SUCCEEDED' });
  expect(await idleEvents(quiet)).toEqual([]);

  devicePercent(0);
  const rules = { idle: { belowPercent: 5, forMs: 1000, action: 'stop' as const } };
  const stopped = await server.submit(
    shell('exec sleep 100', { resources: GPU, rules, retries: 3 }),
  );
  const ended = await server.ended(stopped);
  expect(ended.state).toBe('FAILED');
  expect(ended.reason).toMatch(/its devices are idle: 0 % used on average for 1s, below 5 %/);
  expect(await server.attempts(stopped)).toMatchObject([
    { n: 1, cause: 'cancelled', facts: { 'used.meanDevicePercent': '0.0' } },
  ]);
});
