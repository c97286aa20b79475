/** A gateway on a free port with a fake coordinator behind it, for tests over real HTTP. */
import { systemClock } from '../lib/clock.ts';
import { silentLog } from '../lib/log.ts';
import { seededRandom } from '../lib/random.ts';
import type { Coordinator } from '../protocol/coordinator.ts';
import { createFakeCoordinator, type FakeCoordinator } from './fakeCoordinator.ts';
import { createGateway, type GatewayOptions } from './gateway.ts';
import { limitSubmits, Load } from './load/load.ts';

interface CallOptions {
  /** The fake's admin token unless given; null sends none. */
  token?: string | null;
  headers?: Record<string, string>;
  /** Sent as JSON; a string or bytes as they are. */
  body?: unknown;
}

interface Answer {
  status: number;
  headers: Headers;
  text: string;
  /** The text as JSON, where it is JSON; tests look into it freely. */
  json: Json;
}

interface Json {
  data: Record<string, unknown> & { id: string; ids: string[]; state: string };
  items: Record<string, unknown>[];
  meta: { nextCursor: string | null };
  code: string;
  title: string;
  detail: string;
  requestId: string;
  hint?: string;
  [extra: string]: unknown;
}

export interface TestGateway extends AsyncDisposable {
  url: string;
  fake: FakeCoordinator;
  call(method: string, path: string, options?: CallOptions): Promise<Answer>;
  close(): Promise<void>;
}

export async function startTestGateway(
  overrides: Partial<Coordinator> = {},
  options: Partial<GatewayOptions> = {},
): Promise<TestGateway> {
  const fake = createFakeCoordinator(overrides);
  const { load = new Load() } = options;
  const gateway = await createGateway({
    coordinator: limitSubmits(fake, load),
    load,
    clock: systemClock,
    random: seededRandom(1),
    log: silentLog,
    host: '127.0.0.1',
    port: 0,
    decodeLogFrames: (body) => [{ uid: 'a1', stream: 'stdout', offset: 0, atMs: 1, bytes: body }],
    ...options,
  });
  const close = (): Promise<void> => gateway.close();
  return {
    url: gateway.url,
    fake,
    close,
    [Symbol.asyncDispose]: close,
    call: (method, path, call = {}) =>
      send(gateway.url + path, method, { token: fake.adminToken, ...call }),
  };
}

async function send(url: string, method: string, options: CallOptions): Promise<Answer> {
  const { token, body } = options;
  const isRaw = typeof body === 'string' || body instanceof Uint8Array;
  const headers: Record<string, string> = {
    ...(token ? { authorization: `Bearer ${token}` } : {}),
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    ...options.headers,
  };
  const response = await fetch(url, {
    method,
    headers,
    ...(body === undefined ? {} : { body: isRaw ? (body as string) : JSON.stringify(body) }),
  });
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.includes('json');
  const json = (isJson && text ? JSON.parse(text) : {}) as Json;
  if (Array.isArray(json.data)) json.items = json.data;
  return { status: response.status, headers: response.headers, text, json };
}
