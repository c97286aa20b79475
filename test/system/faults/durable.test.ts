/**
 * The fsync precedes the 2xx. kill -9 proves nothing about a power cut, so this looks at the order
 * of system calls; the same look at a server that only pretends to sync must find it out.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import { waiting } from '../../support/jobs.ts';
import { startServer, type TestServer } from '../../support/server.ts';
import { post } from '../../support/submitters.ts';
import { readTrace, repliesToSubmits, type Reply } from '../../support/trace.ts';

const SUBMITS = 40;
const EATMYDATA = [
  '/usr/lib/x86_64-linux-gnu/libeatmydata.so',
  '/usr/lib/aarch64-linux-gnu/libeatmydata.so',
].find((file) => existsSync(file));

const each = (reply: Reply): Reply[] => Array.from({ length: SUBMITS }, () => reply);

/** Sequential, so that each reply belongs to the request before it. */
async function submitAll(server: TestServer): Promise<void> {
  for (let n = 1; n <= SUBMITS; n++) {
    const reply = await post(server.url, server.token, `sync-${n}`, JSON.stringify(waiting()));
    expect(reply?.status).toBe(201);
  }
}

async function traced(env: Record<string, string>): Promise<Reply[]> {
  const folder = mkdtempSync(path.join(tmpdir(), 'drover-trace-'));
  const file = path.join(folder, 'trace');
  const calls = 'fsync,fdatasync,pwrite64,read,recvfrom,recvmsg,write,writev,sendto,sendmsg';
  // -D: the tracer is the child, so that signals reach the server. -y names each descriptor's file.
  const strace = ['strace', '-D', '-f', '-y', '-ttt', '-s', '64', '-e', `trace=${calls}`];
  const variables = Object.entries(env).flatMap(([name, value]) => ['-E', `${name}=${value}`]);
  const server = await startServer({ wrapper: [...strace, '-o', file, ...variables] });
  try {
    await submitAll(server);
  } finally {
    await server.close();
  }
  const replies = repliesToSubmits(readTrace(readFileSync(file, 'utf8')));
  rmSync(folder, { recursive: true });
  return replies;
}

test('every 2xx of a submit follows a sync of the log it was written to', async () => {
  const replies = await traced({});
  expect(replies).toEqual(each({ written: true, synced: true }));
});

test('control: where nothing is synced, the same look finds it out', async () => {
  if (!EATMYDATA) throw new Error('libeatmydata is not installed: make system-packages');
  const replies = await traced({ LD_PRELOAD: EATMYDATA });
  expect(replies).toEqual(each({ written: true, synced: false }));
});
