/** The relay between a real client and a real server: what passes, what does not, and how. */
import { createHash, randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { WebSocketServer, WebSocket } from 'ws';
import { silentLog } from '../lib/log.ts';
import { startRelay, type Relay } from './relay.ts';

type Handler = (request: IncomingMessage, response: ServerResponse) => void;
const MIB = 1024 * 1024;

let gateway: Server;
let sockets: WebSocketServer;
let relay: Relay;
let seen: IncomingMessage[] = [];
let answer: Handler;

beforeAll(async () => {
  gateway = createServer((request, response) => {
    seen.push(request);
    answer(request, response);
  });
  sockets = new WebSocketServer({ noServer: true });
  gateway.on('upgrade', (request, socket, head) => {
    seen.push(request);
    if (request.headers.authorization !== 'Bearer good') {
      socket.end('HTTP/1.1 401 Unauthorized\r\ncontent-length: 2\r\n\r\nno');
      return;
    }
    sockets.handleUpgrade(request, socket, head, (one) => {
      one.on('message', (data, isBinary) => one.send(data, { binary: isBinary }));
    });
  });
  await new Promise<void>((resolve) => gateway.listen(0, '127.0.0.1', resolve));
  relay = await start();
});
afterAll(async () => {
  await relay.close();
  gateway.closeAllConnections();
  await new Promise((resolve) => gateway.close(resolve));
});
beforeEach(() => {
  seen = [];
  answer = (_request, response) => void response.end('ok');
});

function target(): URL {
  return new URL(`http://127.0.0.1:${(gateway.address() as AddressInfo).port}`);
}

function start(options: Partial<Parameters<typeof startRelay>[0]> = {}): Promise<Relay> {
  return startRelay({ target: target(), host: '127.0.0.1', port: 0, log: silentLog, ...options });
}

/** Bytes as they are, since clients tidy up what they send. */
function raw(text: string, at: Relay = relay): Promise<string> {
  const { hostname, port } = new URL(at.url);
  return new Promise((resolve, reject) => {
    let all = '';
    const socket: Socket = connect(Number(port), hostname, () => socket.write(text));
    socket.setEncoding('latin1');
    socket.on('data', (piece) => (all += String(piece)));
    socket.on('error', reject);
    socket.on('close', () => resolve(all));
  });
}

test.each([
  ['POST', '/drover.v1.Agent/Sync'],
  ['PUT', '/v1/blobs/sha256:0123'],
  ['HEAD', '/v1/blobs/sha256:0123'],
  ['POST', '/v1/blobs/missing'],
  ['GET', '/install/join.sh'],
  ['GET', '/install/agent.gz?platform=linux-x64'],
])('%s %s passes', async (method, path) => {
  const response = await fetch(relay.url + path, { method });
  expect(response.status).toBe(200);
  expect(seen.map(({ url }) => url)).toEqual([path]);
});

test.each([
  ['POST', '/drover.v1.Agent/ExchangeCommands'],
  ['POST', '/drover.v1.agent/exchangecommands'],
  ['POST', '/drover.v1.Agent/ExchangeCommands?x=1'],
  ['POST', '/drover.v1.Agent/Exchange%43ommands'],
  ['POST', '/drover.v1.Coordinator/Submit'],
  ['GET', '/v1/jobs'],
  ['POST', '/v1/jobs'],
  ['GET', '/v1/blobs/../jobs'],
  ['GET', '/v1/blobs/%2e%2e/jobs'],
  ['GET', '/v1/blobs//jobs'],
  ['GET', '/install/..'],
  ['GET', '/v1/tunnel'],
  ['GET', '/'],
  ['DELETE', '/v1/blobs/sha256:0123'],
  ['GET', 'http://elsewhere/install/join.sh'],
])('%s %s does not', async (method, path) => {
  const head = `${method} ${path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`;
  const said = await raw(head);
  expect(said).toMatch(/^HTTP\/1.1 404 /);
  expect(said).toContain('"code":"NOT_FOUND"');
  expect(seen).toEqual([]);
});

test('headers of one connection end there, all others pass both ways', async () => {
  answer = (_request, response) => {
    response.setHeader('x-two', ['a', 'b']);
    response.setHeader('connection', 'x-mine');
    response.setHeader('x-mine', '1');
    response.statusCode = 418;
    response.end('{}');
  };
  const said = await raw(
    'POST /drover.v1.Agent/Sync HTTP/1.1\r\nhost: relay\r\nauthorization: Bearer t\r\n' +
      'connection: close, x-hop\r\nx-hop: 1\r\nte: trailers\r\nproxy-authorization: Basic x\r\n' +
      'x-forwarded-for: 1.2.3.4\r\nx-kept: yes\r\ncontent-length: 2\r\n\r\n{}',
  );
  const [request] = seen;
  expect(request?.headers).toMatchObject({ authorization: 'Bearer t', 'x-kept': 'yes' });
  const own = { host: target().host, 'x-forwarded-for': '127.0.0.1' };
  expect(request?.headers).toMatchObject(own);
  for (const name of ['x-hop', 'te', 'proxy-authorization']) {
    expect(request?.headers).not.toHaveProperty(name);
  }
  expect(said).toMatch(/^HTTP\/1.1 418 /);
  expect(said).toMatch(/x-two: a\r\nx-two: b/i);
  expect(said).not.toMatch(/x-mine: 1/i);
});

test('the body of a request that has none never becomes a second one', async () => {
  const inner = 'GET /v1/jobs HTTP/1.1\r\nhost: x\r\n\r\n';
  await raw(
    `GET /install/agent HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n` +
      `${inner.length.toString(16)}\r\n${inner}\r\n0\r\n\r\n` +
      'GET /install/agent HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n',
  );
  expect(seen.map(({ url }) => url)).toEqual(['/install/agent', '/install/agent']);
});

test('bodies stream both ways: neither side waits for the end of the other', async () => {
  const hash = createHash('sha256');
  let received = 0;
  answer = (request, response) => {
    response.writeHead(200);
    response.write('started');
    request.on('data', (piece: Buffer) => {
      hash.update(piece);
      received += piece.length;
    });
    request.on('end', () => response.end());
  };
  const pieces = Array.from({ length: 64 }, () => randomBytes(MIB));
  const expected = createHash('sha256');
  for (const piece of pieces) expected.update(piece);
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      // The rest is not sent before the answer has begun to arrive.
      if (pieces.length === 63) await begun;
      const piece = pieces.shift();
      if (piece) controller.enqueue(piece);
      else controller.close();
    },
  });
  const response = await fetch(`${relay.url}/v1/blobs/sha256:1`, {
    ...{ method: 'PUT', body, duplex: 'half' as const },
  });
  begin();
  expect(await response.text()).toBe('started');
  expect(received).toBe(64 * MIB);
  expect(hash.digest('hex')).toBe(expected.digest('hex'));
});

