/** A coordinator of others behind our gateway: calls, errors with canaries, streams, the cache. */
import { connect } from 'node:net';
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { grpcIsHere } from '../support/python.ts';
import { until } from '../support/wait.ts';
import { ADA, BOB, DAN, EVE, SECRET } from './foreign/world.ts';
import { startForeignWorld, type ForeignWorld } from './foreign/world.ts';

const isHere = grpcIsHere();
const it = test.runIf(isHere);
let world: ForeignWorld;
beforeAll(async () => {
  if (isHere) world = await startForeignWorld();
});
afterAll(() => world?.close());

const spec = (name: string, more: object = {}): object => ({ name, command: ['true'], ...more });

async function submit(name: string, more: object = {}, token = ADA): Promise<string> {
  const { json } = await world.ask('POST /v1/jobs', { token, body: spec(name, more) });
  return (json.data as { id: string }).id;
}

async function allOf(where: string, headers: Record<string, string> = {}) {
  const seen: { id: string; event: string; data: string }[] = [];
  for await (const event of world.events(where, { headers })) seen.push(event);
  return seen;
}

const idsOf = (events: { id: string; event: string }[]): number[] =>
  events.filter(({ event }) => event !== 'end').map(({ id }) => Number(id));
const NUMBERS = Array.from({ length: 12 }, (_, at) => at + 1);

describe('calls', () => {
  it('submit, get, list and cancel, with who calls and the request’s own id', async () => {
    const headers = { 'x-request-id': 'asked-by-a-person' };
    const { status, json } = await world.ask('POST /v1/jobs', { body: spec('plain'), headers });
    expect(status).toBe(201);
    const { id } = json.data as { id: string };
    const call = world.told().find((told) => told.call === 'SubmitJob');
    expect(call).toMatchObject({
      command: ['true'],
      metadata: {
        'x-api-secret': SECRET,
        'x-tenant-id': 'physics',
        'x-user-id': 'ada',
        'x-request-id': 'asked-by-a-person',
      },
    });
    const one = await world.ask(`GET /v1/jobs/${id}`);
    expect(one.json.data).toMatchObject({ id, state: 'RUNNING', kind: 'batch', owner: 'ada' });
    expect(one.json.meta).toEqual({});
    const listed = await world.ask('GET /v1/jobs');
    expect(listed.json.data).toMatchObject([{ id, name: 'plain' }]);
    const cancelled = await world.ask(`POST /v1/jobs/${id}/cancel`);
    expect(cancelled.json.data).toMatchObject({ id, cancelRequestedAtMs: 1_700_000_001_000 });
    const others = await world.ask(`GET /v1/jobs/${id}`, { token: BOB });
    expect([others.status, others.json.detail]).toEqual([404, `there is no job ${id}`]);
  });

  it('what it does not have is a 501 that says so', async () => {
    const { status, json } = await world.ask('GET /v1/queue');
    expect([status, json.code]).toEqual([501, 'NOT_IMPLEMENTED']);
    expect(json.detail).toContain('no such call');
  });
});

