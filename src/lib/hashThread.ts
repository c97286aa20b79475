/**
 * SHA-256 on a thread of its own, so that bytes are hashed while the next ones come and the last
 * ones are written. It starts with the first large content and ends with `end`.
 */
import { createHash } from 'node:crypto';
import { Worker } from 'node:worker_threads';

export interface Hasher {
  /** The bytes must stay as they are until it resolves; undefined where that is done already. */
  update(bytes: Uint8Array): Promise<void> | undefined;
  /** In hexadecimal digits. */
  digest(): Promise<string>;
  /** What was begun and will not be finished. */
  drop(): void;
}

/** Smaller content is hashed here: to wake another thread costs more than it saves. */
const THREAD_FROM_BYTES = 8 * 1024 * 1024;

/**
 * As text and not as a file, so that it is there in the one-file command too. Messages are answered
 * in their order.
 */
const CODE = `
const { createHash } = require('node:crypto');
const { parentPort } = require('node:worker_threads');
const open = new Map();
parentPort.on('message', ({ id, verb, bytes }) => {
  if (verb === 'drop') return void open.delete(id);
  if (!open.has(id)) open.set(id, createHash('sha256'));
  if (verb === 'update') return parentPort.postMessage(open.get(id).update(bytes) && '');
  parentPort.postMessage(open.get(id).digest('hex'));
  open.delete(id);
});
`;

interface Waiting {
  resolve: (answer: string) => void;
  reject: (error: Error) => void;
}

interface Running {
  worker: Worker;
  waiting: Waiting[];
  /** Why it ended. */
  failure?: Error;
}

export class HashThread {
  #running: Running | undefined;
  #ids = 0;

  /** `bytes` given to a threaded one must be shared memory: others would be copied. */
  hasher(size: number): Hasher {
    if (size < THREAD_FROM_BYTES) return inlineHasher();
    if (!this.#running || this.#running.failure) this.#running = start();
    return threadedHasher(this.#running, ++this.#ids);
  }

  /** What is being hashed fails. */
  async end(): Promise<void> {
    await this.#running?.worker.terminate();
  }
}

function threadedHasher(running: Running, id: number): Hasher {
  return {
    update: async (bytes) => void (await ask(running, { id, verb: 'update', bytes })),
    digest: () => ask(running, { id, verb: 'digest' }),
    drop: () => running.worker.postMessage({ id, verb: 'drop' }, []),
  };
}

function ask({ worker, waiting, failure }: Running, message: object): Promise<string> {
  if (failure) return Promise.reject(failure);
  return new Promise((resolve, reject) => {
    waiting.push({ resolve, reject });
    // Only a question without an answer keeps the process.
    worker.ref();
    worker.postMessage(message, []);
  });
}

function start(): Running {
  const worker = new Worker(CODE, { eval: true, name: 'drover-hash', execArgv: [] });
  const running: Running = { worker, waiting: [] };
  let failure = new Error('the thread that hashes has ended');
  worker.unref();
  worker.on('message', (answer: string) => {
    running.waiting.shift()?.resolve(answer);
    if (running.waiting.length === 0) worker.unref();
  });
  worker.on('error', (error) => (failure = error as Error));
  worker.on('exit', () => {
    running.failure = failure;
    for (const { reject } of running.waiting.splice(0)) reject(failure);
  });
  return running;
}

function inlineHasher(): Hasher {
  const digest = createHash('sha256');
  return {
    update(bytes) {
      digest.update(bytes);
      return undefined;
    },
    digest: () => Promise.resolve(digest.digest('hex')),
    drop() {},
  };
}
