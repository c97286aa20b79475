/** Bad input of every kind is answered cleanly, and errors tell what they should. */
import { connect } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { DroverError } from '../lib/errors.ts';
import { silentLog } from '../lib/log.ts';
import { startTestGateway, type TestGateway } from './testGateway.ts';

const limits = { bodyBytes: 2000, headerBytes: 4096 };
let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startTestGateway({}, { limits });
});
afterAll(() => gateway.close());

const submit = (body: unknown, headers: Record<string, string> = {}) =>
  gateway.call('POST', '/v1/jobs', { body, headers });

/** Sends bytes as they are and returns all that comes back. */
async function raw(url: string, bytes: string): Promise<string> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port) });
  socket.end(bytes);
  let text = '';
  for await (const chunk of socket) text += String(chunk);
  return text;
}

test('a failure is problem+json with everything a person needs', async () => {
  const { status, headers, json } = await submit({ commnd: ['true'] });
  expect(status).toBe(400);
  expect(headers.get('content-type')).toContain('application/problem+json');
  expect(json).toMatchObject({
    type: 'about:blank',
    status: 400,
    code: 'INVALID_ARGUMENT',
    title: 'The request is not valid',
  });
  expect(json.detail).toContain('commnd: is not a known field');
  expect(json.hint).toBe('Did you mean command instead of commnd?');
  expect(json.requestId).toBe(headers.get('x-request-id'));
});

test.each([
  ['in an object', { resources: { cpuMilis: 5 } }, 'resources.cpuMilis', 'cpuMillis'],
  ['behind a default', { resources: { device: { cuont: 5 } } }, 'resources.device.cuont', 'count'],
  ['in a choice', { shape: { kind: 'gang', sizes: 5 } }, 'shape.sizes', 'size'],
  ['in any case', { TIMELIMITMS: 5 }, 'TIMELIMITMS', 'timeLimitMs'],
])('an unknown field %s is named with the nearest', async (_where, extra, path, nearest) => {
  const { status, json } = await submit({ command: ['true'], ...extra });
  expect(status).toBe(400);
  expect(json['violations']).toContainEqual({ path, message: 'is not a known field' });
  expect(json.hint).toContain(`Did you mean ${nearest} `);
});

test('an unknown field like no other gets no guess; a huge name is cut', async () => {
  const { status, json, text } = await submit({ command: ['a'], ['x'.repeat(1500)]: 1 });
  expect(status).toBe(400);
  expect(json.hint).not.toContain('Did you mean');
  expect(text.length).toBeLessThan(800);
});

test.each([
  ['cut off', '{"command": ["tr'],
  ['empty', ''],
  ['not JSON', 'command=true'],
  ['null', 'null'],
  ['a list', '[]'],
  ['a number', '7'],
  ['not UTF-8', new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])],
  ['with half a character', String.raw`{"command":["\ud800"]}`],
  ['with a NUL', String.raw`{"command":["a\u0000b"]}`],
  ['with __proto__', '{"command":["a"],"env":{"__proto__":"x"}}'],
  ['with __proto__ in disguise', String.raw`{"command":["a"],"env":{"\u005f_proto__":"x"}}`],
  ['deeply nested', `${'['.repeat(900)}${']'.repeat(900)}`],
])('a body that is %s is a 400', async (_what, body) => {
  const { status, json } = await submit(body);
  expect(status).toBe(400);
  expect(['INVALID_ARGUMENT', 'MALFORMED_BODY']).toContain(json.code);
  expect(json.detail).not.toBe('');
});

test('__proto__ as a mere word is no harm', async () => {
  expect((await submit({ command: ['echo', '__proto__'] })).status).toBe(201);
});

