/**
 * What `import { Client } from 'drover'` gives: jobs from submit to result over REST. See
 * docs/typescript.md.
 */
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { hashFile, missingBlobs, putBlob } from './blobClient.ts';
import { createClient, eachItem, type DroverClient, type JobFilters } from './client.ts';
import { useClientTlsFiles } from './clientTls.ts';
import type { WorkerView } from './fleet.ts';
import { fetchFolder, fetchManifest } from './folderClient.ts';
import type { HttpOptions } from './http.ts';
import type {
  AttemptView,
  CheckpointView,
  EventView,
  JobView,
  LogRecordView,
  ResultView,
  TaskView,
} from './jobs.ts';
import type { SubmittedSpec } from './jobSpec.ts';
import type { MetricOptions } from './follow.ts';
import type { MetricSeries } from './metrics.ts';
import type { WhyView } from './why.ts';

export { ApiError, ConnectionError, createClient } from './client.ts';
export type { DroverClient, JobFilters, ListPage, LogOptions, PageOptions } from './client.ts';
export type { BudgetView, PlanView, UsageRow } from './budgets.ts';
export type { ClusterView, TokenView, WorkerView } from './fleet.ts';
export type { Violation } from './http.ts';
export type {
  AttemptView,
  CheckpointView,
  EventView,
  JobView,
  LogRecordView,
  QueueEntry,
  ResultView,
  TaskView,
} from './jobs.ts';
export type { SubmittedSpec as JobSpec } from './jobSpec.ts';
export type { WhyView } from './why.ts';

export interface ClientOptions {
  /** `http://HOST:PORT`; DROVER_URL where it is left out. */
  url?: string | undefined;
  /** DROVER_TOKEN where it is left out. */
  token?: string | undefined;
  userAgent?: string | undefined;
  /**
   * A PEM file of authorities to trust beside the public ones, from then on in all of this process;
   * DROVER_CA_FILE where it is left out.
   */
  caFile?: string | undefined;
}

export interface SubmitOptions {
  /** Two calls with one key and one spec give one job. A new key each call when left out. */
  idempotencyKey?: string | undefined;
  signal?: AbortSignal | undefined;
}

export interface WaitOptions {
  /** After so long a WaitTimeout is thrown; the job goes on. */
  timeoutMs?: number | undefined;
  signal?: AbortSignal | undefined;
}

export interface ReadLogOptions {
  /** Also what is to come, until the job has ended; a broken connection is resumed. */
  follow?: boolean | undefined;
  /** Only this task's index. */
  task?: number | undefined;
  /** Only the last so many lines. */
  tail?: number | undefined;
  sinceMs?: number | undefined;
  signal?: AbortSignal | undefined;
}

/** The longest wait one call asks for; the server's own limit is a minute. */
const WAIT_CALL_MS = 30_000;
/** Jobs that one call of `submitAll` may hold: the server's limit. */
const BATCH_JOBS = 1000;

export class WaitTimeout extends Error {
  readonly job: string;
  constructor(job: string, state: string, timeoutMs: number) {
    super(`job ${job} is ${state} after ${timeoutMs} ms; \`drover why ${job}\` says what holds it`);
    this.name = 'WaitTimeout';
    this.job = job;
  }
}

/** The job ended in another way than SUCCEEDED. */
export class JobFailed extends Error {
  readonly job: JobView;
  constructor(job: JobView) {
    super(`job ${job.id} is ${job.state}${job.reason === '' ? '' : `: ${job.reason}`}`);
    this.name = 'JobFailed';
    this.job = job;
  }
}

export class Client {
  /** Every REST call, one function each. */
  readonly rest: DroverClient;
  readonly #options: HttpOptions;

