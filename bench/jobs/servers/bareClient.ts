/** The bare server as a process, and what is sent to it. */
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { startScript } from '../support/processes.ts';
import { COUNTER, type RequestShape } from '../support/loader.ts';
import { BATCH_SIZE, PAYLOAD } from '../support/workload.ts';
import type { System } from '../support/bench.ts';

export const BARE_SYSTEM: System = {
  system: 'bare',
  durability: 'SQLite WAL, synchronous FULL, group commit',
};
const TOKEN = 'bench-token-of-a-usual-length-0123456789';

export interface BareServer {
  port: number;
  /** `run` keeps the keys of several loads apart. */
  single(run: string): RequestShape;
  batch: RequestShape;
  /** How many jobs are stored. */
  jobs(): number;
  close(): Promise<void>;
}

export async function startBare(directory: string): Promise<BareServer> {
  const file = join(directory, 'bare.db');
  const child = startScript(new URL('bare.ts', import.meta.url), [file, TOKEN]);
  const port = Number((await child.line('port ')).slice('port '.length));
  const authorization = `Bearer ${TOKEN}`;
  const jobs = Array.from({ length: BATCH_SIZE }, () => PAYLOAD);
  return {
    port,
    single: (run) => ({
      method: 'POST',
      path: '/jobs',
      headers: { authorization, 'idempotency-key': `${run}-${COUNTER}` },
      body: JSON.stringify(PAYLOAD),
    }),
    batch: {
      method: 'POST',
      path: '/batch',
      headers: { authorization },
      body: JSON.stringify({ jobs }),
    },
    jobs() {
      const db = new DatabaseSync(file, { readOnly: true });
      const found = db.prepare('SELECT count(*) AS n FROM jobs').get();
      db.close();
      return Number(found?.['n']);
    },
    close: () => child.stop(),
  };
}
