/** How an agent's calls travel, over real HTTP. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { DroverError } from '../lib/errors.ts';
import type { JoinRequest, SyncRequest } from '../protocol/agent.ts';
import { httpTransport, type HttpTransport } from './transport.ts';

interface Seen {
  path: string | undefined;
  authorization: string | undefined;
  type: string | undefined;
  body: Buffer;
}

let server: Server;
let transport: HttpTransport;
let seen: Seen[];
let answer: (response: ServerResponse) => void;

beforeEach(async () => {
  seen = [];
  server = createServer((request, response) => void handle(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  transport = httpTransport(`http://127.0.0.1:${port}`);
});
afterEach(async () => {
  await transport.close();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  const { authorization } = request.headers;
  const type = request.headers['content-type'];
  seen.push({ path: request.url, authorization, type, body: Buffer.concat(parts) });
  answer(response);
}

const reply = (status: number, body: string) => (response: ServerResponse) =>
  void response.writeHead(status).end(body);

describe('a call', () => {
  test('is a POST with the token and JSON, and its answer', async () => {
    answer = reply(200, '{"worker":"w1"}');
    const joined = await transport.join('drj_1', { name: 'hôst' } as JoinRequest);
    expect(joined).toEqual({ worker: 'w1' });
    await transport.sync('drw_1', { seq: 1 } as SyncRequest);
    const summary = seen.map(({ path, authorization, body }) => [
      path,
      authorization,
      String(body),
    ]);
    expect(summary).toEqual([
      ['/drover.v1.Agent/Join', 'Bearer drj_1', '{"name":"hôst"}'],
      ['/drover.v1.Agent/Sync', 'Bearer drw_1', '{"seq":1}'],
    ]);
    expect(seen[0]?.type).toBe('application/json');
  });

  test('with logs carries bytes', async () => {
    answer = reply(200, '[]');
    const bytes = new Uint8Array([0, 255, 10]);
    expect(await transport.sendLogs('drw_1', bytes)).toEqual([]);
    expect(seen[0]).toMatchObject({
      path: '/drover.v1.Agent/AppendLogs',
      type: 'application/octet-stream',
    });
    expect(new Uint8Array(seen[0]?.body ?? [])).toEqual(bytes);
  });
});

describe('a refusal', () => {
  test('of Drover’s own arrives as one', async () => {
    answer = reply(401, '{"code":"UNAUTHENTICATED","detail":"who?","hint":"join again"}');
    const error = await transport.sync('t', {} as SyncRequest).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(DroverError);
    expect(error).toMatchObject({
      code: 'UNAUTHENTICATED',
      message: 'who?',
      hint: 'join again',
    });
  });

  test.each([
    ['a proxy’s page', 502, '<html>Bad Gateway</html>'],
    ['a code from a newer version', 418, '{"code":"TEAPOT"}'],
    ['an inherited name', 400, '{"code":"toString"}'],
    ['no object', 500, 'null'],
    ['nothing', 503, ''],
  ])('by %s is an error with the status', async (_name, status, body) => {
    answer = reply(status, body);
    const error = await transport.sync('t', {} as SyncRequest).catch((caught: unknown) => caught);
    expect(error).not.toBeInstanceOf(DroverError);
    expect((error as Error).message).toContain(`the server answered ${status}`);
  });

  test('an answer that breaks off is an error', async () => {
    answer = (response) => {
      response.writeHead(200, { 'content-length': '100' });
      response.write('{"half":');
      setImmediate(() => response.destroy());
    };
    await expect(transport.sync('t', {} as SyncRequest)).rejects.toThrow();
  });

  test('nobody there is an error', async () => {
    const nowhere = httpTransport('http://127.0.0.1:1');
    await expect(nowhere.sync('t', {} as SyncRequest)).rejects.toThrow(/ECONNREFUSED/);
    await nowhere.close();
  });
});

test('a held call does not stand in the way of the one that overtakes it', async () => {
  const held: ServerResponse[] = [];
  answer = (response) => void held.push(response);
  const calls = [1, 2, 3].map((seq) => transport.sync('t', { seq } as SyncRequest));
  await expect.poll(() => held.length).toBe(3);
  held[2]?.end('{"epoch":3}');
  expect(await calls[2]).toEqual({ epoch: 3 });
  for (const response of held.slice(0, 2)) response.end('{}');
  await Promise.all(calls);
});
