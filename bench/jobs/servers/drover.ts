/** Drover as a user starts it, `./drover up`, and the few REST calls the scenarios make. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { ClusterView, TokenView, WorkerView } from '../../../src/protocol/fleet.ts';
import type { JobView } from '../../../src/protocol/jobs.ts';
import type { SubmittedSpec } from '../../../src/protocol/jobSpec.ts';
import type { System } from '../support/bench.ts';
import { COUNTER, type RequestShape } from '../support/loader.ts';
import { until } from '../support/measure.ts';
import { BATCH_SIZE, PAYLOAD } from '../support/workload.ts';
import { freePort } from '../support/ports.ts';
import { killTree, start, type Child } from '../support/processes.ts';
import { countRows } from './bareExecution.ts';

export const DROVER_SYSTEM: System = {
  system: 'drover',
  durability: 'SQLite WAL, synchronous FULL, group commit',
};

/** Where a data folder has its database. */
export const STORE_FILE = 'drover.db';

const ROOT = new URL('../../../', import.meta.url).pathname;
const READY_LIMIT_MS = 120_000;
const READY_PERIOD_MS = 10;
/** Every REST path that is used here, in one place. */
const PATHS = {
  ready: '/readyz',
  jobs: '/v1/jobs',
  batch: '/v1/jobs/batch',
  cluster: '/v1/cluster',
  workers: '/v1/workers',
  tokens: '/v1/tokens',
} as const;

export class DroverServer {
  readonly directory: string;
  readonly port: number;
  #child: Child;
  #token = '';

  private constructor(directory: string, port: number) {
    this.directory = directory;
    this.port = port;
    this.#child = this.#spawn();
  }

  static async start(directory: string): Promise<DroverServer> {
    if (!existsSync(join(ROOT, 'drover'))) throw new Error('./drover does not exist');
    const server = new DroverServer(directory, await freePort());
    await server.#ready();
    return server;
  }

  get pid(): number {
    return this.#child.pid;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  get token(): string {
    return this.#token;
  }

  /** Ends it without warning and starts it again on the same data; seconds from start to ready. */
  async crashAndRestart(): Promise<number> {
    killTree(this.#child.pid);
    await this.#child.stop('SIGKILL');
    const began = performance.now();
    this.#child = this.#spawn();
    await this.#ready();
    return (performance.now() - began) / 1000;
  }

  async close(): Promise<void> {
    await this.#child.stop('SIGTERM');
  }

  #spawn(): Child {
    const args = ['up', '--data', this.directory, '--port', String(this.port)];
    // Any free port: another Drover may run on this machine.
    return start(join(ROOT, 'drover'), args, { env: { DROVER_GRPC_PORT: '0' } });
  }

  async #ready(): Promise<void> {
    const connection = join(this.directory, 'connection.json');
    const died = this.#child.exited.then((how) => Promise.reject(new Error(`drover up: ${how}`)));
    const ready = until('drover up is ready', READY_LIMIT_MS, READY_PERIOD_MS, async () => {
      if (!existsSync(connection)) return false;
      try {
        return (await fetch(this.url + PATHS.ready)).status === 200;
      } catch {
        // Not listening yet.
        return false;
      }
    });
    await Promise.race([ready, died]);
    this.#token = (JSON.parse(readFileSync(connection, 'utf8')) as { token: string }).token;
  }

  async call<Data>(method: string, path: string, body?: unknown): Promise<Data> {
    const headers = { authorization: `Bearer ${this.#token}`, 'content-type': 'application/json' };
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    const answer = await fetch(this.url + path, { method, headers, ...sent });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text.slice(0, 300)}`);
    return (JSON.parse(text) as { data: Data }).data;
  }

  async submit(spec: SubmittedSpec): Promise<string> {
    return (await this.call<{ id: string }>('POST', PATHS.jobs, spec)).id;
  }

  async submitMany(count: number): Promise<void> {
    for (let left = count; left > 0; left -= BATCH_SIZE) {
      const jobs = Array.from({ length: Math.min(left, BATCH_SIZE) }, () => PAYLOAD);
      await this.call('POST', PATHS.batch, { jobs });
    }
  }

  job(id: string): Promise<JobView> {
    return this.call<JobView>('GET', `${PATHS.jobs}/${id}`);
  }

  logsPath(id: string): string {
    return `${PATHS.jobs}/${id}/logs`;
  }

  async tasks(): Promise<ClusterView['tasks']> {
    return (await this.call<ClusterView>('GET', PATHS.cluster)).tasks;
  }

  async joinToken(): Promise<string> {
    const token = await this.call<TokenView>('POST', PATHS.tokens, { kind: 'join', name: 'bench' });
    if (token.secret === undefined) throw new Error('the new join token came without its secret');
    return token.secret;
  }

  /**
   * So that jobs meant for other agents, or for nobody, are not taken by the one on this machine.
   */
  async drainLocalAgent(): Promise<void> {
    let workers: WorkerView[] = [];
    await until('the local agent joins', READY_LIMIT_MS, 20, async () => {
      workers = await this.call<WorkerView[]>('GET', PATHS.workers);
      return workers.length > 0;
    });
    for (const worker of workers) await this.call('POST', `${PATHS.workers}/${worker.id}/drain`);
  }

  async localAgentOnline(): Promise<void> {
    await until('the local agent is online', READY_LIMIT_MS, 20, async () => {
      const workers = await this.call<WorkerView[]>('GET', PATHS.workers);
      return workers.some((worker) => worker.state === 'ONLINE' && !worker.draining);
    });
  }

  /** Rows in the store, all tables together. */
  rows(): number {
    const db = new DatabaseSync(join(this.directory, STORE_FILE), { readOnly: true });
    const rows = countRows(db);
    db.close();
    return rows;
  }

  /** `run` keeps the keys of several loads on one server apart; `token`: somebody else's. */
  single(run: string, token = this.#token): RequestShape {
    return this.#shape(PATHS.jobs, run, PAYLOAD, token);
  }

  /** A token of another tenant, who may submit. */
  async tokenOf(tenant: string): Promise<string> {
    const body = { name: 'bench', tenant, roles: ['user'] };
    const { secret } = await this.call<TokenView>('POST', PATHS.tokens, body);
    if (secret === undefined) throw new Error('the new token came without its secret');
    return secret;
  }

  batch(run: string): RequestShape {
    return this.#shape(PATHS.batch, run, {
      jobs: Array.from({ length: BATCH_SIZE }, () => PAYLOAD),
    });
  }

  /** As a sweep of parameters sends it: every command and name is another. */
  sweep(run: string): RequestShape {
    const jobs = Array.from({ length: BATCH_SIZE }, (_, at) => ({
      ...PAYLOAD,
      name: `sweep-${at}`,
      command: [...PAYLOAD.command, `--seed=${at}`],
      env: { ...PAYLOAD.env, SEED: String(at) },
    }));
    return this.#shape(PATHS.batch, run, { jobs });
  }

  #shape(path: string, run: string, body: unknown, token = this.#token): RequestShape {
    return {
      method: 'POST',
      path,
      headers: {
        authorization: `Bearer ${token}`,
        'idempotency-key': `${run}-${COUNTER}`,
      },
      body: JSON.stringify(body),
    };
  }
}
