/** Log bytes the whole way: files, spool, HTTP, log store, SSE. Prints the figures. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Fastify from 'fastify';
import {
  serializerCompiler,
  validatorCompiler,
  type ZodTypeProvider,
} from 'fastify-type-provider-zod';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createFileLogStore } from '../../../src/control/logs/fileLogStore.ts';
import type { LogStore } from '../../../src/control/logs.ts';
import { registerLogRoutes } from '../../../src/gateway/rest/logs.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { createLog } from '../../../src/lib/log.ts';
import type { Principal } from '../../../src/model/token.ts';
import { AGENT_PATHS, type OutputStream } from '../../../src/protocol/agent.ts';
import type { LogPage, LogQuery } from '../../../src/protocol/coordinator.ts';
import type { LogRecordView } from '../../../src/protocol/jobs.ts';
import {
  decodeLogFrames,
  LOG_FRAME_LIMITS,
  LOG_FRAMES_CONTENT_TYPE,
} from '../../../src/protocol/logFrames.ts';

const TASKS = 100;
const PAGE_BYTES = 1024 * 1024;

let dir: string;
let store: LogStore;
let url: string;
let close: () => Promise<void>;
let bytesReceived = 0;

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'drover-log-system-'));
  const log = createLog('logs', 'warn');
  store = createFileLogStore({ dir, clock: systemClock, log });
  const app = Fastify().withTypeProvider<ZodTypeProvider>();
  app.setValidatorCompiler(validatorCompiler);
  app.setSerializerCompiler(serializerCompiler);
  app.addHook('onRequest', async (request) => {
    request.principal = {} as Principal;
  });
  app.addContentTypeParser(
    LOG_FRAMES_CONTENT_TYPE,
    { parseAs: 'buffer', bodyLimit: LOG_FRAME_LIMITS.bodyBytes },
    (_request, body, done) => done(null, body),
  );
  app.post(AGENT_PATHS.logs, { bodyLimit: LOG_FRAME_LIMITS.bodyBytes }, async (request) => {
    const body = request.body as Buffer;
    bytesReceived += body.length;
    return store.append(
      decodeLogFrames(body).map((chunk) => {
        const index = Number(chunk.uid.slice(1));
        const stream = chunk.stream as OutputStream;
        return { ...chunk, stream, job: 'j1', task: `j1.${index}`, index, attempt: 1 };
      }),
    );
  });
  registerLogRoutes(app, { coordinator: { readLogs }, clock: systemClock, log });
  await app.listen({ port: 0, host: '127.0.0.1' });
  url = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;
  close = () => app.close();
});

afterEach(async () => {
  await close();
  await store.close();
  rmSync(dir, { recursive: true, force: true });
});

async function readLogs(_who: Principal, job: string, query: LogQuery): Promise<LogPage> {
  if (query.waitMs > 0) await store.wait(job, query.after, query.waitMs);
  const page = await store.read(job, { ...query, limitBytes: PAGE_BYTES });
  return { ...page, complete: false };
}

interface Sent {
  lines: number[];
  tookMs: number;
  cpuMs: number;
}

async function runSender(bytesPerSecond: number, seconds: number): Promise<Sent> {
  const script = new URL('./sender.ts', import.meta.url).pathname;
  const args = [script, url, TASKS, bytesPerSecond, seconds].map(String);
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (part: string) => (output += part));
  const [code] = (await once(child, 'close')) as [number];
  expect(code).toBe(0);
  return JSON.parse(output) as Sent;
}

/** How long each line of a task took from being written to being in a follower's hands. */
async function followLatencies(task: number, signal: AbortSignal): Promise<number[]> {
  const latencies: number[] = [];
  try {
    const response = await fetch(`${url}/v1/jobs/j1/logs?follow=true&task=${task}`, { signal });
    let text = '';
    for await (const part of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      const blocks = (text + part).split('\n\n');
      text = blocks.pop() ?? '';
      const nowMs = performance.timeOrigin + performance.now();
      for (const block of blocks) {
        const data = /^data: (.*)$/m.exec(block)?.[1];
        if (data === undefined) continue;
        for (const line of ((JSON.parse(data) as LogRecordView).text ?? '').split('\n')) {
          const writtenMs = Number(line.split(' ')[2]);
          if (writtenMs > 0) latencies.push(nowMs - writtenMs);
        }
      }
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
  return latencies;
}

/** Reads everything back: each task's lines in order, none missing, none twice. */
async function countLines(): Promise<{ perTask: number[]; bytes: number; records: number }> {
  const perTask = Array.from({ length: TASKS }, () => 0);
  const rest = perTask.map(() => '');
  let bytes = 0;
  let after = 0;
  let records = 0;
  for (;;) {
    const page = await store.read('j1', { after, limitBytes: PAGE_BYTES });
    for (const record of page.records) {
      if (record.seq !== ++records) throw new Error(`seq ${record.seq} instead of ${records}`);
      const { index } = record;
      const text = record.text ?? '';
      bytes += text.length;
      const lines = `${rest[index]}${text}`.split('\n');
      rest[index] = lines.pop() ?? '';
      for (const line of lines) {
        const [task, n] = line.split(' ').map(Number);
        if (task !== index || n !== perTask[index]) throw new Error(`out of order: ${line}`);
        perTask[index] = (perTask[index] ?? 0) + 1;
      }
    }
    if (page.next === after) return { perTask, bytes, records };
    after = page.next;
  }
}

describe('logs, from file to follower', () => {
  it.each([10, 50])('of 100 tasks at %i MB/s: no gap, no duplicate, and promptly', async (rate) => {
    const stop = new AbortController();
    const following = Promise.all([0, 1, 2].map((task) => followLatencies(task, stop.signal)));
    const cpuBefore = process.cpuUsage();
    const sent = await runSender(rate * 1e6, 3);
    const cpu = process.cpuUsage(cpuBefore);
    await new Promise((resolve) => setTimeout(resolve, 300));
    stop.abort();
    const latencies = (await following).flat().toSorted((a, b) => a - b);
    const { perTask, bytes, records } = await countLines();
    expect(perTask).toEqual(sent.lines);
    const at = (share: number): number => latencies[Math.floor(latencies.length * share)] ?? NaN;
    const megabytesPerSecond = bytes / 1e3 / sent.tookMs;
    console.log(
      `logs of ${TASKS} tasks, asked ${rate} MB/s: ${megabytesPerSecond.toFixed(0)} MB/s, ` +
        `${records} records; line to follower p50 ${at(0.5).toFixed(0)} ms, ` +
        `p99 ${at(0.99).toFixed(0)} ms, most ${at(0.9999).toFixed(0)} ms; ` +
        `cpu ${((cpu.user + cpu.system) / 1e3 / sent.tookMs).toFixed(2)} of a core here, ` +
        `${(sent.cpuMs / sent.tookMs).toFixed(2)} at the sender`,
    );
    expect(latencies.length).toBe(
      (sent.lines[0] ?? 0) + (sent.lines[1] ?? 0) + (sent.lines[2] ?? 0),
    );
    expect(bytesReceived).toBeGreaterThan(0);
    // The figures are the benchmark's to hold; here the machine may be busy with other tests.
    expect(megabytesPerSecond).toBeGreaterThan(rate / 5);
    expect(at(0.99)).toBeLessThan(2000);
  });
});
