/** An agent's spool thread: sends output, however busy the agent is with starting attempts. */
import { join } from 'node:path';
import { workerData } from 'node:worker_threads';
import { identityFile } from '../../agent/identity.ts';
import { createSpool, type SpoolAttempt } from '../../agent/spool.ts';
import { httpTransport } from '../../agent/transport.ts';
import { systemClock } from '../../lib/clock.ts';
import { createLog } from '../../lib/log.ts';
import { serve } from '../../lib/thread.ts';
import { trustAgentFiles, type AgentTls } from '../trust.ts';
import type { ThreadData } from './start.ts';

export interface SpoolThreadOptions extends AgentTls {
  url: string;
  dataDir: string;
  level: string;
}

export interface SpoolCalls {
  follow(attempts: SpoolAttempt[]): Promise<void>;
  whenDrained(uid: string): Promise<void>;
  close(): Promise<void>;
}

const { port, options } = workerData as ThreadData<SpoolThreadOptions>;
const log = createLog('agent', options.level);
const trust = trustAgentFiles(options, log);
const transport = httpTransport(options.url);
const identity = identityFile(join(options.dataDir, 'worker.json'));
let attempts: SpoolAttempt[] = [];
const spool = createSpool({
  source: { list: () => attempts },
  // Read each time: the worker may have joined anew.
  send: (body) => transport.sendLogs(identity.load()?.token ?? '', body),
  clock: systemClock,
  log,
});
const calls: SpoolCalls = {
  async follow(found) {
    attempts = found;
    spool.changed();
  },
  whenDrained: (uid) => spool.whenDrained(uid),
  async close() {
    await spool.close();
    await transport.close();
    trust.close();
  },
};
serve(port, calls);
