/** Output and metrics of a training as events: fields, resuming, ends and limits. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { DroverError } from '../../lib/errors.ts';
import type { LogQuery } from '../../protocol/coordinator.ts';
import type { AnyRecordView } from '../../protocol/jobs.ts';
import { readEvents } from '../../protocol/sse.ts';
import { startTestTraining, type TestTraining } from './testTraining.ts';

const record = (seq: number, text: string): AnyRecordView => ({
  ...{ seq, task: 'j1.0', index: 0, attempt: 1, offset: 0, atMs: 1000, text },
  stream: 'stdout',
});
const LINES = [record(1, 'step 1\n'), record(2, 'step 2\n')];
const MEASURED = [
  { ...record(1, '{"step": 1, "loss": 2}\n{"step": 2, "loss": 1, "atMs": 1e300}\n') },
  { ...record(2, '{"other": 3}\n') },
].map((one) => ({ ...one, stream: 'metrics' as const }));

let asked: LogQuery[] = [];
let quiet = false;
let training: TestTraining;
beforeAll(async () => {
  training = await startTestTraining({
    overrides: {
      async readLogs(_who, job, query) {
        if (job === 'foreign') throw new DroverError('NOT_FOUND', 'There is no job foreign');
        asked.push(query);
        if (quiet) await new Promise((resolve) => setTimeout(resolve, query.waitMs ? 50 : 0));
        const all = query.metrics ? MEASURED : LINES;
        const records = quiet ? [] : all.filter(({ seq }) => seq > query.after);
        return { records, next: quiet ? query.after : 2, complete: !quiet };
      },
    },
  });
});
afterAll(() => training[Symbol.asyncDispose]());

async function follow(path: string, headers: Record<string, string> = {}): Promise<Response> {
  const authorization = `Bearer ${training.fake.adminToken}`;
  return fetch(training.url + path, { headers: { authorization, ...headers } });
}

async function eventsOf(response: Response) {
  const events: { id: string; event: string; data: unknown }[] = [];
  for await (const { id, event, data } of readEvents(response.body!)) {
    events.push({ id, event, data: JSON.parse(data) });
  }
  return events;
}

test('output comes line by line until its end', async () => {
  const response = await follow('/jobs/j1/logs');
  expect(response.headers.get('content-type')).toContain('text/event-stream');
  const events = await eventsOf(response);
  expect(events.map(({ id, event }) => [id, event])).toEqual([
    ['1', 'log'],
    ['2', 'log'],
    ['2', 'end'],
  ]);
  expect(events[0]!.data).toEqual({
    ...{ seq: 1, task: 'j1.0', task_index: 0, attempt: 1, stream: 'stdout', offset: 0 },
    ...{ timestamp: '1970-01-01T00:00:01.000Z', text: 'step 1\n' },
  });
});

test('it goes on after the last event, and then without the tail', async () => {
  asked = [];
  const resumed = await follow('/jobs/j1/logs?tail=1&task=0', { 'last-event-id': '1' });
  expect((await eventsOf(resumed)).map(({ id }) => id)).toEqual(['2', '2']);
  await (await follow('/jobs/j1/logs?tail=1')).text();
  expect(asked).toEqual([
    { after: 1, waitMs: 0, task: 0 },
    { after: 0, waitMs: 0, tailLines: 1 },
  ]);
});

test('metrics come as samples, by name', async () => {
  const events = await eventsOf(await follow('/jobs/j1/metrics/stream?name=loss'));
  expect(events.map(({ event }) => event)).toEqual(['metrics', 'end']);
  expect(events[0]!.data).toMatchObject([
    { step: 1, timestamp: '1970-01-01T00:00:01.000Z', values: { loss: 2 }, task_index: 0 },
    { step: 2, values: { loss: 1 } },
  ]);
  const resumed = await follow('/jobs/j1/metrics/stream', { 'last-event-id': '1' });
  expect((await eventsOf(resumed))[0]).toMatchObject({ id: '2', data: [{ step: null }] });
});

test('what is wrong is told before a stream begins', async () => {
  for (const [path, status, code] of [
    ['/jobs/foreign/logs', 404, 'NOT_FOUND'],
    ['/jobs/foreign/metrics/stream', 404, 'NOT_FOUND'],
    ['/jobs/j1/logs?tail=x', 400, 'INVALID_ARGUMENT'],
    ['/jobs/j1/logs?follow=1', 400, 'INVALID_ARGUMENT'],
  ] as const) {
    const response = await follow(path);
    const body = (await response.json()) as { success: boolean; error: { code: string } };
    expect([response.status, body.success, body.error.code]).toEqual([status, false, code]);
  }
});

test('a tenant has so many streams open, and no more', async () => {
  quiet = true;
  const open = [await follow('/jobs/j1/logs'), await follow('/jobs/j1/metrics/stream')];
  const third = await follow('/jobs/j1/logs');
  expect(third.status).toBe(429);
  await third.body?.cancel();
  for (const response of open) await response.body?.cancel();
  quiet = false;
});
