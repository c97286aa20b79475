/**
 * A training from its five blocks to the scores of its checkpoint, on a real server. The one in
 * PyTorch is run by `make proof-torch`, which gets torch first: it is a large download.
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readEvents, type SseEvent } from '../../src/protocol/sse.ts';
import { call, type Answer } from '../support/journey.ts';
import { killPid } from '../support/processes.ts';
import { startServer, type TestAgent, type TestServer } from '../support/server.ts';
import { until } from '../support/wait.ts';

const SURFACE = '/v1/modules/scaimind';
const EXAMPLES = path.resolve(import.meta.dirname, '../../examples/training');
/** Where there is a Python with torch. */
const TORCH = process.env['TORCH_VENV'];

let server: TestServer;
let agent: TestAgent;
let otherTenant: string;
beforeAll(async () => {
  server = await startServer();
  agent = server.agent('one', { resources: 'cpus=4,mem=8Gi' });
  await server.online(1);
  const scopes = ['jobs:read', 'jobs:manage', 'fleet:read'];
  const wish = { tenant: 'other', user: 'eve', scopes };
  const { body } = await call(server.url, 'POST /v1/tokens', wish, { token: server.token });
  otherTenant = body['data'].secret;
});
afterAll(() => server.close());

async function ask(request: string, body?: unknown, token = server.token): Promise<Answer> {
  const [method, where] = request.split(' ');
  return call(server.url, `${method} ${SURFACE}${where}`, body, { token });
}

async function data(request: string, body?: unknown): Promise<Answer['body']> {
  const answer = await ask(request, body);
  expect([answer.status, answer.body['success']], answer.text).toEqual([200, true]);
  return answer.body['data'];
}

/** Every event until the stream ends by itself. */
async function follow(where: string): Promise<SseEvent[]> {
  const headers = { authorization: `Bearer ${server.token}` };
  const response = await fetch(server.url + SURFACE + where, { headers });
  const events: SseEvent[] = [];
  for await (const event of readEvents(response.body!)) events.push(event);
  expect(events.at(-1)?.event).toBe('end');
  return events.slice(0, -1);
}

const example = (name: string): Record<string, Record<string, unknown>> =>
  JSON.parse(readFileSync(path.join(EXAMPLES, `${name}.json`), 'utf8'));

const ended = async (where: string): Promise<Answer['body']> =>
  until(`${where} ends`, async () => {
    const found = await data(`GET ${where}`);
    return found['ended_at'] !== null && found;
  });

/** From the blocks to the scores; returns the job's id. */
async function prove(blocks: object, chance: number): Promise<string> {
  const job = await data('POST /jobs', blocks);
  expect(job).toMatchObject({ ...blocks, error: null });
  const id = job['job_id'] as string;
  const [logs, metrics] = await Promise.all([
    follow(`/jobs/${id}/logs`),
    follow(`/jobs/${id}/metrics/stream?name=loss&name=accuracy`),
  ]);
  const records = logs.map((event) => JSON.parse(event.data));
  const stdout = records.filter(({ stream }) => stream === 'stdout');
  const text = stdout.map((record) => record.text).join('');
  expect(text).toMatch(/^step 10: loss [\d.]+, accuracy [\d.]+\n/);
  expect(text).toContain('done at step');
  const samples = metrics.flatMap((event) => JSON.parse(event.data));
  expect(samples[0]).toMatchObject({ step: 10, task_index: 0, attempt: 1 });
  expect(samples.at(-1).values.loss).toBeLessThan(samples[0].values.loss);

  expect(await ended(`/jobs/${id}`)).toMatchObject({ status: 'SUCCEEDED', exit_code: 0 });
  const { checkpoints } = await data(`GET /jobs/${id}/checkpoints`);
  expect(checkpoints.at(-1)).toMatchObject({ files: 1, task: `${id}.0` });

  const asked = await data('POST /evaluations', { job_id: id, config: { samples: 300 } });
  expect(asked).toMatchObject({ job_id: id, checkpoint: checkpoints.at(-1).number });
  const evaluation = await ended(`/evaluations/${asked['evaluation_id']}`);
  expect(evaluation).toMatchObject({ status: 'SUCCEEDED', scores: { samples: 300 } });
  expect(evaluation['scores'].accuracy).toBeGreaterThan(chance);
  const { evaluations } = await data('GET /evaluations');
  expect(evaluations[0]).toMatchObject({ evaluation_id: asked['evaluation_id'], job_id: id });
  return id;
}

