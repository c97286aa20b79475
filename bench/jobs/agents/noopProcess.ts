/**
 * Started as a process: an agent over real HTTP whose runtime runs nothing. It waits for `go` on stdin,
 * then joins and syncs until it is stopped.
 */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'undici';
import {
  AGENT_PATHS,
  AGENT_VERSION,
  type JoinReply,
  type JoinRequest,
  type SyncReply,
  type SyncRequest,
} from '../../../src/protocol/agent.ts';
import { noopRuntime, type Behaviour } from './noopRuntime.ts';

/** While the controller is away. */
const RETRY_MS = 100;

const [url, joinToken, name, slots, behaviour] = process.argv.slice(2);
if (!url || !joinToken || !name || !slots || !behaviour) {
  throw new Error('usage: noopProcess.ts URL TOKEN NAME SLOTS end|hold');
}
process.stdout.write('prepared\n');
await once(createInterface({ input: process.stdin }), 'line');

const client = new Client(url, { pipelining: 1, bodyTimeout: 60_000, headersTimeout: 60_000 });
const runtime = noopRuntime(behaviour as Behaviour);
const bootId = randomUUID();
const joined = await post<JoinReply>(AGENT_PATHS.join, joinToken, identity(name, Number(slots)));
for (let seq = 1; ; seq++) {
  const observed = runtime.list().map((attempt) => attempt.observation);
  const sync: SyncRequest = { worker: joined.worker, bootId, start: 1, seq, observed, wait: true };
  let reply: SyncReply;
  try {
    reply = await post<SyncReply>(AGENT_PATHS.sync, joined.token, sync);
  } catch (error) {
    process.stderr.write(`${name}: ${String(error)}\n`);
    await sleep(RETRY_MS);
    continue;
  }
  for (const uid of reply.acknowledged) runtime.forget(uid);
  for (const order of reply.stop) runtime.stop(order);
  for (const order of reply.desired) runtime.start(order);
}

async function post<Reply>(
  path: string,
  token: string,
  body: JoinRequest | SyncRequest,
): Promise<Reply> {
  const answer = await client.request({
    method: 'POST',
    path,
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    body: JSON.stringify(body),
  });
  if (answer.statusCode !== 200) {
    throw new Error(`${path}: ${answer.statusCode} ${(await answer.body.text()).slice(0, 300)}`);
  }
  return (await answer.body.json()) as Reply;
}

function identity(name: string, slots: number): JoinRequest {
  return {
    name,
    machine: name,
    bootId,
    address: '127.0.0.1',
    network: 'bench',
    agentVersion: AGENT_VERSION,
    capabilities: [],
    attributes: {},
    resources: {
      // A job asks for one whole processor unless it says otherwise: one per slot.
      cpuMillis: slots * 1000,
      memoryBytes: 2 ** 40,
      devices: [],
      portRange: [20_000, 29_999],
    },
  };
}