test('a body over the limit is a 413 that names the limit, stated or streamed', async () => {
  const body = JSON.stringify({ command: ['x'.repeat(3000)] });
  const stated = await submit(body);
  expect([stated.status, stated.json.code]).toEqual([413, 'BODY_TOO_LARGE']);
  expect(stated.json.detail).toContain('2000 bytes');

  const { adminToken } = gateway.fake;
  const head = `POST /v1/jobs HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${adminToken}`;
  const chunk = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
  const streamed = await raw(
    gateway.url,
    `${head}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n${chunk}`,
  );
  expect(streamed).toMatch(/^HTTP\/1.1 413 /);
  expect(streamed).toContain('"code":"BODY_TOO_LARGE"');
});

test('a batch, a sync and what a connector brings have limits of their own', async () => {
  await using small = await startTestGateway(
    {},
    { limits: { batchBodyBytes: 50, syncBodyBytes: 60, connectorBodyBytes: 70 } },
  );
  const body = JSON.stringify({ jobs: [{ command: ['x'.repeat(100)] }] });
  for (const [path, limit] of [
    ['/v1/jobs/batch', 50],
    ['/drover.v1.Agent/Sync', 60],
    ['/drover.v1.Agent/ExchangeCommands', 70],
  ] as const) {
    const { status, json } = await small.call('POST', path, { body });
    expect([status, json.detail]).toEqual([413, `The limit here is ${limit} bytes`]);
  }
});

test('another content type, or none, is a 415', async () => {
  for (const type of ['text/plain', 'application/octet-stream', 'application/xml', 'nonsense']) {
    const { status, json } = await submit('{"command":["true"]}', { 'content-type': type });
    expect([status, json.code], type).toEqual([415, 'UNSUPPORTED_MEDIA_TYPE']);
  }
  const none = await raw(
    gateway.url,
    `POST /v1/jobs HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${gateway.fake.adminToken}\r\n` +
      'content-length: 2\r\nconnection: close\r\n\r\n{}',
  );
  expect(none).toMatch(/^HTTP\/1.1 415 /);
});

test('JSON with a charset is JSON', async () => {
  const type = 'application/json; charset=utf-8';
  expect((await submit('{"command":["true"]}', { 'content-type': type })).status).toBe(201);
});

test('another method is a 405 that says which are allowed', async () => {
  for (const [method, path, allow] of [
    ['PUT', '/v1/jobs', 'GET, HEAD, POST'],
    ['PATCH', '/v1/jobs/j1', 'DELETE, GET, HEAD'],
    ['GET', '/v1/jobs/j1/cancel', 'POST'],
    ['DELETE', '/v1/cluster?x=1', 'GET, HEAD'],
  ] as const) {
    const { status, json, headers } = await gateway.call(method, path);
    expect([status, json.code], path).toEqual([405, 'METHOD_NOT_ALLOWED']);
    expect(headers.get('allow'), path).toBe(allow);
  }
});

test.each(['/', '/v1', '/v1/jobs/', '/v1/jbos', '/v1/jobs//tasks', '/v1/jobs/a/b/c'])(
  '%s is a 404',
  async (path) => {
    const { status, json } = await gateway.call('GET', path);
    expect([status, json.code]).toEqual([404, 'NOT_FOUND']);
  },
);

test('a path that cannot be decoded is a 400, a traversal finds nothing', async () => {
  const bad = await gateway.call('GET', '/v1/jobs/%zz');
  expect([bad.status, bad.json.code]).toEqual([400, 'INVALID_ARGUMENT']);
  const answer = await raw(gateway.url, 'GET /../../etc/passwd HTTP/1.1\r\nhost: x\r\n\r\n');
  expect(answer).toMatch(/^HTTP\/1.1 404 /);
  const long = await gateway.call('GET', `/v1/jobs/${'x'.repeat(1000)}`);
  expect([400, 404, 414]).toContain(long.status);
});

test('what is not HTTP is answered cleanly', async () => {
  for (const [bytes, status] of [
    ['nonsense\r\n\r\n', 400],
    ['GET / HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n', 400],
    ['\u0016\u0003\u0001\u0002\u0000', 400],
    [`GET /healthz HTTP/1.1\r\nhost: x\r\nx-big: ${'x'.repeat(5000)}\r\n\r\n`, 431],
  ] as const) {
    const answer = await raw(gateway.url, bytes);
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    const problem = JSON.parse(answer.slice(answer.indexOf('{'))) as { status: number };
    expect(problem.status).toBe(status);
  }
  expect((await gateway.call('GET', '/healthz')).status).toBe(200);
});