test('who goes away ends the call at the gateway; an answer cut short there is seen', async () => {
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  answer = (_request, response) => response.on('close', () => resolve());
  const leaving = new AbortController();
  const call = fetch(`${relay.url}/drover.v1.Agent/Sync`, {
    ...{ method: 'POST', body: '{}', signal: leaving.signal },
  });
  await expect.poll(() => seen.length).toBe(1);
  leaving.abort();
  await expect(call).rejects.toThrow();
  await ended;

  answer = (_request, response) => {
    response.writeHead(200, { 'content-length': '100' });
    response.write('half', () => response.destroy());
  };
  const cut = await fetch(`${relay.url}/v1/blobs/sha256:1`);
  await expect(cut.text()).rejects.toThrow();
});

test('a refusal before the body was read arrives', async () => {
  answer = (request, response) => {
    response.writeHead(413);
    response.end('too large');
    request.resume();
  };
  const body = randomBytes(8 * MIB);
  const response = await fetch(`${relay.url}/v1/blobs/sha256:1`, { method: 'PUT', body });
  expect(response.status).toBe(413);
  expect(await response.text()).toBe('too large');
});

test('without a gateway the answer is 503, which agents try again', async () => {
  const lost = await start({ target: new URL('http://127.0.0.1:1') });
  try {
    const response = await fetch(`${lost.url}/drover.v1.Agent/Sync`, { method: 'POST', body: '' });
    expect(response.status).toBe(503);
    expect(await response.json()).toMatchObject({ code: 'UNAVAILABLE' });
    const socket = new WebSocket(`${lost.url.replace('http', 'ws')}/v1/tunnel`);
    const status = await new Promise((resolve) => {
      socket.on('unexpected-response', (_request, response) => resolve(response.statusCode));
    });
    expect(status).toBe(503);
  } finally {
    await lost.close();
  }
});

test('a tunnel passes, with its headers and whatever the gateway says to it', async () => {
  const url = `${relay.url.replace('http', 'ws')}/v1/tunnel`;
  const refused = new WebSocket(url, { headers: { authorization: 'Bearer bad' } });
  const status = await new Promise((resolve) => {
    refused.on('unexpected-response', (_request, response) => resolve(response.statusCode));
  });
  expect(status).toBe(401);
  const socket = new WebSocket(url, ['drover.tunnel.v1'], {
    headers: { authorization: 'Bearer good', 'drover-agent-session': 's1' },
  });
  await new Promise((resolve) => socket.on('open', resolve));
  expect(seen.at(-1)?.headers['drover-agent-session']).toBe('s1');
  const sent = randomBytes(MIB);
  const back = new Promise<Buffer>((resolve) => {
    socket.on('message', (data) => resolve(data as Buffer));
  });
  socket.send(sent);
  expect((await back).equals(sent)).toBe(true);
  const closed = new Promise((resolve) => socket.on('close', resolve));
  for (const one of sockets.clients) one.terminate();
  await closed;
});

test.each(['/v1/jobs/j1/exec', '/v1/tunnel/x', '/proxy/x/'])('no upgrade at %s', async (path) => {
  const socket = new WebSocket(relay.url.replace('http', 'ws') + path);
  const status = await new Promise((resolve) => {
    socket.on('unexpected-response', (_request, response) => resolve(response.statusCode));
  });
  expect(status).toBe(404);
  expect(seen).toEqual([]);
});

test('RELAY_LIMITS.connections: no more; RELAY_LIMITS.silenceMs: the silent end', async () => {
  const small = await start({ limits: { connections: 1, silenceMs: 300 } });
  answer = () => undefined;
  try {
    const held = fetch(`${small.url}/drover.v1.Agent/Sync`, { method: 'POST', body: '{}' });
    await expect.poll(() => seen.length).toBe(1);
    await expect(fetch(`${small.url}/install/agent`)).rejects.toThrow();
    expect([503, 'closed']).toContain(
      await held.then(({ status }) => status).catch(() => 'closed'),
    );
  } finally {
    await small.close();
  }
});

test('RELAY_LIMITS.headersMs: half a request holds no socket', async () => {
  const small = await start({ limits: { headersMs: 200 } });
  try {
    expect(await raw('GET /install/agent HTTP/1.1\r\nhost: x', small)).toMatch(/^HTTP\/1.1 408 /);
  } finally {
    await small.close();
  }
});