describe('errors', () => {
  /** The table of the issue: what is passed on, and what is withheld. */
  const PASSED = {
    NOT_FOUND: [404, 'NOT_FOUND'],
    INVALID_ARGUMENT: [400, 'INVALID_ARGUMENT'],
    PERMISSION_DENIED: [403, 'PERMISSION_DENIED'],
    UNAUTHENTICATED: [401, 'UNAUTHENTICATED'],
    ALREADY_EXISTS: [409, 'CONFLICT'],
    FAILED_PRECONDITION: [409, 'CONFLICT'],
    RESOURCE_EXHAUSTED: [429, 'TOO_MANY'],
  } as const;
  const WITHHELD = {
    DEADLINE_EXCEEDED: [504, 'TIMEOUT'],
    UNAVAILABLE: [503, 'UNAVAILABLE'],
    UNIMPLEMENTED: [501, 'NOT_IMPLEMENTED'],
    INTERNAL: [500, 'INTERNAL'],
    UNKNOWN: [500, 'INTERNAL'],
    DATA_LOSS: [500, 'INTERNAL'],
    ABORTED: [500, 'INTERNAL'],
    OUT_OF_RANGE: [500, 'INTERNAL'],
    CANCELLED: [500, 'INTERNAL'],
  } as const;
  const visible = ({ text, headers }: { text: string; headers: Headers }): string =>
    text + JSON.stringify([...headers]);

  it.each(Object.entries(PASSED))('%s passes its words on', async (name, expected) => {
    const answer = await world.ask(`GET /v1/jobs/fail-${name}`);
    expect([answer.status, answer.json.code]).toEqual(expected);
    expect(answer.json.detail).toBe(`CANARY-message of ${name}`);
    for (const place of ['stack', 'detail', 'trailer']) {
      expect(visible(answer)).not.toContain(`CANARY-${place}`);
    }
  });

  it.each(Object.entries(WITHHELD))('%s says nothing of its own', async (name, expected) => {
    const requestId = `withheld-${name}`;
    const headers = { 'x-request-id': requestId };
    const answer = await world.ask(`GET /v1/jobs/fail-${name}`, { headers });
    expect([answer.status, answer.json.code]).toEqual(expected);
    expect(answer.json.requestId).toBe(requestId);
    expect(visible(answer)).not.toContain('CANARY');
    const lines = world.logged(requestId).filter((line) => 'coordinator_error' in line);
    expect(lines).toHaveLength(1);
    expect(JSON.stringify(lines)).toContain(`CANARY-message of ${name}`);
    expect(JSON.stringify(lines)).toContain('CANARY-stack');
    // Nowhere else in the log.
    const others = world.logged('CANARY').filter((line) => !('coordinator_error' in line));
    expect(others).toEqual([]);
  });

  it.each(['raise', 'inside', 'lies'])('%s is a 500 without a word', async (kind) => {
    const answer = await world.ask(`GET /v1/jobs/${kind}-1`);
    expect([answer.status, answer.json.code]).toEqual([500, 'INTERNAL']);
    expect(visible(answer)).not.toContain('CANARY');
  });

  it('an error of Drover’s own kind keeps its code and hint', async () => {
    const { status, json } = await world.ask('GET /v1/jobs/never-1');
    expect([status, json.code, json.detail, json.hint]).toEqual([
      ...[422, 'NEVER_FITS', 'too large', 'ask for less'],
    ]);
  });

  it('what was sent in confidence is not repeated, nor logged', async () => {
    const answer = await world.ask('GET /v1/jobs/echo-1');
    expect([answer.status, answer.json.detail]).toEqual([400, 'you sent me [redacted], odd']);
    expect(world.gateway.output()).not.toContain(SECRET);
    expect(world.gateway.output()).not.toContain(ADA);
  });
});

describe('streams', () => {
  it('logs as events with id, event and data, and from where a client was', async () => {
    const id = await submit('lines');
    const all = await allOf(`/v1/jobs/${id}/logs?follow=true`);
    expect(idsOf(all)).toEqual(NUMBERS);
    expect(all[0]).toMatchObject({ event: 'log', id: '1' });
    expect(JSON.parse(all[0]?.data ?? '')).toMatchObject({ text: 'line 1\n', stream: 'stdout' });
    expect(all.at(-1)).toMatchObject({ event: 'end', id: '12' });
    const rest = await allOf(`/v1/jobs/${id}/logs?follow=true`, { 'last-event-id': '7' });
    expect(idsOf(rest)).toEqual(NUMBERS.slice(7));
    const opened = world.told().filter(({ call, job }) => call === 'StreamJobLogs' && job === id);
    expect(opened.map(({ after }) => after)).toEqual([0, 7]);
    expect(opened[0]?.metadata).toMatchObject({ 'x-tenant-id': 'physics', 'x-user-id': 'ada' });
  });

  it('metrics the same way', async () => {
    const id = await submit('lines');
    const all = await allOf(`/v1/jobs/${id}/metrics/stream`);
    expect(idsOf(all)).toEqual(NUMBERS);
    expect(all[1]?.event).toBe('metrics');
    expect(all[1]?.data).toContain('"loss"');
    const rest = await allOf(`/v1/jobs/${id}/metrics/stream`, { 'last-event-id': '11' });
    expect(idsOf(rest)).toEqual([12]);
  });

  it('one that breaks in the middle goes on without gap or repetition', async () => {
    const id = await submit('breaks');
    expect(idsOf(await allOf(`/v1/jobs/${id}/logs?follow=true`))).toEqual(NUMBERS);
    const opened = world.told().filter(({ call, job }) => call === 'StreamJobLogs' && job === id);
    expect(opened.map(({ after }) => after)).toEqual([0, 5]);
  });

  it('a failure is a status at the start, and an event later', async () => {
    const first = await world.ask('GET /v1/jobs/fail-1/logs?follow=true');
    expect([first.status, first.json.code]).toEqual([500, 'INTERNAL']);
    expect(first.text).not.toContain('CANARY');
    const later = await allOf(`/v1/jobs/${await submit('bursts')}/logs?follow=true`);
    expect(idsOf(later.slice(0, 5))).toEqual([1, 2, 3, 4, 5]);
    const last = later.at(-1);
    expect(last?.event).toBe('problem');
    expect(JSON.parse(last?.data ?? '')).toMatchObject({ code: 'INTERNAL', status: 500 });
    expect(JSON.stringify(later)).not.toContain('CANARY');
  });

  it('a client that leaves ends the call within a second', async () => {
    const id = await submit('quiet');
    const leaving = new AbortController();
    const response = await fetch(`${world.url}/v1/jobs/${id}/logs?follow=true`, {
      headers: { authorization: `Bearer ${ADA}` },
      signal: leaving.signal,
    });
    expect(response.headers.get('content-type')).toContain('text/event-stream');
    leaving.abort();
    const isOver = (): boolean => world.told().some(({ ended, job }) => ended && job === id);
    await until('the call has ended', isOver, 1_000, 10);
  });

  it('a slow reader holds up the coordinator, not others, nor the memory', async () => {
    const id = await submit('flood');
    const before = residentBytes(world.gateway.pid);
    const { hostname, port } = new URL(world.url);
    const socket = connect({ host: hostname, port: Number(port) });
    socket.pause();
    socket.write(`GET /v1/jobs/${id}/logs?follow=true HTTP/1.1\r\nhost: x\r\n`);
    socket.write(`authorization: Bearer ${ADA}\r\n\r\n`);
    await until('it streams', () => world.told().some(({ job }) => job === id));
    const began = performance.now();
    const lines = await submit('lines');
    expect(idsOf(await allOf(`/v1/jobs/${lines}/logs?follow=true`))).toEqual(NUMBERS);
    expect(performance.now() - began).toBeLessThan(2_000);
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    const grown = residentBytes(world.gateway.pid) - before;
    socket.destroy();
    const end = await until('the call has ended', () =>
      world.told().find(({ ended, job }) => ended && job === id),
    );
    // 32 KiB each: what lies in the buffers of kernel, HTTP/2 and Python.
    expect(end.pages).toBeLessThan(600);
    expect(grown).toBeLessThan(100 * 1024 * 1024);
  });
});

