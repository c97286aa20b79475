/** Rates and numbers at once of tenants and tokens, over real HTTP; agents and streams apart. */
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { LimitSettings } from '../../model/limitSettings.ts';
import type { TokenId } from '../../model/ids.ts';
import { type Principal, SCOPES } from '../../model/token.ts';
import { AGENT_PATHS } from '../../protocol/agent.ts';
import type { Coordinator } from '../../protocol/coordinator.ts';
import { WORKER_TOKEN } from '../fakeCoordinator.ts';
import { startTestGateway, type TestGateway } from '../testGateway.ts';
import { Load } from './load.ts';

/** `tenant/token` is a token of that tenant. */
function whose(secret: string): Principal | undefined {
  const [tenant, token] = secret.split('/');
  if (tenant === undefined || token === undefined) return undefined;
  return { token: secret as TokenId, tenant, user: token, scopes: [...SCOPES] };
}

function start(
  settings: Partial<LimitSettings>,
  overrides: Partial<Coordinator> = {},
): Promise<TestGateway> {
  const authenticate = async (secret: string): Promise<Principal | undefined> => whose(secret);
  return startTestGateway({ authenticate, ...overrides }, { load: new Load(settings) });
}

/** Calls that take until they are let go. */
function held(): { wait(): Promise<void>; letGo(): void } {
  const gate = Promise.withResolvers<void>();
  return { wait: () => gate.promise, letGo: () => gate.resolve() };
}

const get = async (gateway: TestGateway, token: string | null, path = '/v1/workers') =>
  gateway.call('GET', path, { token });
const status = async (gateway: TestGateway, token: string | null, path?: string) =>
  (await get(gateway, token, path)).status;
const sync = async (gateway: TestGateway) => {
  const body = { worker: 'w1', bootId: 'b', start: 1, seq: 1, epoch: 0, observed: [], wait: false };
  return gateway.call('POST', AGENT_PATHS.sync, { token: WORKER_TOKEN, body });
};
const limited = async (gateway: TestGateway, reason: string): Promise<number> => {
  const { text } = await gateway.call('GET', '/metrics', { token: null });
  const line = new RegExp(`^drover_gateway_limited_total\\{reason="${reason}"\\} (\\d+)$`, 'm');
  return Number(line.exec(text)?.[1]);
};

/** Calls until so many were refused; a machine that is busy may let more in between. */
async function untilRefused(gateway: TestGateway, token: string, times: number) {
  const answers = [];
  for (let refused = 0; refused < times;) {
    const answer = await get(gateway, token);
    if (answer.status === 429) refused++;
    answers.push(answer);
  }
  return answers;
}

test('a token has a rate; who waits as long as it is told gets in', async () => {
  await using gateway = await start({ rateRequestsPerToken: 2, rateBurstSeconds: 2 });
  const answers = await untilRefused(gateway, 'a/1', 3);
  expect(answers.slice(0, 4).map((answer) => answer.status)).toEqual([200, 200, 200, 200]);
  expect(answers[0]!.headers.get('ratelimit')).toBeNull();
  expect(answers[3]!.headers.get('ratelimit')).toBe('"requests";r=0;t=1');
  // The first is refused by the guard of its route, those that follow before they are routed.
  for (const { headers, json } of answers.filter((answer) => answer.status === 429)) {
    expect(headers.get('content-type')).toContain('application/problem+json');
    expect(json).toMatchObject({ code: 'TOO_MANY', status: 429 });
    expect(json.detail).toContain('This token may make 2 requests a second');
    expect(headers.get('x-request-id')).toBe(json.requestId);
    expect(headers.get('ratelimit-policy')).toBe('"requests";q=4;w=2');
    expect(headers.get('ratelimit')).toBe('"requests";r=0;t=1');
    expect(headers.get('retry-after')).toBe('1');
  }
  // Another token and agents have nothing to do with it.
  expect(await status(gateway, 'a/2')).toBe(200);
  for (let i = 0; i < 20; i++) expect((await sync(gateway)).status).toBe(200);
  await untilRefused(gateway, 'a/1', 1);
  await delay(1000);
  expect(await status(gateway, 'a/1')).toBe(200);
  expect(await limited(gateway, 'rate')).toBe(4);
});

