/**
 * Helpers of this folder's tests: a real runtime on a temporary folder, and waiting for what it
 * shows.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sleep, systemClock } from '../../lib/clock.ts';
import { silentLog } from '../../lib/log.ts';
import type { AttemptOrder, Observation } from '../../protocol/agent.ts';
import { readProcesses, type Processes } from './folder.ts';
import { createProcessRuntime } from './process.ts';
import type { ProcessRuntime, ProcessRuntimeOptions } from './processRuntime.ts';
import { findByMarker } from './processes.ts';

let counter = 0;

export function order(command: string[], more: Partial<AttemptOrder> = {}): AttemptOrder {
  return {
    uid: `u${process.pid}-${Date.now().toString(36)}-${++counter}`,
    job: 'j1',
    task: 'j1.0',
    index: 0,
    n: 1,
    command,
    env: {},
    workdir: '',
    cpuMillis: 1000,
    memoryBytes: 0,
    devices: [],
    share: 1000,
    ports: [],
    graceMs: 5000,
    attemptLeaseMs: 300_000,
    ...more,
  };
}

export const shell = (script: string, more: Partial<AttemptOrder> = {}): AttemptOrder =>
  order(['sh', '-c', script], more);

/** A data folder whose attempts, runtimes and watchdog are gone after `clean`. */
export class Bench {
  readonly dataDir: string;
  readonly #runtimes: ProcessRuntime[] = [];

  constructor(dataDir = mkdtempSync(join(tmpdir(), 'drover-runtime-'))) {
    this.dataDir = dataDir;
  }

  open(options: Partial<ProcessRuntimeOptions> = {}): ProcessRuntime {
    const runtime = createProcessRuntime({
      dataDir: this.dataDir,
      clock: systemClock,
      log: silentLog,
      ...options,
    });
    this.#runtimes.push(runtime);
    return runtime;
  }

  directory(uid: string): string {
    return join(this.dataDir, 'attempts', uid);
  }

  read(uid: string, file: string): string {
    return readFileSync(join(this.directory(uid), file), 'utf8');
  }

  async processes(uid: string): Promise<Processes> {
    const found = await eventually(() => readProcesses(this.directory(uid)), 'a pid file');
    if (found === 'none') throw new Error(`${uid} was not started`);
    return found;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.clean();
  }

  async clean(): Promise<void> {
    for (const runtime of this.#runtimes) await runtime.close();
    const last = this.open();
    for (const { observation } of last.list()) {
      last.stop({ uid: observation.uid, cause: 'cancelled', graceMs: 0 });
    }
    for (const { observation } of last.list()) await ended(last, observation.uid);
    await last.close();
    // The spare of an agent killed a moment ago may still have been on its way out.
    while (readdirSync(join(this.dataDir, 'spares')).length > 0) await this.open().close();
    // Its watchdog sees the folder go and ends too.
    rmSync(this.dataDir, { recursive: true, force: true });
  }
}

export function observe(runtime: ProcessRuntime, uid: string): Observation | undefined {
  return runtime.list().find((attempt) => attempt.observation.uid === uid)?.observation;
}

export async function eventually<T>(
  look: () => T | undefined | false,
  what: string,
  limitMs = 8000,
): Promise<T> {
  const until = performance.now() + limitMs;
  for (;;) {
    const found = look();
    if (found !== undefined && found !== false) return found;
    if (performance.now() > until) throw new Error(`waited ${limitMs} ms in vain for ${what}`);
    await sleep(systemClock, 5);
  }
}

export function inState(
  runtime: ProcessRuntime,
  uid: string,
  state: Observation['state'],
): Promise<Observation> {
  return eventually(() => {
    const seen = observe(runtime, uid);
    return seen?.state === state ? seen : undefined;
  }, `${uid} to be ${state}`);
}

export const ended = (runtime: ProcessRuntime, uid: string): Promise<Observation> =>
  inState(runtime, uid, 'ENDED');

export async function run(runtime: ProcessRuntime, task: AttemptOrder): Promise<Observation> {
  runtime.start(task);
  return ended(runtime, task.uid);
}

/** Pids that carry the attempt's marker. */
export function marked(uid: string): number[] {
  const nobody = { task: -1, taskBegan: '0', shim: 0, shimBegan: '0', bootId: '' };
  return findByMarker(uid, nobody);
}

const here = (path: string): string => JSON.stringify(new URL(path, import.meta.url).href);

/** A real agent process that starts these orders and then only lives. */
export async function spawnAgent(
  dataDir: string,
  orders: AttemptOrder[],
  options: Partial<ProcessRuntimeOptions> = {},
): Promise<ChildProcess> {
  const source = `
    import { createProcessRuntime } from ${here('process.ts')};
    import { systemClock } from ${here('../../lib/clock.ts')};
    import { silentLog } from ${here('../../lib/log.ts')};
    const { orders, ...options } = JSON.parse(process.env.ORDERS);
    const runtime = createProcessRuntime({ ...options, clock: systemClock, log: silentLog });
    for (const order of orders) runtime.start(order);
    runtime.onChange(() => {
      const all = runtime.list().map((attempt) => attempt.observation.state);
      if (!all.includes('STARTING')) process.stdout.write('started ');
    });
    setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', source], {
    env: { ...process.env, ORDERS: JSON.stringify({ ...options, dataDir, orders }) },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let said = '';
  child.stdout.on('data', (bytes) => {
    said += String(bytes);
  });
  await eventually(() => said.includes('started'), 'the agent to start its attempts');
  return child;
}

export function kill(agent: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    agent.once('exit', () => resolve());
    agent.kill('SIGKILL');
  });
}
