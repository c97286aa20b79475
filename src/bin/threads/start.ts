/** Starts a thread of this process and hands out a typed way to call it. */
import { getAsset, isSea } from 'node:sea';
import { MessageChannel, Worker, type MessagePort } from 'node:worker_threads';
import { remote } from '../../lib/thread.ts';

export interface Thread<T> {
  calls: T;
  end(): Promise<void>;
}

export interface ThreadData<Options> {
  port: MessagePort;
  options: Options;
}

const THREAD_CODE = 'agent.js';

/** A thread that ends by itself takes the process with it: half a controller (agent) is none. */
export function startThread<T extends object, Options>(
  name: 'state' | 'writer' | 'checkpoint' | 'reader' | 'planner' | 'logs' | 'spool',
  options: Options,
  methods: readonly (keyof T & string)[],
  onDeath: (name: string, error: unknown) => void,
): Thread<T> {
  const { port1, port2 } = new MessageChannel();
  const data: ThreadData<Options> = { port: port2, options };
  // The self-contained agent holds its code a second time, as text, for its one thread.
  const code = isSea() ? getAsset(THREAD_CODE, 'utf8') : new URL(`./${name}.ts`, import.meta.url);
  const worker = new Worker(code, {
    eval: typeof code === 'string',
    name: `drover-${name}`,
    workerData: data,
    transferList: [port2],
    // Rows and messages live for one batch: room for them to die young.
    resourceLimits: { maxYoungGenerationSizeMb: 64 },
  });
  let ending = false;
  let failure: unknown = null;
  worker.on('error', (error) => {
    failure = error;
  });
  worker.on('exit', () => {
    if (!ending) onDeath(name, failure ?? new Error(`thread ${name} ended`));
  });
  return {
    // Batches go to the writer one at a time, and everybody waits for them.
    calls: remote<T>(port1, methods, name !== 'writer'),
    async end() {
      ending = true;
      await worker.terminate();
    },
  };
}