function residentBytes(pid: number): number {
  const found = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return Number(found?.[1]) * 1024;
}

describe('a coordinator that is slow, dies and comes back', () => {
  it('a followed log goes on behind the death of the server', async () => {
    const id = await submit('dies');
    const following = allOf(`/v1/jobs/${id}/logs?follow=true`);
    await until('it died', async () => {
      const { status } = await world.ask('GET /v1/jobs?limit=1&name=none', { token: BOB });
      return status === 503;
    });
    await world.restart();
    expect(idsOf(await following)).toEqual(NUMBERS);
    // The first call after a restart works.
    expect((await world.ask('GET /v1/jobs', { token: BOB })).status).toBe(200);
  });

  it('jobs that were listed are shown meanwhile, marked, to their tenant only', async () => {
    const annotations = { model: '{"base":"tiny"}', training: '{"epochs":3}' };
    const id = await submit('slow', { annotations });
    await world.ask(`GET /v1/jobs/${id}`);
    const live = await world.ask('GET /v1/jobs');
    expect(live.json.meta).toEqual({ nextCursor: null });
    expect(live.headers.get('age')).toBeNull();

    const slow = await world.ask('GET /v1/jobs?name=slow');
    expect(slow.json.data).toMatchObject([{ id, name: 'slow' }]);
    expect(slow.json.meta).toMatchObject({ cached: true, ageMs: expect.any(Number) as number });
    expect(slow.headers.get('warning')).toContain('110');
    // He has listed nothing yet: there is nothing to show him but the truth.
    const bobs = await world.ask('GET /v1/jobs?name=slow', { token: BOB });
    expect([bobs.json.data, bobs.json.meta]).toEqual([[], { nextCursor: null }]);

    for (const token of [EVE, DAN]) await world.ask('GET /v1/jobs', { token });
    await world.kill();
    const one = await world.ask(`GET /v1/jobs/${id}`, { token: EVE });
    expect(one.status).toBe(200);
    expect(one.json.meta).toMatchObject({ cached: true, config: annotations });
    expect(Number(one.headers.get('age'))).toBeGreaterThanOrEqual(0);
    expect((await world.ask('GET /v1/jobs', { token: EVE })).json.meta).toMatchObject({
      cached: true,
    });
    for (const where of ['GET /v1/jobs', `GET /v1/jobs/${id}`]) {
      const { status, json } = await world.ask(where, { token: DAN });
      expect([status, json.code], where).toEqual([503, 'UNAVAILABLE']);
    }
    const written = await world.ask('POST /v1/jobs', { token: EVE, body: spec('plain') });
    expect([written.status, written.json.code]).toEqual([503, 'UNAVAILABLE']);
    expect(written.json.detail).toBe('The coordinator cannot be reached now');
  });

  it('the truth replaces it when a job is opened', async () => {
    await world.restart();
    // This server has forgotten every job.
    const gone = await world.ask('GET /v1/jobs/slow-0');
    const known = await until('it is reachable', async () => world.ask('GET /v1/jobs'));
    expect([gone.status, known.json.data]).toEqual([404, []]);
    await world.kill();
    expect((await world.ask('GET /v1/jobs/slow-0')).status).toBe(503);
    await world.restart();
  });
});
