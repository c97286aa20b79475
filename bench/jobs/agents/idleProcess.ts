/**
 * Started as a process: many agents that only hold their long-poll, each on its own plain socket.
 * Says `joined N` when all have joined and sent their first sync; told `stop`, says how many were
 * answered.
 */
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { AGENT_PATHS, type JoinReply, type SyncRequest } from '../../../src/protocol/agent.ts';
import { COUNTER, Connection, type RequestShape } from '../support/loader.ts';
import { registration } from './registration.ts';

const JOINS_AT_ONCE = 32;

const [portText, joinToken, countText] = process.argv.slice(2);
if (!portText || !joinToken || !countText)
  throw new Error('usage: idleProcess.ts PORT TOKEN COUNT');
const port = Number(portText);
const count = Number(countText);
let answered = 0;
let next = 0;
await Promise.all(Array.from({ length: JOINS_AT_ONCE }, joinSome));
process.stdout.write(`joined ${count}\n`);
await once(createInterface({ input: process.stdin }), 'line');
process.stdout.write(`answered ${answered}\n`);
process.exit(0);

async function joinSome(): Promise<void> {
  while (next < count) {
    const n = next++;
    const name = `idle-${n}`;
    const request = registration(name, name, 16_000);
    const answer = await fetch(`http://127.0.0.1:${port}${AGENT_PATHS.join}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${joinToken}`, 'content-type': 'application/json' },
      body: JSON.stringify(request),
    });
    if (!answer.ok) throw new Error(`join: ${answer.status} ${await answer.text()}`);
    hold((await answer.json()) as JoinReply, request.bootId);
  }
}

function hold(joined: JoinReply, bootId: string): void {
  const { worker, epoch } = joined;
  const sync: SyncRequest = { worker, bootId, start: 1, seq: 0, epoch, observed: [], wait: true };
  const shape: RequestShape = {
    method: 'POST',
    path: AGENT_PATHS.sync,
    headers: { authorization: `Bearer ${joined.token}` },
    body: JSON.stringify(sync).replace('"seq":0', `"seq":${COUNTER}`),
  };
  const connection = new Connection(port, shape);
  const again = (seq: number): void => {
    connection.send(seq, (answer) => {
      if (answer instanceof Error) throw answer;
      if (answer.status !== 200)
        throw new Error(`sync: ${answer.status} ${answer.body.toString()}`);
      answered++;
      again(seq + 1);
    });
  };
  again(1);
}