test('a tenant has a rate for all its tokens, and may have one of its own', async () => {
  const tenants = { b: { requestsPerSecond: 1000 } };
  await using gateway = await start({ rateRequestsPerTenant: 3, rateBurstSeconds: 1, tenants });
  for (const token of ['a/1', 'a/2', 'a/3']) expect(await status(gateway, token)).toBe(200);
  const { json } = await get(gateway, 'a/4');
  expect(json.detail).toContain('The tenant a may make 3 requests a second');
  for (let i = 0; i < 20; i++) expect(await status(gateway, 'b/1')).toBe(200);
});

test('submitted jobs have a rate of their own, counted one by one', async () => {
  await using gateway = await start({ rateJobsPerTenant: 10, rateBurstSeconds: 1 });
  const submit = (token: string, count: number) => {
    const jobs = Array.from({ length: count }, () => ({ command: ['true'] }));
    return gateway.call('POST', '/v1/jobs/batch', { token, body: { jobs } });
  };
  expect((await submit('a/1', 8)).status).toBe(201);
  const refused = await submit('a/2', 5);
  expect([refused.status, refused.json.code]).toEqual([429, 'TOO_MANY']);
  expect(refused.headers.get('retry-after')).toBe('1');
  expect(gateway.fake.calls.get('submit')).toBe(1);
  expect((await submit('b/1', 10)).status).toBe(201);
  expect(await status(gateway, 'a/1')).toBe(200);
  await delay(1000);
  expect((await submit('a/2', 5)).status).toBe(201);
  expect(await limited(gateway, 'jobs')).toBe(1);
});

test('calls at once are limited, streams and long polls apart, agents never', async () => {
  const calls = held();
  const waits = held();
  await using gateway = await start(
    { callsPerToken: 2, callsPerTenant: 3, streamsPerToken: 1, streamsPerTenant: 2 },
    {
      cluster: () => calls.wait().then(() => Promise.reject(new Error('over'))),
      waitJob: () => waits.wait().then(() => Promise.reject(new Error('over'))),
    },
  );
  const cluster = (token: string) => status(gateway, token, '/v1/cluster');
  const under = [cluster('a/1'), cluster('a/1')];
  await expect.poll(() => gateway.fake.calls.get('cluster')).toBe(2);
  const refused = await get(gateway, 'a/1');
  expect([refused.status, refused.json.detail]).toEqual([
    429,
    'This token has 2 calls under way, which is the most',
  ]);
  under.push(cluster('a/2'));
  await expect.poll(() => gateway.fake.calls.get('cluster')).toBe(3);
  expect((await get(gateway, 'a/2')).json.detail).toContain('The tenant a has 3 calls under way');
  expect(await status(gateway, 'b/1')).toBe(200);
  expect((await sync(gateway)).status).toBe(200);

  const wait = (token: string, signal?: AbortSignal) =>
    fetch(`${gateway.url}/v1/jobs/j1/wait`, {
      headers: { authorization: `Bearer ${token}` },
      ...(signal ? { signal } : {}),
    });
  const left = new AbortController();
  const leaving = wait('a/1', left.signal).catch(() => undefined);
  await expect.poll(() => gateway.fake.calls.get('waitJob')).toBe(1);
  expect((await wait('a/1')).status).toBe(429);
  const second = wait('a/2');
  await expect.poll(() => gateway.fake.calls.get('waitJob')).toBe(2);
  expect((await get(gateway, 'a/3', '/v1/jobs/j1/wait')).json.detail).toContain('2 streams open');
  // A client that leaves gives its place back.
  left.abort();
  await leaving;
  await delay(50);
  const third = wait('a/1');
  await expect.poll(() => gateway.fake.calls.get('waitJob')).toBe(3);
  calls.letGo();
  await Promise.all(under);
  expect(await status(gateway, 'a/1')).toBe(200);
  expect(await limited(gateway, 'calls')).toBe(2);
  expect(await limited(gateway, 'streams')).toBe(2);
  waits.letGo();
  await Promise.all([second, third]);
});

