/** The log routes over real HTTP: pages, follows, cuts, slow and leaving clients. */
import type { AddressInfo } from 'node:net';
import Fastify from 'fastify';
import {
  serializerCompiler,
  validatorCompiler,
  type ZodTypeProvider,
} from 'fastify-type-provider-zod';
import { afterEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../lib/clock.ts';
import { DroverError } from '../../lib/errors.ts';
import { silentLog } from '../../lib/log.ts';
import type { LogRecordView } from '../../protocol/jobs.ts';
import { registerLogRoutes, type LogRouteOptions } from './logs.ts';
import { Client, FakeCoordinator, pause, until, WHO } from './testLogFollow.ts';

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup();
});

async function serve(limits: LogRouteOptions['limits'] = {}) {
  const coordinator = new FakeCoordinator();
  const app = Fastify().withTypeProvider<ZodTypeProvider>();
  app.setValidatorCompiler(validatorCompiler);
  app.setSerializerCompiler(serializerCompiler);
  app.setErrorHandler((error, _request, reply) => {
    const status = error instanceof DroverError ? error.status : 400;
    return reply.code(status).send({ detail: (error as Error).message });
  });
  app.addHook('onRequest', async (request) => {
    request.principal = WHO;
  });
  const options = { coordinator, clock: systemClock, log: silentLog };
  registerLogRoutes(app, { ...options, limits: { waitMs: 200, ...limits } });
  await app.listen({ port: 0, host: '127.0.0.1' });
  cleanups.push(() => app.close());
  const url = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}/v1/jobs/j1/logs`;
  return { coordinator, app, url };
}

describe('GET /v1/jobs/{id}/logs', () => {
  it('gives a page, and where to go on', async () => {
    const { coordinator, url } = await serve();
    for (let n = 1; n <= 12; n++) coordinator.add(`${n}\n`, n % 2);
    const first = await (await fetch(url)).json();
    expect(first).toMatchObject({ meta: { next: 10, complete: false } });
    expect((first as { data: LogRecordView[] }).data[0]).toEqual(coordinator.records[0]);
    coordinator.complete = true;
    expect(await (await fetch(`${url}?after=10`)).json()).toMatchObject({
      data: [{ seq: 11 }, { seq: 12 }],
      meta: { next: 12, complete: true },
    });
  });

  it('passes on task, since and tail', async () => {
    const { coordinator, url } = await serve();
    await fetch(`${url}?task=3&tail=5&since=1700000000000`);
    await fetch(`${url}?since=2024-01-01T00:00:00Z`);
    expect(coordinator.queries).toEqual([
      { after: 0, task: 3, tailLines: 5, sinceMs: 1_700_000_000_000, waitMs: 0 },
      { after: 0, sinceMs: 1_704_067_200_000, waitMs: 0 },
    ]);
  });

  it('refuses what makes no sense, before any stream begins', async () => {
    const { url } = await serve();
    const bad = ['tail=-1', 'tail=1000001', 'task=x', 'since=yesterday', 'follow=yes', 'nope=1'];
    for (const query of [...bad, 'tail=5&after=5', 'after=-1']) {
      expect([query, (await fetch(`${url}?${query}`)).status]).toEqual([query, 400]);
    }
    const lost = await fetch(`${url.replace('j1', 'j2')}?follow=true`);
    expect(lost.status).toBe(404);
    const headers = { 'last-event-id': 'garbage' };
    expect((await fetch(`${url}?follow=true`, { headers })).status).toBe(400);
  });

  it('follows until the log is complete and ends there', async () => {
    const { coordinator, url } = await serve();
    coordinator.add('one\n');
    const client = await new Client().connect(`${url}?follow=true`);
    expect(client.headers['content-type']).toContain('text/event-stream');
    await until(() => client.texts.length === 1);
    coordinator.add('two\n');
    await until(() => client.texts.length === 2);
    expect(client.ended).toBe(false);
    coordinator.complete = true;
    coordinator.add('three\n');
    await until(() => client.ended);
    expect(client.texts).toEqual(['one\n', 'two\n', 'three\n']);
    expect(client.events.at(-1)).toEqual({ id: '3', event: 'end', data: '{"next":3}' });
  });

  it('goes on after every cut without a gap or a duplicate', async () => {
    const { coordinator, url } = await serve();
    coordinator.pageRecords = 7;
    const writing = setInterval(() => coordinator.add(`line ${coordinator.records.length}\n`), 1);
    const got: (string | undefined)[] = [];
    let lastId: string | undefined;
    for (let cut = 0; cut < 15; cut++) {
      const client = await new Client().connect(`${url}?follow=true`, lastId);
      await until(() => client.events.length > cut % 4);
      client.leave();
      await pause(3);
      got.push(...client.texts);
      lastId = client.lastId;
    }
    clearInterval(writing);
    coordinator.complete = true;
    coordinator.wake();
    const last = await new Client().connect(`${url}?follow=true`, lastId);
    await until(() => last.ended);
    got.push(...last.texts);
    expect(got).toEqual(coordinator.records.map(({ text }) => text));
  });

  it('does not repeat a tail to a browser that resumes, nor miss what came meanwhile', async () => {
    const { coordinator, url } = await serve();
    for (let n = 1; n <= 5; n++) coordinator.add(`${n}\n`);
    const client = await new Client().connect(`${url}?follow=true&tail=0`);
    await until(() => client.lastId === '5');
    expect(client.events).toEqual([]);
    client.leave();
    coordinator.add('6\n');
    const again = await new Client().connect(`${url}?follow=true&tail=0`, client.lastId);
    await until(() => again.texts.length > 0);
    expect(again.texts).toEqual(['6\n']);
    again.leave();
  });

  it('reads no further than a slow client takes, and nothing is lost when it goes on', async () => {
    const { coordinator, url } = await serve();
    const large = 'x'.repeat(100_000);
    for (let n = 0; n < 400; n++) coordinator.add(`${n} ${large}`);
    coordinator.pageRecords = 1;
    coordinator.complete = true;
    const client = await new Client().connect(`${url}?follow=true`);
    client.pause();
    await pause(200);
    const stoppedAt = coordinator.queries.length;
    expect(stoppedAt).toBeLessThan(300);
    await pause(100);
    expect(coordinator.queries.length).toBe(stoppedAt);
    client.resume();
    await until(() => client.ended);
    expect(client.texts.map((text) => Number(text?.split(' ')[0]))).toEqual(
      Array.from({ length: 400 }, (_, n) => n),
    );
  });

  it('cuts off a client that takes nothing at all', async () => {
    const { coordinator, url } = await serve({ stalledMs: 100 });
    for (let n = 0; n < 400; n++) coordinator.add('x'.repeat(100_000));
    const client = await new Client().connect(`${url}?follow=true`);
    client.pause();
    await pause(300);
    client.resume();
    await until(() => client.ended);
    expect(client.events.at(-1)?.event).not.toBe('end');
  });

  it('stops reading when the client leaves', async () => {
    const { coordinator, url } = await serve({ waitMs: 20 });
    const client = await new Client().connect(`${url}?follow=true`);
    await until(() => coordinator.queries.length > 3);
    client.leave();
    await pause(60);
    const count = coordinator.queries.length;
    await pause(100);
    expect(coordinator.queries.length).toBe(count);
  });

  it('sends heartbeats while there is nothing to say', async () => {
    const { url } = await serve({ heartbeatMs: 10 });
    const client = await new Client().connect(`${url}?follow=true`);
    await until(() => client.comments >= 3);
    client.leave();
  });

  it('says what went wrong when the controller fails midway', async () => {
    const { coordinator, url } = await serve();
    coordinator.add('one\n');
    const client = await new Client().connect(`${url}?follow=true`);
    await until(() => client.texts.length === 1);
    coordinator.failure = new DroverError('UNAVAILABLE', 'the controller restarts');
    coordinator.wake();
    await until(() => client.ended);
    expect(client.events.at(-1)?.event).toBe('problem');
    expect(JSON.parse(client.events.at(-1)?.data ?? '')).toMatchObject({
      code: 'UNAVAILABLE',
      detail: 'the controller restarts',
    });
    expect(client.lastId).toBe('1');
  });

  it('ends a stream after its time; the client goes on from there', async () => {
    const { coordinator, url } = await serve({ streamMs: 150 });
    coordinator.add('one\n');
    const client = await new Client().connect(`${url}?follow=true`);
    await until(() => client.ended);
    expect([client.texts, client.events.length]).toEqual([['one\n'], 1]);
    coordinator.add('two\n');
    coordinator.complete = true;
    await client.connect(`${url}?follow=true`, client.lastId);
    await until(() => client.events.at(-1)?.event === 'end');
    expect(client.texts).toEqual(['one\n', 'two\n']);
  });

  it('ends its streams when the server closes', async () => {
    const { app, url } = await serve({ waitMs: 5000 });
    const client = await new Client().connect(`${url}?follow=true`);
    const before = performance.now();
    await app.close();
    await until(() => client.ended);
    expect(performance.now() - before).toBeLessThan(2000);
  });
});