test('a body that ends early reaches nobody', async () => {
  const before = gateway.fake.calls.get('submit');
  const { adminToken } = gateway.fake;
  const head = `POST /v1/jobs HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${adminToken}`;
  await raw(
    gateway.url,
    `${head}\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"command":["true"]}`,
  );
  expect(gateway.fake.calls.get('submit')).toBe(before);
  expect((await gateway.call('GET', '/healthz')).status).toBe(200);
});

test('a sane request id is kept, another replaced', async () => {
  for (const [given, kept] of [
    ['trace-1.A_b', true],
    ['x'.repeat(65), false],
    ['a b', false],
    ['a"b', false],
  ] as const) {
    const { json, headers } = await gateway.call('GET', '/v1/jobs/none', {
      headers: { 'x-request-id': given },
    });
    expect(json.requestId === given).toBe(kept);
    expect(headers.get('x-request-id')).toBe(json.requestId);
    expect(json.requestId).toMatch(/^[\w.-]{1,64}$/);
  }
});

test.each(['Basic YWJj', 'Bearer', 'Bearer ', 'Bearer a b', 'secret-1'])(
  'the Authorization "%s" is a 401',
  async (authorization) => {
    const { status } = await gateway.call('GET', '/v1/jobs', {
      token: null,
      headers: { authorization },
    });
    expect(status).toBe(401);
  },
);

test.each([
  ['ours', new DroverError('INTERNAL', 'secret path /srv/db')],
  ['any', new Error('secret path /srv/db')],
])('an unexpected error (%s) is logged and tells the caller nothing', async (_whose, boom) => {
  const logged: object[] = [];
  const log = { ...silentLog, error: (fields: object) => void logged.push(fields) };
  await using broken = await startTestGateway({ cluster: () => Promise.reject(boom) }, { log });
  const { status, text, json } = await broken.call('GET', '/v1/cluster');
  expect([status, json.code]).toEqual([500, 'INTERNAL']);
  expect(text).not.toMatch(/secret|srv|\bat /);
  expect(json.hint).toContain(json.requestId);
  expect(logged).toEqual([
    { requestId: json.requestId, method: 'GET', url: '/v1/cluster', err: boom },
  ]);
});

test('an expected error keeps its code, detail and hint', async () => {
  const full = new DroverError('TOO_MANY', 'The queue is full', { hint: 'Wait.' });
  await using busy = await startTestGateway({ submit: () => Promise.reject(full) });
  const { status, json } = await busy.call('POST', '/v1/jobs', { body: { command: ['a'] } });
  expect([status, json.code, json.detail, json.hint]).toEqual([
    429,
    'TOO_MANY',
    'The queue is full',
    'Wait.',
  ]);
});

test('a controller that cannot be asked about a token is a 503, not a 401', async () => {
  const away = new DroverError('UNAVAILABLE', 'The controller is away');
  await using alone = await startTestGateway({ authenticate: () => Promise.reject(away) });
  expect((await alone.call('GET', '/v1/jobs')).status).toBe(503);
});

test('further routes are guarded like the others, and must say who may call them', async () => {
  await using more = await startTestGateway(
    {},
    {
      extraRoutes: (app) =>
        void app.get('/v1/extra', { config: { access: 'fleet:manage' } }, ({ principal }) =>
          Promise.resolve({ data: principal.user }),
        ),
    },
  );
  expect((await more.call('GET', '/v1/extra', { token: null })).status).toBe(401);
  expect((await more.call('GET', '/v1/extra')).json).toMatchObject({ data: 'ada' });
  const unguarded = startTestGateway({}, { extraRoutes: (app) => void app.get('/x', () => ({})) });
  await expect(unguarded).rejects.toThrow('does not say who may call it');
});
