/**
 * Started as a process: Drover's own agent over real HTTP, with a runtime that runs nothing. It
 * waits for `go` on stdin, then joins and works until it is stopped.
 */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { startAgent, type Identity } from '../../../src/agent/agent.ts';
import { httpTransport } from '../../../src/agent/transport.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { createLog } from '../../../src/lib/log.ts';
import { systemRandom } from '../../../src/lib/random.ts';
import { noopRuntime, type Behaviour } from './noopRuntime.ts';
import { registration } from './registration.ts';

const [url, joinToken, name, slots, behaviour] = process.argv.slice(2);
if (!url || !joinToken || !name || !slots || !behaviour) {
  throw new Error('usage: noopProcess.ts URL TOKEN NAME SLOTS end|hold');
}
process.stdout.write('prepared\n');
await once(createInterface({ input: process.stdin }), 'line');

let identity: Identity | null = null;
startAgent({
  transport: httpTransport(url),
  runtime: noopRuntime(behaviour as Behaviour),
  // In memory: this agent is never started again.
  identityFile: {
    load: () => identity,
    save: (joined) => void (identity = joined),
  },
  // A job asks for one whole processor unless it says otherwise: one per slot.
  registration: registration(name, randomUUID(), Number(slots) * 1000),
  joinToken,
  clock: systemClock,
  random: systemRandom,
  log: createLog('bench-agent', 'warn'),
  onTunnel: () => undefined,
  onRefused(error) {
    throw error;
  },
});