test('overload is shed before routing: who has more than its share, never agents', async () => {
  const calls = held();
  await using gateway = await start(
    { callsAtOnce: 32 },
    { cluster: () => calls.wait().then(() => Promise.reject(new Error('over'))) },
  );
  const flood = Array.from({ length: 32 }, (_, i) => status(gateway, `a/${i}`, '/v1/cluster'));
  await expect.poll(() => gateway.fake.calls.get('cluster')).toBe(32);
  const body = { command: ['true'] };
  for (let i = 0; i < 3; i++) {
    // The token is not known here yet, then it is: both ways lead to the same answer.
    const refused = await gateway.call('POST', '/v1/jobs', { token: 'a/new', body });
    expect([refused.status, refused.json.code]).toEqual([429, 'TOO_MANY']);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    expect(refused.headers.get('x-request-id')).toBe(refused.json.requestId);
    expect(refused.headers.get('content-type')).toContain('application/problem+json');
  }
  expect(gateway.fake.calls.get('submit')).toBeUndefined();
  for (let i = 0; i < 10; i++) expect(await status(gateway, 'b/1')).toBe(200);
  expect((await gateway.call('POST', '/v1/jobs', { token: 'b/1', body })).status).toBe(201);
  expect((await sync(gateway)).status).toBe(200);
  expect(await status(gateway, null, '/healthz')).toBe(200);
  expect(await status(gateway, null, '/readyz')).toBe(200);
  // Without a token there is no share.
  expect(await status(gateway, null, '/openapi.json')).toBe(429);
  expect(await status(gateway, 'nobody')).toBe(401);
  calls.letGo();
  expect(await Promise.all(flood)).toEqual(flood.map(() => 500));
  expect((await gateway.call('POST', '/v1/jobs', { token: 'a/new', body })).status).toBe(201);
  expect(await limited(gateway, 'overload')).toBe(4);
});

test('a place is given back when the client leaves while it is asked who it is', async () => {
  const asked = held();
  const load = new Load();
  await using gateway = await startTestGateway(
    { authenticate: (secret) => asked.wait().then(() => whose(secret)) },
    { load },
  );
  const left = new AbortController();
  const headers = { authorization: 'Bearer a/1' };
  const leaving = fetch(`${gateway.url}/v1/workers`, { headers, signal: left.signal });
  await expect.poll(() => gateway.fake.calls.get('authenticate')).toBe(1);
  left.abort();
  await expect(leaving).rejects.toThrow();
  await delay(50);
  asked.letGo();
  await delay(20);
  expect(load.overload.inFlight).toBe(0);
  expect(await status(gateway, 'a/1')).toBe(200);
  await expect.poll(() => load.overload.inFlight).toBe(0);
});

test('who tries many tokens is told to wait; good tokens at that address are not', async () => {
  await using gateway = await start({ rateFailuresPerAddress: 1 });
  expect(await status(gateway, 'a/1')).toBe(200);
  expect((await sync(gateway)).status).toBe(200);
  const guesses = Array.from({ length: 320 }, (_, i) => status(gateway, `guess-${i}`));
  expect((await Promise.all(guesses)).filter((one) => one === 401).length).toBeGreaterThan(299);
  const refused = await get(gateway, 'one-more');
  expect([refused.status, refused.json.code]).toEqual([429, 'TOO_MANY']);
  expect(refused.json.detail).toContain('127.0.0.1');
  expect(refused.headers.get('retry-after')).toBe('1');
  const asked = gateway.fake.calls.get('authenticate');
  expect(await status(gateway, 'another')).toBe(429);
  expect(gateway.fake.calls.get('authenticate')).toBe(asked);
  const join = await gateway.call('POST', AGENT_PATHS.join, { token: 'guess', body: {} });
  expect(join.status).toBe(429);
  // What was good before passes, also once the cache has to ask again; so do agents.
  expect(await status(gateway, 'a/1')).toBe(200);
  expect((await sync(gateway)).status).toBe(200);
  expect(await limited(gateway, 'failures')).toBeGreaterThanOrEqual(3);
  await delay(1000);
  expect(await status(gateway, 'one-more')).toBe(401);
});
