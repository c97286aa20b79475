/** The keys of an issuer: how often they are asked for, and what if they are not to be had. */
import { createServer, type RequestListener } from 'node:http';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import type { Clock } from '../../lib/clock.ts';
import { silentLog } from '../../lib/log.ts';
import { authSettings, type IssuerSettings } from '../../model/authSettings.ts';
import { readKeySet } from './issuerKeys.ts';
import { KeySet } from './keySet.ts';
import { keySource, type KeySource } from './keySource.ts';
import { AUTH_LIMITS } from './limits.ts';
import { newTestKey } from './testIssuer.ts';

const first = newTestKey('first', 'RS256');
const second = newTestKey('second', 'ES256');

function setUp(freshMs = AUTH_LIMITS.keysFreshMs) {
  let nowMs = 1_000_000;
  const clock: Clock = {
    now: () => nowMs,
    bootMs: () => nowMs,
    setTimer: () => ({ cancel() {} }),
    soon: (run) => run(),
  };
  const published = { keys: [first.jwk] as unknown[], loads: 0, broken: false };
  const source: KeySource = {
    freshMs,
    async load() {
      published.loads++;
      await Promise.resolve();
      if (published.broken) throw new Error('connection refused');
      return { keys: published.keys };
    },
  };
  const limits = AUTH_LIMITS;
  const keys = new KeySet({ source, algorithms: ['RS256'], clock, log: silentLog, limits });
  return { keys, published, advance: (ms: number) => void (nowMs += ms) };
}

describe('an issuer is asked', () => {
  test('once, by all who come first, and again when what it said is old', async () => {
    const { keys, published, advance } = setUp();
    const many = Array.from({ length: 20 }, () => keys.find('first', 'RS256'));
    expect((await Promise.all(many)).every((key) => key?.kid === 'first')).toBe(true);
    expect(published.loads).toBe(1);
    advance(AUTH_LIMITS.keysFreshMs);
    await keys.find('first', 'RS256');
    expect(published.loads).toBe(2);
  });

  test('for a key that nobody knows, but not for each token that names one', async () => {
    const { keys, published, advance } = setUp();
    await keys.find('first', 'RS256');
    for (let i = 0; i < 100; i++) expect(await keys.find(`guess-${i}`, 'RS256')).toBeUndefined();
    expect(published.loads).toBe(1);
    published.keys = [second.jwk];
    advance(AUTH_LIMITS.keysRefetchMs);
    expect(await keys.find('second', 'ES256')).toMatchObject({ kid: 'second' });
    expect(await keys.find('first', 'RS256')).toBeUndefined();
    expect(published.loads).toBe(2);
  });

  test('not at all where the keys are in the settings', async () => {
    const { keys, published, advance } = setUp(Infinity);
    await keys.find('first', 'RS256');
    advance(10 * AUTH_LIMITS.keysStaleMs);
    expect(await keys.find('first', 'RS256')).toBeDefined();
    expect(await keys.find('other', 'RS256')).toBeUndefined();
    expect(published.loads).toBe(1);
  });
});

describe('an issuer that does not answer', () => {
  test('is no reason to refuse a token for good: 503, and few more questions', async () => {
    const { keys, published, advance } = setUp();
    published.broken = true;
    for (let i = 0; i < 10; i++) {
      await expect(keys.find('first', 'RS256')).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    }
    expect(published.loads).toBe(1);
    published.broken = false;
    advance(AUTH_LIMITS.keysRefetchMs);
    expect(await keys.find('first', 'RS256')).toBeDefined();
  });

  test('is believed for a while longer, in what it had said', async () => {
    const { keys, published, advance } = setUp();
    await keys.find('first', 'RS256');
    published.broken = true;
    advance(AUTH_LIMITS.keysFreshMs);
    expect(await keys.find('first', 'RS256')).toBeDefined();
    // What it did not say nobody can know.
    await expect(keys.find('second', 'ES256')).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    advance(AUTH_LIMITS.keysStaleMs);
    await expect(keys.find('first', 'RS256')).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  });

  test('a clock that steps back makes no key live longer', async () => {
    const { keys, published, advance } = setUp();
    await keys.find('first', 'RS256');
    published.broken = true;
    advance(-1000);
    await expect(keys.find('first', 'RS256')).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  });
});