  constructor(options: ClientOptions = {}) {
    const url = options.url ?? process.env['DROVER_URL'];
    if (!url) throw new TypeError('no server is named: pass {url}, or set DROVER_URL');
    const token = options.token ?? process.env['DROVER_TOKEN'];
    this.#options = { url, token, userAgent: options.userAgent ?? 'drover-node' };
    const { DROVER_CA_FILE, DROVER_CERT_FILE, DROVER_KEY_FILE } = process.env;
    const caFile = options.caFile ?? DROVER_CA_FILE;
    useClientTlsFiles({ caFile, certFile: DROVER_CERT_FILE, keyFile: DROVER_KEY_FILE });
    this.rest = createClient(this.#options);
  }

  /** Sends a file, unless the server has it; what comes is a `uri` for a spec's `inputs`. */
  async upload(file: string): Promise<string> {
    const { hash, size } = await hashFile(file);
    const [missing] = await missingBlobs(this.#options, [hash]);
    if (missing) await putBlob(this.#options, file, { hash, size });
    return `blob:${hash}`;
  }

  /** Fetches the files of a result into a folder, which is made; what is there is replaced. */
  async download(result: Pick<ResultView, 'manifest'>, folder: string): Promise<void> {
    await mkdir(folder, { recursive: true });
    const scratch = path.join(folder, `.drover-${crypto.randomUUID()}`);
    const listed = await fetchManifest(this.#options, result.manifest, scratch);
    await fetchFolder(this.#options, listed, folder);
  }

  /** Sent again after a broken connection under the same key, so that one job comes of it. */
  async submit(spec: SubmittedSpec, options: SubmitOptions = {}): Promise<Job> {
    const key = options.idempotencyKey ?? crypto.randomUUID();
    const { id } = await this.rest.submitJob(spec, key, options.signal);
    return new Job(this, id);
  }

  /** All are accepted or none, for each thousand. */
  async submitAll(specs: SubmittedSpec[], options: SubmitOptions = {}): Promise<Job[]> {
    const key = options.idempotencyKey ?? crypto.randomUUID();
    const jobs: Job[] = [];
    for (let first = 0; first < specs.length; first += BATCH_JOBS) {
      const part = specs.slice(first, first + BATCH_JOBS);
      const partKey = `${key}-${first / BATCH_JOBS}`;
      const { ids } = await this.rest.submitBatch(part, partKey, options.signal);
      jobs.push(...ids.map((id) => new Job(this, id)));
    }
    return jobs;
  }

  /** A handle; the server is asked when it is used. */
  job(id: string): Job {
    return new Job(this, id);
  }

  /** Newest first, page by page as they are read. */
  jobs(filters: JobFilters = {}): AsyncGenerator<JobView> {
    return eachItem((page) => this.rest.listJobs({ ...filters, ...page }));
  }

  workers(): AsyncGenerator<WorkerView> {
    return eachItem((page) => this.rest.listWorkers(page));
  }
}

export class Job {
  readonly id: string;
  readonly #client: Client;

  constructor(client: Client, id: string) {
    this.#client = client;
    this.id = id;
  }

  /** As it is now. */
  view(): Promise<JobView> {
    return this.#rest.getJob(this.id);
  }

  /** The job when it has ended, however it did. */
  async wait({ timeoutMs, signal }: WaitOptions = {}): Promise<JobView> {
    const giveUpAt = performance.now() + (timeoutMs ?? Number.POSITIVE_INFINITY);
    for (;;) {
      const left = Math.max(0, giveUpAt - performance.now());
      const waitMs = Math.floor(Math.min(WAIT_CALL_MS, left));
      const view = await this.#rest.waitJob(this.id, waitMs, signal);
      if (view.endedAtMs !== null) return view;
      if (performance.now() >= giveUpAt) throw new WaitTimeout(this.id, view.state, timeoutMs ?? 0);
    }
  }

  /** Waits, and throws JobFailed unless it SUCCEEDED. */
  async check(options: WaitOptions = {}): Promise<JobView> {
    const view = await this.wait(options);
    if (view.state !== 'SUCCEEDED') throw new JobFailed(view);
    return view;
  }

  /** What is there, or with `follow` all of it as it comes. */
  logs({ follow = false, ...query }: ReadLogOptions = {}): AsyncGenerator<LogRecordView> {
    return follow ? this.#rest.followLogs(this.id, query) : this.#rest.readLogs(this.id, query);
  }

  /** Everything it writes to one stream until it has ended. */
  async output(stream: 'stdout' | 'stderr' = 'stdout'): Promise<string> {
    const chunks: Uint8Array[] = [];
    for await (const record of this.logs({ follow: true })) {
      if (record.stream === stream) chunks.push(bytesOf(record));
    }
    return Buffer.concat(chunks).toString('utf8');
  }

  /** What a task left, the first one where none is named; NOT_FOUND where it left nothing. */
  result(task?: number): Promise<ResultView> {
    return this.#rest.getResult(this.id, task);
  }

  /** Fetches what a task left into a folder. */
  async download(folder: string, task?: number): Promise<ResultView> {
    const result = await this.result(task);
    await this.#client.download(result, folder);
    return result;
  }

  /** What is measured of it, and what it logged itself: a series by task and name. */
  metrics(query: MetricOptions = {}): Promise<MetricSeries[]> {
    return this.#rest.metrics(this.id, query);
  }

  /** What its tasks can resume from, by task, oldest first. */
  checkpoints(task?: number): AsyncGenerator<CheckpointView> {
    return eachItem((page) => this.#rest.listCheckpoints(this.id, { task, ...page }));
  }

  /** Returns when it is recorded; running tasks get TERM, and KILL after their grace time. */
  cancel(): Promise<JobView> {
    return this.#rest.cancelJob(this.id);
  }

  why(): Promise<WhyView> {
    return this.#rest.why(this.id);
  }

  tasks(): AsyncGenerator<TaskView> {
    return eachItem((page) => this.#rest.listTasks(this.id, page));
  }

  attempts(): AsyncGenerator<AttemptView> {
    return eachItem((page) => this.#rest.listAttempts(this.id, page));
  }

  events(): AsyncGenerator<EventView> {
    return eachItem((page) => this.#rest.listEvents(this.id, page));
  }

  get #rest(): DroverClient {
    return this.#client.rest;
  }
}

/** The bytes of a record: text, or what is no valid UTF-8. */
export function bytesOf(record: LogRecordView): Uint8Array {
  return record.base64 === undefined
    ? Buffer.from(record.text ?? '', 'utf8')
    : Buffer.from(record.base64, 'base64');
}
