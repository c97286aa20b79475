/** The API as it is described, and that nobody gets at what is not his: generated from the spec. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { SCOPES, type Scope } from '../../src/model/token.ts';
import { agentCalls } from './api/agentCalls.ts';
import { descriptionSuite } from './api/description.ts';
import { fuzzSuite } from './api/fuzz.ts';
import { AGENT, LOOPBACK, OPEN, PROXIED, WEBSOCKETS } from './api/lists.ts';
import { filledPath, operationsOf, type TestOperation } from './api/operations.ts';
import { referenceSuite } from './api/reference.ts';
import { tenantSuite } from './api/tenants.ts';
import { startApiWorld, type ApiWorld } from './api/world.ts';

let world: ApiWorld;
let operations: TestOperation[];
/** Those that need a scope. */
let guarded: TestOperation[];
/** In alpha, by scope: every other scope, and that one alone. */
const without = new Map<string, string>();
const alone = new Map<string, string>();

beforeAll(async () => {
  world = await startApiWorld();
  operations = operationsOf(world.document);
  guarded = operations.filter(({ permission }) => permission.includes(':'));
  for (const scope of SCOPES) {
    const others = SCOPES.filter((other) => other !== scope);
    without.set(scope, await world.tokenWith(others));
    alone.set(scope, await world.tokenWith([scope]));
  }
});
afterAll(() => world?.close());

descriptionSuite(() => world);

describe('every route', () => {
  test('says who may call it, and only those on the lists need no scope', () => {
    const others = world.document['x-other-routes'] as Record<string, string>[];
    const hidden = others
      .filter(({ method }) => method !== 'HEAD')
      .map((one) => ({ name: `${one['method']} ${one['path']}`, permission: one['x-permission'] }));
    const byPermission = (permission: string): string[] =>
      [...operations, ...hidden]
        .filter((one) => one.permission === permission)
        .map(({ name }) => name)
        .toSorted();
    expect(byPermission('open')).toEqual([...OPEN, ...PROXIED].toSorted());
    expect(byPermission('loopback')).toEqual(LOOPBACK);
    expect(byPermission('agent')).toEqual(AGENT);
    const sockets = world.document['x-websockets'] as Record<string, string>[];
    const byPath = sockets.map((one) => [one['path'], one['x-permission']]);
    expect(Object.fromEntries(byPath)).toEqual(WEBSOCKETS);
    for (const { name, permission, operation } of guarded) {
      expect([name, SCOPES.includes(permission as Scope)]).toEqual([name, true]);
      expect([name, operation.security]).toEqual([name, [{ bearer: [permission] }]]);
      expect(operation.description).toContain(`\`${permission}\``);
    }
    expect(guarded.length).toBeGreaterThan(40);
  });

  test('says 401 without a token, and with a wrong one', async () => {
    for (const operation of guarded) {
      for (const token of ['', 'drv_wrong']) {
        const answers = await callEach(operation, token);
        for (const answer of answers) {
          expect([operation.name, answer.status]).toEqual([operation.name, 401]);
          expect(answer.headers.get('www-authenticate')).toContain('Bearer');
        }
        if (operation.method !== 'HEAD') expect(answers[0]?.text).toContain('UNAUTHENTICATED');
      }
    }
  });

  test('says 403 with every permission but its own, and names that one', async () => {
    for (const operation of guarded) {
      const answers = await callEach(operation, without.get(operation.permission) ?? '');
      for (const answer of answers) {
        expect([operation.name, answer.status]).toEqual([operation.name, 403]);
      }
      if (operation.method === 'HEAD') continue;
      expect(answers[0]?.text).toContain(operation.permission);
    }
  });

  test('is not refused with its own permission alone', async () => {
    for (const operation of guarded.filter(({ method }) => method === 'GET')) {
      const [answer] = await callEach(operation, alone.get(operation.permission) ?? '');
      expect([operation.name, answer?.status]).toEqual([operation.name, 200]);
    }
  });

  test('that is free on this machine wants fleet:read from elsewhere', async () => {
    const headers = { 'x-forwarded-for': '192.0.2.1' };
    for (const name of LOOPBACK) {
      expect((await world.call(name)).status).toBe(200);
      expect((await world.call(name, { headers })).status).toBe(401);
      const token = without.get('fleet:read') ?? '';
      expect((await world.call(name, { headers, token })).status).toBe(403);
    }
  });

  test('of agents takes no token of users', async () => {
    const calls = agentCalls(world.things);
    for (const name of AGENT) {
      const { body, options } = calls[name] ?? {};
      expect([name, calls[name]]).toEqual([name, expect.anything()]);
      for (const token of ['', world.alpha.token, world.within.beta.token]) {
        const { status } = await world.call(name, { ...options, token }, body);
        expect([name, status]).toEqual([name, 401]);
      }
    }
  });

  test('of pages that tasks serve asks for a cookie or a token with jobs:manage', async () => {
    for (const name of PROXIED) {
      const request = name.replace('{endpoint}/*', `${world.things.runningJob}.0:80/`);
      expect((await world.call(request)).status).toBe(401);
      const token = without.get('jobs:manage') ?? '';
      expect((await world.call(request, { token })).status).toBe(403);
    }
  });
});

/** A GET as a HEAD too: Fastify makes one of each. */
function callEach(operation: TestOperation, token: string) {
  const { method } = operation;
  const methods = method === 'GET' ? ['GET', 'HEAD'] : [method];
  const path = filledPath(operation, world.things);
  return Promise.all(methods.map((one) => world.call(`${one} ${path}`, { token })));
}

test('every WebSocket says 401 without a token and 403 with too little', async () => {
  const paths = Object.keys(WEBSOCKETS).map((path) =>
    path.replace('{task}', `${world.things.runningJob}.0`).replace('{endpoint}/{path}', 'j1.0:80/'),
  );
  for (const path of paths) {
    expect([path, await upgradeStatus(path, '')]).toEqual([path, 401]);
    expect([path, await upgradeStatus(path, 'drv_wrong')]).toEqual([path, 401]);
    const little = without.get('jobs:manage') ?? '';
    // A user's token is no ticket, whatever it may do.
    const expected = path === '/v1/tunnel' ? 401 : 403;
    expect([path, await upgradeStatus(path, little)]).toEqual([path, expected]);
  }
  expect(await upgradeStatus('/v1/nothing', world.alpha.token)).toBe(404);
});

function upgradeStatus(path: string, token: string): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<number>();
  const headers = token === '' ? {} : { authorization: `Bearer ${token}` };
  const protocols = ['drover.exec.v1', 'drover.inside.v1', 'drover.tunnel.v1'];
  const socket = new WebSocket(world.server.url + path, protocols, { headers });
  socket.on('unexpected-response', (request, response) => {
    resolve(response.statusCode ?? 0);
    request.destroy();
  });
  socket.on('open', () => {
    resolve(101);
    socket.close();
  });
  // What was not answered in HTTP is a failure of the test that waits for a status.
  socket.on('error', () => resolve(0));
  return promise;
}

tenantSuite(() => world);
referenceSuite(() => world);
// Last, because it changes whatever it can.
fuzzSuite(() => world);