describe('of a key set', () => {
  const read = (...keys: object[]) => readKeySet({ keys }, ['RS256', 'ES256', 'EdDSA'], 100);
  const algorithmsOf = (...keys: object[]) => read(...keys).map(({ algorithms }) => algorithms);

  test('keys without an algorithm get the one of the settings that fits their kind', () => {
    const ed = newTestKey('ed', 'EdDSA');
    const unnamed = [first, second, ed].map(({ jwk }) => ({ ...jwk, alg: undefined }));
    expect(algorithmsOf(...unnamed)).toEqual([['RS256'], ['ES256'], ['EdDSA']]);
  });

  test('a key is pinned to the algorithm it names', () => {
    expect(algorithmsOf({ ...first.jwk, alg: 'PS384' })).toEqual([['PS384']]);
  });

  test.for<[string, object]>([
    ['for encryption', { ...first.jwk, use: 'enc' }],
    ['for signing only', { ...first.jwk, key_ops: ['sign'] }],
    ['of a shared secret', { kty: 'oct', k: 'c2VjcmV0', alg: 'HS256', kid: 'x' }],
    ['with a symmetric algorithm', { ...first.jwk, alg: 'HS256' }],
    ['with an algorithm of another kind', { ...first.jwk, alg: 'ES256' }],
    ['of another curve than its algorithm', { ...second.jwk, alg: 'ES384' }],
    [
      'of RSA with few bits',
      { kty: 'RSA', n: Buffer.alloc(128, 0xff).toString('base64url'), e: 'AQAB' },
    ],
    ['that is none', { kty: 'RSA', n: 7, e: 'AQAB' }],
    ['of a kind nobody knows', { kty: 'LATTICE' }],
  ])('one %s is left out', ([, key]) => {
    expect(read(key, first.jwk).map(({ kid }) => kid)).toEqual(['first']);
  });

  test('what is no key set, or too long, is refused', () => {
    expect(() => readKeySet({ error: 'x' }, [], 100)).toThrow('no list of keys');
    expect(() => readKeySet({ keys: [{}, {}] }, [], 1)).toThrow('more than 1');
  });
});

describe('where keys come from', () => {
  const closing: (() => void)[] = [];
  afterEach(() => closing.splice(0).forEach((close) => close()));

  async function serve(listener: RequestListener): Promise<string> {
    const server = createServer(listener);
    closing.push(() => (server.closeAllConnections(), server.close()));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  const json =
    (body: (url: string) => unknown): RequestListener =>
    (request, response) =>
      response.end(JSON.stringify(body(request.url ?? '')));

  test('the document of an issuer says where, over https or on this machine only', async () => {
    let uri = 'http://keys.example.org/jwks';
    let named = '';
    const url = await serve(
      json((path) => (path === '/jwks' ? { keys: [] } : { issuer: named, jwks_uri: uri })),
    );
    const load = source({ issuer: url, discovery: true });
    await expect(load()).rejects.toThrow('another issuer');
    named = url;
    await expect(load()).rejects.toThrow('jwks_uri');
    uri = `${url}/jwks`;
    expect(await load()).toEqual({ keys: [] });
  });

  test.for<[string, RequestListener, string]>([
    ['an error', (_, response) => response.writeHead(500).end(), '500'],
    ['a page', (_, response) => response.end('<html>'), 'JSON'],
    [
      'a redirection',
      (_, response) => response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end(),
      'redirect',
    ],
    ['no end', (_, response) => response.end(' '.repeat(AUTH_LIMITS.fetchBytes + 1)), 'longer'],
    ['nothing', () => undefined, 'timeout'],
  ])('%s is not taken for keys', async ([, listener, word]) => {
    const jwksUri = await serve(listener);
    const load = source({ jwksUri }, { fetchMs: 300 });
    const failure = await load().catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: 'UNAVAILABLE', message: expect.stringContaining(word) });
  });

  test('a file', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'drover-keys-'));
    closing.push(() => rmSync(folder, { recursive: true }));
    const jwksFile = join(folder, 'jwks.json');
    const load = source({ jwksFile });
    await expect(load()).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    writeFileSync(jwksFile, JSON.stringify({ keys: [first.jwk] }));
    expect(readKeySet(await load(), [], 10)).toHaveLength(1);
  });

  function source(given: object, limits: Partial<typeof AUTH_LIMITS> = {}) {
    const issuer = { name: 'lab', issuer: 'https://login.example.org', audience: 'a', ...given };
    const { issuers } = authSettings.parse({ issuers: [issuer] });
    const from = keySource(issuers[0] as IssuerSettings, { ...AUTH_LIMITS, ...limits });
    return () => from.load();
  }
});
