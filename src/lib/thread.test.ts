/** Calls between threads, over real channels and a real thread. */
import { MessageChannel, Worker, type MessagePort } from 'node:worker_threads';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { DroverError } from './errors.ts';
import { remote, serve } from './thread.ts';

interface Calculator {
  add(a: number, b: number): Promise<number>;
  echo(value: unknown): Promise<unknown>;
  fail(how: string): Promise<never>;
  never(): Promise<never>;
}

const NAMES = ['add', 'echo', 'fail', 'never'] as const;

const calculator: Calculator = {
  add: async (a, b) => a + b,
  echo: async (value) => value,
  fail(how) {
    if (how === 'hint') throw new DroverError('NOT_FOUND', 'no job j1', { hint: 'look again' });
    if (how === 'drover') throw new DroverError('STALE', 'too late');
    if (how === 'error') throw new TypeError('a bug');
    // eslint-disable-next-line typescript/only-throw-error -- what a library might do
    throw 'a text';
  },
  never: () => new Promise(() => undefined),
};

let ports: MessagePort[];
let calls: Calculator;
/** Messages that went each way. */
let sent: { calls: number; replies: number };

beforeEach(() => {
  const { port1, port2 } = new MessageChannel();
  ports = [port1, port2];
  sent = { calls: 0, replies: 0 };
  port2.on('message', () => sent.calls++);
  port1.on('message', () => sent.replies++);
  serve(port2, calculator);
  calls = remote<Calculator>(port1, NAMES);
});
afterEach(() => {
  for (const port of ports) port.close();
});

describe('a call', () => {
  test('is answered with its own result', async () => {
    const sums = await Promise.all([calls.add(1, 2), calls.add(3, 4), calls.add(5, 6)]);
    expect(sums).toEqual([3, 7, 11]);
  });

  test('travels with those that fall together, and so do the answers', async () => {
    await Promise.all(Array.from({ length: 100 }, (_, i) => calls.add(i, i)));
    expect(sent).toEqual({ calls: 1, replies: 1 });
    await calls.add(1, 1);
    expect(sent).toEqual({ calls: 2, replies: 2 });
  });

  test('carries plain data as it is', async () => {
    const data = { text: 'ü🐑', bytes: new Uint8Array([0, 255]), none: null, list: [1, [2]] };
    expect(await calls.echo(data)).toEqual(data);
    expect(await calls.echo(undefined)).toBeUndefined();
  });

  test('may use the object it is served by', async () => {
    const counter = {
      count: 0,
      async next() {
        return ++this.count;
      },
    };
    const { port1, port2 } = new MessageChannel();
    ports.push(port1, port2);
    serve(port2, counter);
    const far = remote<typeof counter>(port1, ['next']);
    expect([await far.next(), await far.next()]).toEqual([1, 2]);
  });

  test('finds its object when several serve one port', async () => {
    serve(ports[1]!, { shout: async (text: string) => text.toUpperCase() });
    const both = remote<Calculator & { shout(text: string): Promise<string> }>(ports[0]!, [
      ...NAMES,
      'shout',
    ]);
    expect(await Promise.all([both.shout('hey'), both.add(1, 1)])).toEqual(['HEY', 2]);
  });
});

describe('an error', () => {
  test('of Drover’s own arrives as one, with code and hint', async () => {
    const error = await calls.fail('hint').catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(DroverError);
    expect(error).toMatchObject({
      code: 'NOT_FOUND',
      message: 'no job j1',
      hint: 'look again',
      status: 404,
    });
    expect(await calls.fail('drover').catch((caught: unknown) => caught)).toMatchObject({
      code: 'STALE',
      hint: undefined,
    });
  });

  test('of another kind arrives with where it came from, and is not Drover’s', async () => {
    const error = await calls.fail('error').catch((caught: unknown) => caught);
    expect(error).not.toBeInstanceOf(DroverError);
    expect((error as Error).message).toBe('a bug');
    expect((error as Error).stack).toMatch(/^TypeError: a bug\n.*thread\.test/s);
    await expect(calls.fail('text')).rejects.toThrow('a text');
  });

  test('does not touch the calls beside it', async () => {
    const results = await Promise.allSettled([
      calls.add(1, 1),
      calls.fail('drover'),
      calls.add(2, 2),
    ]);
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  });
});

describe('a port that closes', () => {
  test('rejects what waits', async () => {
    const waiting = [calls.never(), calls.never()];
    const answers = Promise.allSettled(waiting);
    await calls.add(1, 1);
    ports[1]!.close();
    for (const answer of await answers) {
      expect(answer).toMatchObject({ status: 'rejected', reason: { code: 'UNAVAILABLE' } });
    }
  });

  test('rejects what is asked after', async () => {
    const closed = new Promise((resolve) => ports[0]!.once('close', resolve));
    ports[1]!.close();
    await closed;
    await expect(calls.add(1, 1)).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  });
});

test('a thread answers, and its end is the end of what waits for it', async () => {
  const code = `
    import { workerData } from 'node:worker_threads';
    const { serve } = await import(workerData.module);
    serve(workerData.port, {
      where: async () => (await import('node:worker_threads')).threadId,
      never: () => new Promise(() => {}),
      die: async () => process.exit(3),
    });`;
  const { port1, port2 } = new MessageChannel();
  const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(code)}`), {
    workerData: { port: port2, module: new URL('./thread.ts', import.meta.url).href },
    transferList: [port2],
  });
  const exited = new Promise<number>((resolve) => worker.on('exit', resolve));
  const far = remote<{
    where(): Promise<number>;
    never(): Promise<never>;
    die(): Promise<never>;
  }>(port1, ['where', 'never', 'die']);
  expect(await far.where()).toBe(worker.threadId);
  const waiting = Promise.allSettled([far.never(), far.die()]);
  expect(await exited).toBe(3);
  for (const answer of await waiting) {
    expect(answer).toMatchObject({ status: 'rejected', reason: { code: 'UNAVAILABLE' } });
  }
});
