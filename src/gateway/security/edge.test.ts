/** What every answer says to browsers, pages of other origins, and that `insecure` is shown. */
import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { silentLog } from '../../lib/log.ts';
import { startTestGateway, type TestGateway } from '../testGateway.ts';

const EVERYWHERE = {
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
};
const POLICY = 'content-security-policy';
const ORIGIN = 'https://dashboard.example.org';

const headersOf = (headers: Headers, names: string[]): Record<string, string | null> =>
  Object.fromEntries(names.map((name) => [name, headers.get(name)]));

test('every answer of every route has the headers; those for one caller are not kept', async () => {
  await using gateway = await startTestGateway();
  const { paths } = (await gateway.call('GET', '/openapi.json')).json as unknown as {
    paths: Record<string, Record<string, { security?: object[] }>>;
  };
  const routes = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { security = [] }]) => ({ path, method, security })),
  );
  expect(routes.length).toBeGreaterThan(20);
  for (const { path, method, security } of routes) {
    const url = path.replaceAll(/\{[^}]+\}/g, 'x');
    for (const token of [gateway.fake.adminToken, null]) {
      const { headers } = await gateway.call(method.toUpperCase(), url, { token });
      const where = `${method} ${path}`;
      const found = headersOf(headers, Object.keys(EVERYWHERE));
      // A page that is to be seen needs its own style and script.
      const own = path === '/reference' ? { [POLICY]: found[POLICY] } : {};
      expect(found[POLICY]).toMatch(/^default-src 'none'; .*frame-ancestors 'none'$/);
      expect([where, found]).toEqual([where, { ...EVERYWHERE, ...own }]);
      const cached = headers.get('cache-control');
      if (security.length > 0) expect([where, cached]).toEqual([where, 'no-store']);
    }
  }
});

test('so do answers that no route gives', async () => {
  await using gateway = await startTestGateway();
  for (const [method, path] of [
    ['GET', '/nowhere'],
    ['DELETE', '/healthz'],
    ['GET', '/v1/jobs/%zz'],
  ] as const) {
    const { status, headers } = await gateway.call(method, path);
    expect(status).toBeGreaterThanOrEqual(400);
    expect(headersOf(headers, Object.keys(EVERYWHERE))).toEqual(EVERYWHERE);
  }
  const raw = await malformed(gateway);
  for (const [name, value] of Object.entries(EVERYWHERE))
    expect(raw).toContain(`${name}: ${value}`);
});

function malformed(gateway: TestGateway): Promise<string> {
  const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1');
  socket.write('this is not HTTP\r\n\r\n');
  return new Promise((resolve) => socket.once('data', (bytes) => resolve(bytes.toString())));
}

test('pages of other origins may not call, unless they are named', async () => {
  await using closed = await startTestGateway();
  await using open = await startTestGateway({}, { corsOrigins: [ORIGIN] });
  const ask = (gateway: TestGateway, origin: string, method = 'GET') =>
    gateway.call(method, '/v1/jobs', {
      headers: {
        origin,
        ...(method === 'OPTIONS' ? { 'access-control-request-method': 'POST' } : {}),
      },
    });
  const off = await ask(closed, ORIGIN);
  expect(headersOf(off.headers, ['access-control-allow-origin', 'vary'])).toEqual({
    'access-control-allow-origin': null,
    vary: null,
  });
  expect((await ask(closed, ORIGIN, 'OPTIONS')).status).toBe(405);

  const on = await ask(open, ORIGIN);
  expect([on.status, on.headers.get('access-control-allow-origin')]).toEqual([200, ORIGIN]);
  expect(on.headers.get('vary')).toBe('origin');
  expect(on.headers.get('access-control-allow-credentials')).toBeNull();
  const other = await ask(open, 'https://evil.example.org');
  expect(other.headers.get('access-control-allow-origin')).toBeNull();
  expect(other.headers.get('vary')).toBe('origin');
});

test('a browser that asks first is told what it may send', async () => {
  await using gateway = await startTestGateway({}, { corsOrigins: [ORIGIN] });
  const preflight = (origin: string, path = '/v1/jobs') =>
    gateway.call('OPTIONS', path, {
      token: null,
      headers: { origin, 'access-control-request-method': 'POST' },
    });
  const { status, headers, text } = await preflight(ORIGIN);
  expect([status, text]).toEqual([204, '']);
  expect(headers.get('access-control-allow-methods')).toContain('DELETE');
  expect(headers.get('access-control-allow-headers')).toContain('authorization');
  expect(headers.get('access-control-max-age')).toBe('600');
  const refused = await preflight('https://evil.example.org');
  expect([refused.status, refused.headers.get('access-control-allow-origin')]).toEqual([405, null]);
  const denied = await gateway.call('GET', '/v1/jobs', {
    token: 'wrong',
    headers: { origin: ORIGIN },
  });
  expect([denied.status, denied.headers.get('access-control-allow-origin')]).toEqual([401, ORIGIN]);
});

test('`insecure` is shown in answers, the cluster, readiness and metrics', async () => {
  const warned: string[] = [];
  const exposures = ['HTTP on 0.0.0.0 has no TLS'];
  const log = { ...silentLog, warn: (_fields: object, text: string) => void warned.push(text) };
  await using insecure = await startTestGateway({}, { exposures, log });
  await using safe = await startTestGateway();
  const shown = async (gateway: TestGateway) => {
    const [cluster, ready, metrics] = await Promise.all([
      gateway.call('GET', '/v1/cluster'),
      gateway.call('GET', '/readyz'),
      gateway.call('GET', '/metrics'),
    ]);
    return {
      header: cluster.headers.get('x-drover-insecure'),
      cluster: cluster.json.data['insecure'],
      ready: ready.json.data['warnings'],
      metric: /^drover_gateway_insecure (\d)$/m.exec(metrics.text)?.[1],
    };
  };
  expect(warned).toEqual(exposures);
  expect(await shown(insecure)).toEqual({
    header: 'true',
    cluster: true,
    ready: exposures,
    metric: '1',
  });
  expect(await shown(safe)).toEqual({ header: null, cluster: false, ready: [], metric: '0' });
});
