/**
 * A real cluster for tests: `drover controller --with-gateway` and any number of `drover agent`, in
 * one temporary folder. Each can be killed, stopped and started again; none outlives `close`.
 */
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createClient, type DroverClient } from '../../src/protocol/client.ts';
import type { AttemptView, JobView, LogRecordView } from '../../src/protocol/jobs.ts';
import type { SubmittedSpec } from '../../src/protocol/jobSpec.ts';
import { freePort } from './postgres.ts';
import { DROVER, killPid, processesOf, startProcess, tail, type TestProcess } from './processes.ts';
import { PATIENCE_MS, until } from './wait.ts';

export interface TestServerOptions {
  /** Settings, as `DROVER_SECTION_KEY`, for the controller and its agents. */
  env?: Record<string, string>;
  /** Put before the controller's command: strace, faketime. */
  wrapper?: string[];
  /** The controller's data folder, where not a fresh one: on a small disk, say. */
  dataDir?: string;
}

interface AgentOptions {
  env?: Record<string, string>;
  wrapper?: string[];
  resources?: string;
  /** Where it finds the cluster: a proxy, say. */
  url?: string;
  dataDir?: string;
}

export interface TestAgent {
  name: string;
  dataDir: string;
  /** Its process now, or the last one. */
  process(): TestProcess;
  /** As `kill -9`. */
  kill(): Promise<void>;
  stop(): Promise<void>;
  start(): void;
  /** Pid of the task as the shim wrote it down; undefined before it runs. */
  taskPid(uid: string): number | undefined;
  attemptFolders(): string[];
}

export interface TestServer {
  root: string;
  dataDir: string;
  url: string;
  token: string;
  joinToken: string;
  client: DroverClient;
  process(): TestProcess;
  /** Starts it; resolves when /readyz answers 200, with how many ms that took. */
  start(): Promise<number>;
  kill(): Promise<void>;
  stop(): Promise<void>;
  agent(name: string, options?: AgentOptions): TestAgent;
  /** Resolves when so many workers are ONLINE. */
  online(count: number): Promise<void>;
  submit(spec: SubmittedSpec, key?: string): Promise<string>;
  /** Submits and waits until its first attempt runs. */
  running(spec: SubmittedSpec): Promise<{ job: string; attempt: AttemptView }>;
  attempts(job: string): Promise<AttemptView[]>;
  ended(job: string, limitMs?: number): Promise<JobView>;
  /** All of an ended job's stdout as text: follows until the log is complete. */
  stdout(job: string): Promise<string>;
  stdoutSoFar(job: string): Promise<string>;
  /** Cancels what is live, stops everything, and throws if a process of it is left. */
  close(): Promise<void>;
}

const SETTINGS = {
  DROVER_GRPC_ENABLED: 'false',
  DROVER_LOG_LEVEL: 'info',
};
let keys = 0;