/** Killed after its first checkpoint, it goes on from it. */
async function proveResume(blocks: Record<string, object>): Promise<void> {
  const longer = { ...blocks['training'], steps: 1_000_000, log_every: 1000 };
  const often = { ...blocks['checkpoint'], every_seconds: 1 };
  const { job_id: id } = await data('POST /jobs', {
    ...blocks,
    training: longer,
    checkpoint: often,
  });
  await until('a checkpoint', async () => {
    const { checkpoints } = await data(`GET /jobs/${id}/checkpoints`);
    return checkpoints.length > 0;
  });
  const [attempt] = await server.attempts(id);
  killPid(agent.taskPid(attempt!.uid)!, 'SIGKILL');
  await until('it goes on', async () => /resumed at step \d+/.test(await server.stdoutSoFar(id)));
  await data(`POST /jobs/${id}/cancel`);
  expect(await ended(`/jobs/${id}`)).toMatchObject({ status: 'CANCELLED' });
}

test('plain Python: submitted, followed, evaluated; no other tenant sees it', async () => {
  const id = await prove(example('linear'), 0.9);
  for (const request of [
    `GET /jobs/${id}`,
    `POST /jobs/${id}/cancel`,
    `GET /jobs/${id}/logs`,
    `GET /jobs/${id}/metrics/stream`,
    `GET /jobs/${id}/checkpoints`,
  ]) {
    const { status, body } = await ask(request, undefined, otherTenant);
    expect([status, body['error']?.code], request).toEqual([404, 'NOT_FOUND']);
  }
  const priority = { priority: 'production' };
  const foreign = await ask(`PATCH /jobs/${id}/priority`, priority, otherTenant);
  const evaluating = await ask('POST /evaluations', { job_id: id }, otherTenant);
  expect([foreign.status, evaluating.status]).toEqual([404, 404]);
  const { body } = await ask('GET /jobs', undefined, otherTenant);
  expect(body['data']).toEqual({ jobs: [], next_page_token: null });
});

test('killed, it goes on from its checkpoint', () => proveResume(example('linear')));

test('what waits is in the queue, and can go first', async () => {
  const blocks = { ...example('linear'), resources: { pool: 'default', cpus: 4, memory_gb: 8 } };
  const first = await data('POST /jobs', { ...blocks, training: { steps: 1e6 }, name: 'first' });
  const waiting = await data('POST /jobs', { ...blocks, name: 'waiting' });
  const id = waiting['job_id'];
  await until('it waits', async () => {
    const { queue } = await data('GET /queue');
    return queue.some((entry: { job_id: string }) => entry.job_id === id);
  });
  const raised = await data(`POST /jobs/${id}/priority`, { priority: 'interactive' });
  expect(raised).toMatchObject({ status: 'PENDING', priority: 'interactive' });
  expect((await data('GET /cluster'))['nodes']).toMatchObject({ online: 1 });
  expect((await data('GET /cluster/nodes'))['nodes']).toMatchObject([{ name: 'one' }]);
  for (const { job_id } of [waiting, first]) await data(`POST /jobs/${job_id}/cancel`);
});

test('blocks that are wrong are named', async () => {
  const blocks = example('linear');
  const { body } = await ask('POST /jobs', { ...blocks, training: { stesp: 3 } });
  expect(body['error']).toMatchObject({
    code: 'INVALID_ARGUMENT',
    message: 'training.stesp: is not a field that the template linear takes',
    hint: 'Did you mean training.steps?',
  });
  const { status, body: huge } = await ask('POST /jobs', { ...blocks, resources: { cpus: 9999 } });
  expect([status, huge['error'].message]).toEqual([
    400,
    expect.stringContaining('template linear, line 23: resources.cpuMillis: '),
  ]);
});

if (TORCH) {
  test('PyTorch: submitted, followed, evaluated, killed', { timeout: 300_000 }, async () => {
    const blocks = example('pytorch-mlp');
    blocks['training']!['python'] = path.resolve(TORCH, 'bin/python');
    await prove(blocks, 0.8);
    await proveResume(blocks);
  });
}
