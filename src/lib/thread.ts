/**
 * Calls between threads: an object with async methods on one side, the same interface on the other.
 * Calls and replies that fall together travel as one message. Arguments and results are plain data;
 * a DroverError arrives as one, any other error by its message.
 */
import type { MessagePort, Worker } from 'node:worker_threads';
import { DroverError, type ErrorCode } from './errors.ts';

type Port = MessagePort | Worker;
type Call = [id: number, method: string, args: unknown[]];
type Reply = [id: number, ok: boolean, value: unknown];
type Message = { calls: Call[] } | { replies: Reply[] };

interface WireError {
  code: ErrorCode | null;
  message: string;
  hint?: string;
  /** Where it was thrown, for the log. */
  stack?: string;
}

/** Answers calls that arrive on the port by calling `target`. */
export function serve(port: Port, target: object): void {
  const methods = target as Record<string, (...args: unknown[]) => Promise<unknown>>;
  const replies = sender<Reply>((batch) => port.postMessage({ replies: batch }));
  port.on('message', (message: Message) => {
    if (!('calls' in message)) return;
    for (const [id, method, args] of message.calls) {
      // Several objects may serve one port; each answers for its own methods.
      if (!methods[method]) continue;
      void answer(methods, method, args).then(
        (value) => replies([id, true, value]),
        (error: unknown) => replies([id, false, toWire(error)]),
      );
    }
  });
}

async function answer(
  methods: Record<string, (...args: unknown[]) => Promise<unknown>>,
  method: string,
  args: unknown[],
): Promise<unknown> {
  return await methods[method]?.apply(methods, args);
}

const GONE: WireError = { code: 'UNAVAILABLE', message: 'that part of Drover has stopped' };

/**
 * The far side's interface. When the port closes, what waits is rejected, and all that follows.
 * `gather`: calls that fall together travel together; without it each leaves at once.
 */
export function remote<T extends object>(
  port: Port,
  names: readonly (keyof T & string)[],
  gather = true,
): T {
  const waiting = new Map<number, (reply: Reply) => void>();
  const send = (batch: Call[]): void =>
    port.postMessage(
      { calls: batch },
      batch.flatMap(([, , args]) => largeBuffers(args)),
    );
  const calls = gather ? sender<Call>(send) : (call: Call) => send([call]);
  let next = 0;
  let closed = false;
  port.on('message', (message: Message) => {
    if (!('replies' in message)) return;
    for (const reply of message.replies) {
      waiting.get(reply[0])?.(reply);
      waiting.delete(reply[0]);
    }
  });
  port.on('close', () => {
    closed = true;
    for (const [id, settle] of waiting) settle([id, false, GONE]);
    waiting.clear();
  });
  const call =
    (name: string) =>
    (...args: unknown[]) =>
      new Promise((resolve, reject) => {
        if (closed) return reject(fromWire(GONE));
        const id = next++;
        waiting.set(id, ([, ok, value]) =>
          ok ? resolve(value) : reject(fromWire(value as WireError)),
        );
        calls([id, name, args]);
      });
  return Object.fromEntries(names.map((name) => [name, call(name)])) as T;
}

/** Smaller ones may lie in a pool that others use; copying them is cheap. */
const LARGE_BYTES = 128 * 1024;

/**
 * Buffers behind lists of things with `bytes`, such as log chunks: they move to the other thread
 * instead of being copied, so the caller must be done with them.
 */
function largeBuffers(args: unknown[]): ArrayBuffer[] {
  const found = new Set<ArrayBuffer>();
  for (const list of args) {
    if (!Array.isArray(list)) continue;
    for (const item of list as { bytes?: unknown }[]) {
      if (!(item?.bytes instanceof Uint8Array)) break;
      const { buffer } = item.bytes;
      if (buffer instanceof ArrayBuffer && buffer.byteLength >= LARGE_BYTES) found.add(buffer);
    }
  }
  return [...found];
}

/** Collects until the input that is already here was handled, then sends once. */
function sender<Item>(send: (batch: Item[]) => void): (item: Item) => void {
  let batch: Item[] = [];
  return (item) => {
    if (batch.push(item) > 1) return;
    setImmediate(() => {
      const full = batch;
      batch = [];
      send(full);
    });
  };
}

function toWire(error: unknown): WireError {
  if (error instanceof DroverError) {
    const { code, message, hint } = error;
    return hint === undefined ? { code, message } : { code, message, hint };
  }
  if (!(error instanceof Error)) return { code: null, message: String(error) };
  return { code: null, message: error.message, stack: error.stack ?? '' };
}

function fromWire(wire: WireError): Error {
  if (wire.code === null) {
    const error = new Error(wire.message);
    if (wire.stack) error.stack = wire.stack;
    return error;
  }
  return new DroverError(
    wire.code,
    wire.message,
    wire.hint === undefined ? {} : { hint: wire.hint },
  );
}