export async function startServer(options: TestServerOptions = {}): Promise<TestServer> {
  const root = mkdtempSync(path.join(tmpdir(), 'drover-faults-'));
  const dataDir = options.dataDir ?? path.join(root, 'data');
  const port = await freePort();
  const agents: TestAgent[] = [];
  const env = { HOME: root, ...SETTINGS, DROVER_DATA: dataDir, ...options.env };
  let current: TestProcess | undefined;
  let output = '';
  const folders = (): string[] => [root, dataDir, ...agents.map((agent) => agent.dataDir)];

  const server: TestServer = {
    root,
    dataDir,
    url: `http://127.0.0.1:${port}`,
    token: '',
    joinToken: '',
    client: createClient({ url: '' }),
    process: () => current ?? fail('the server was never started'),
    async start() {
      output += current?.output() ?? '';
      const begun = performance.now();
      const command = [DROVER, 'controller', '--with-gateway', '--port', String(port)];
      current = startProcess([...(options.wrapper ?? []), ...command], { cwd: root, env });
      await whenReady(server.url, current);
      const tookMs = performance.now() - begun;
      if (server.token === '') Object.assign(server, connectionOf(dataDir, server.url));
      return tookMs;
    },
    kill: async () => void (await server.process().stop('SIGKILL')),
    stop: async () => expectCleanEnd('controller', server.process()),
    agent(name, agentOptions = {}) {
      const agent = createAgent(server, name, { ...env, ...agentOptions.env }, agentOptions);
      agents.push(agent);
      return agent;
    },
    ...calls(() => server.client),
    async close() {
      try {
        await endAll(server, agents);
        await until('no process is left', () => noneLeft(folders()), 10_000, 100);
      } catch (error) {
        throw new Error(`the cluster did not end well:\n${tail(output)}`, { cause: error });
      } finally {
        for (const { pid } of processesOf(folders())) killPid(pid, 'SIGKILL');
        rmSync(root, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
      }
    },
  };
  try {
    await server.start();
  } catch (error) {
    for (const { pid } of processesOf(folders())) killPid(pid, 'SIGKILL');
    rmSync(root, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
    throw error;
  }
  return server;
}

function createAgent(
  server: TestServer,
  name: string,
  env: Record<string, string>,
  options: AgentOptions,
): TestAgent {
  const dataDir = options.dataDir ?? path.join(server.root, `agent-${name}`);
  mkdirSync(dataDir, { recursive: true });
  let current: TestProcess | undefined;
  const agent: TestAgent = {
    name,
    dataDir,
    process: () => current ?? fail('the agent was never started'),
    kill: async () => void (await agent.process().stop('SIGKILL')),
    stop: async () => expectCleanEnd(`agent ${name}`, agent.process()),
    start() {
      const join = ['agent', '--join', options.url ?? server.url, '--data', dataDir];
      const what = ['--name', name, '--resources', options.resources ?? 'cpus=16,mem=1Gi'];
      const command = [...(options.wrapper ?? []), DROVER, ...join, ...what];
      const tokens = { DROVER_JOIN_TOKEN: server.joinToken };
      current = startProcess(command, { cwd: server.root, env: { ...env, ...tokens } });
    },
    taskPid(uid) {
      try {
        const text = readFileSync(path.join(dataDir, 'attempts', uid, 'pid'), 'latin1');
        return Number(text.split(' ')[0]) || undefined;
      } catch {
        // Not started yet, or forgotten.
        return undefined;
      }
    },
    attemptFolders: () => readdirSync(path.join(dataDir, 'attempts')),
  };
  agent.start();
  return agent;
}

/** What most tests ask, in a sentence each. */
function calls(client: () => DroverClient) {
  const attempts = async (job: string): Promise<AttemptView[]> =>
    (await client().listAttempts(job, { limit: 500 })).items;
  const submit = async (spec: SubmittedSpec, key = `test-${++keys}`): Promise<string> =>
    (await client().submitJob(spec, key)).id;
  return {
    attempts,
    submit,
    async online(count: number) {
      await until(`${count} workers ONLINE`, async () => {
        const { items } = await client().listWorkers({});
        return items.filter((worker) => worker.state === 'ONLINE').length === count;
      });
    },
    async running(spec: SubmittedSpec) {
      const job = await submit(spec);
      const attempt = await until(`job ${job} runs`, async () =>
        (await attempts(job)).find((one) => one.state === 'RUNNING'),
      );
      return { job, attempt };
    },
    ended: (job: string, limitMs = PATIENCE_MS): Promise<JobView> =>
      until(
        `job ${job} ended`,
        async () => {
          const view = await client().waitJob(job, 1000);
          return view.endedAtMs !== null && view;
        },
        limitMs,
      ),
    stdout: (job: string) =>
      textOf(client().followLogs(job, { signal: AbortSignal.timeout(PATIENCE_MS) })),
    stdoutSoFar: (job: string) => textOf(client().readLogs(job, {})),
  };
}

async function textOf(records: AsyncIterable<LogRecordView>): Promise<string> {
  const parts: Buffer[] = [];
  for await (const { stream, text, base64 } of records) {
    if (stream === 'stdout')
      parts.push(base64 ? Buffer.from(base64, 'base64') : Buffer.from(text!));
  }
  return Buffer.concat(parts).toString();
}

export function connectionOf(dataDir: string, url: string) {
  const text = readFileSync(path.join(dataDir, 'connection.json'), 'utf8');
  const { token, joinToken } = JSON.parse(text) as { token: string; joinToken: string };
  return { token, joinToken, client: createClient({ url, token }) };
}

async function whenReady(url: string, server: TestProcess): Promise<void> {
  const look = async (): Promise<boolean> => {
    const response = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(5000) });
    await response.arrayBuffer();
    return response.status === 200;
  };
  let gone = false;
  void server.ended.then(() => (gone = true));
  await until(`${url} is ready`, async () => gone || look(), PATIENCE_MS, 10);
  if (gone) throw new Error(`the server ended before it was ready:\n${tail(server.output())}`);
}

async function expectCleanEnd(what: string, process: TestProcess): Promise<void> {
  const { code, signal } = await process.stop();
  if (code === 0) return;
  throw new Error(`the ${what} ended with ${signal ?? code}:\n${tail(process.output())}`);
}

/** The agents end before the server, so that all reports are in. */
async function endAll(server: TestServer, agents: TestAgent[]): Promise<void> {
  const lives = (process: TestProcess): boolean => process.end() === undefined;
  if (lives(server.process())) await cancelAll(server, agents);
  for (const agent of agents) if (lives(agent.process())) await agent.stop();
  if (lives(server.process())) await server.stop();
}

/** What waits may wait on: with drained workers it cannot begin while the rest is cancelled. */
async function cancelAll(server: TestServer, agents: TestAgent[]): Promise<void> {
  const { client } = server;
  for (const { id } of (await client.listWorkers({})).items) {
    await client.setDraining(id, true).catch((error: { code?: string }) => {
      // Machines of pools may go at any moment.
      if (error.code !== 'NOT_FOUND') throw error;
    });
  }
  const { items } = await client.listJobs({ state: 'RUNNING', limit: 500 });
  for (const { id } of items) await client.cancelJob(id);
  if (!agents.some((agent) => agent.process().end() === undefined)) return;
  await until('every worker is empty', async () => {
    const { items } = await client.listWorkers({});
    return items.every((worker) => worker.attempts === 0);
  });
}

function noneLeft(folders: string[]): boolean {
  const left = processesOf(folders);
  if (left.length === 0) return true;
  throw new Error(left.map(({ pid, command }) => `${pid} ${command}`).join('\n'));
}

function fail(message: string): never {
  throw new Error(message);
}
