/** Whatever a token server answers is a token, a refusal or a server to be asked again. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createPublicKey, generateKeyPairSync, verify } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../lib/clock.ts';
import { systemRandom } from '../lib/random.ts';
import type { ExchangeSettings } from '../model/exchangeSettings.ts';
import { exchangeSettings } from '../model/exchangeSettings.ts';
import { clientCredential, subjectAssertion } from './assertions.ts';
import {
  ASSUMED_LIFE_MS,
  createTokenExchange,
  LONGEST_ANSWER_BYTES,
  LONGEST_TOKEN,
} from './client.ts';
import { readSigningKey } from './signedJwt.ts';
import { tokenUrlOf } from './tokenUrl.ts';

type Answer = (request: IncomingMessage, response: ServerResponse, form: URLSearchParams) => void;
let answer: Answer;
let asked: { headers: IncomingMessage['headers']; form: URLSearchParams; path: string }[] = [];
const server = createServer((request, response) => {
  let body = '';
  request.on('data', (piece: Buffer) => (body += piece.toString()));
  request.on('end', () => {
    const form = new URLSearchParams(body);
    asked.push({ headers: request.headers, form, path: request.url ?? '' });
    answer(request, response, form);
  });
});
let url = '';
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => void server.close());
beforeEach(() => void (asked = []));

const json =
  (status: number, body: unknown): Answer =>
  (_request, response) =>
    void response.writeHead(status).end(JSON.stringify(body));
const subject = { token: 'callers.own.jwt', type: 'urn:ietf:params:oauth:token-type:access_token' };
const storage = { audience: 'https://drive', resource: '', scope: 'read', metadata: '' };
const audience = { ...storage, required: false };

function client(more: Partial<ExchangeSettings> = {}) {
  const settings = {
    ...exchangeSettings.parse({ clientId: 'drover', clientSecret: 'p:ss wörd', timeoutMs: 200 }),
    tokenUrl: `${url}/token`,
    ...more,
  };
  const signer = { settings, key: null, clock: systemClock, random: systemRandom };
  return createTokenExchange({
    tokenUrl: tokenUrlOf(settings, systemClock),
    credential: clientCredential(signer),
    timeoutMs: settings.timeoutMs,
    clock: systemClock,
  });
}

test('asks as RFC 8693 says, with its own credential encoded', async () => {
  answer = json(200, { access_token: 'T', token_type: 'Bearer', expires_in: 60 });
  const got = await client().exchange(subject, audience, { offlineAccess: true });
  expect(got).toMatchObject({ kind: 'granted', token: 'T', lifeMs: 60_000, refreshToken: null });
  const { headers, form } = asked[0]!;
  expect(Object.fromEntries(form)).toEqual({
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    subject_token: subject.token,
    subject_token_type: subject.type,
    requested_token_type: 'urn:ietf:params:oauth:token-type:access_token',
    audience: 'https://drive',
    scope: 'read offline_access',
  });
  const basic = Buffer.from(headers.authorization!.slice('Basic '.length), 'base64').toString();
  expect(basic).toBe('drover:p%3Ass+w%C3%B6rd');
});

test('a refresh token comes beside the token or in its place', async () => {
  answer = json(200, { access_token: 'T', refresh_token: 'R' });
  expect(await client().exchange(subject, audience)).toMatchObject({
    refreshToken: 'R',
    lifeMs: ASSUMED_LIFE_MS,
  });
  const issued = 'urn:ietf:params:oauth:token-type:refresh_token';
  answer = json(200, { access_token: 'R2', issued_token_type: issued });
  const wish = { refreshToken: true };
  expect(await client().exchange(subject, audience, wish)).toMatchObject({ refreshToken: 'R2' });
  expect(asked[1]!.form.get('requested_token_type')).toBe(issued);
  answer = json(200, { access_token: 'T' });
  expect(await client().exchange(subject, audience, wish)).toMatchObject({ kind: 'refused' });
  expect(await client().refresh('R', audience)).toMatchObject({ kind: 'granted', token: 'T' });
  expect(Object.fromEntries(asked.at(-1)!.form)).toEqual({
    ...{ grant_type: 'refresh_token', refresh_token: 'R', scope: 'read' },
  });
});

test('a refusal is told in the server’s words, without the token it repeats', async () => {
  const error_description = `the token ${subject.token} is\nnot for you \u001b[31m`;
  answer = json(400, { error: 'invalid_grant', error_description });
  expect(await client().exchange(subject, audience)).toEqual({
    kind: 'refused',
    reason: 'invalid_grant: the token … is not for you  [31m',
  });
});

test.each<[string, Answer]>([
  ['our own credential is not taken', json(401, { error: 'invalid_client' })],
  ['it does not know exchange', json(400, { error: 'unsupported_grant_type' })],
  ['it is overloaded', json(429, { error: 'slow_down' })],
  ['it is broken', json(500, { error: 'server_error' })],
  ['it is not up to it now', json(400, { error: 'temporarily_unavailable' })],
  ['a proxy answers', (_request, response) => void response.writeHead(400).end('<html>')],
  ['there is no token in it', json(200, { token_type: 'Bearer' })],
  ['the token has a line break', json(200, { access_token: 'a\nb' })],
  ['the token is too long', json(200, { access_token: 'a'.repeat(LONGEST_TOKEN + 1) })],
  ['it is no object', json(200, ['a'])],
  [
    'it never ends',
    (_request, response) => void response.end('x'.repeat(LONGEST_ANSWER_BYTES + 1)),
  ],
  ['it never comes', () => undefined],
  ['it hangs up', (request) => void request.socket.destroy()],
  [
    'it sends us elsewhere',
    (_request, response) => void response.writeHead(307, { location: `${url}/other` }).end(),
  ],
])('%s: nobody has said no', async (_what, odd) => {
  answer = odd;
  const got = await client().exchange(subject, audience);
  expect(got.kind).toBe('unavailable');
  expect(JSON.stringify(got)).not.toContain(subject.token);
  expect(asked).toHaveLength(1);
});

test('the server is found by its issuer; a failure is not remembered', async () => {
  const found: Answer = ({ url: path }, response) => {
    if (path === '/token') return void response.end(JSON.stringify({ access_token: 'T' }));
    if (path !== '/realm/.well-known/oauth-authorization-server') {
      return void response.writeHead(404).end();
    }
    response.end(JSON.stringify({ issuer: `${url}/realm`, token_endpoint: `${url}/token` }));
  };
  const one = client({ tokenUrl: '', issuer: `${url}/realm` });
  answer = json(503, {});
  expect((await one.exchange(subject, audience)).kind).toBe('unavailable');
  answer = found;
  expect((await one.exchange(subject, audience)).kind).toBe('granted');
  asked = [];
  expect((await one.exchange(subject, audience)).kind).toBe('granted');
  expect(asked.map(({ path }) => path)).toEqual(['/token']);
  answer = json(200, { issuer: 'https://other', token_endpoint: `${url}/token` });
  const other = await client({ tokenUrl: '', issuer: url }).exchange(subject, audience);
  expect(other).toMatchObject({ reason: expect.stringContaining('another issuer') });
  answer = json(200, { issuer: url, token_endpoint: 'http://example.org/token' });
  const clear = await client({ tokenUrl: '', issuer: url }).exchange(subject, audience);
  expect(clear).toMatchObject({ reason: expect.stringContaining('with https') });
});

test.each([
  ['ec', { namedCurve: 'P-256' }, 'ES256'],
  ['ec', { namedCurve: 'P-384' }, 'ES384'],
  ['rsa', { modulusLength: 2048 }, 'RS256'],
  ['ed25519', {}, 'EdDSA'],
] as const)('our word under a key of %s %o is signed as %3$s', (type, options, alg) => {
  const pair = generateKeyPairSync(type as 'ec', options as { namedCurve: string });
  const pem = pair.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  const key = readSigningKey(pem, 'key-1', 'f');
  const settings = exchangeSettings.parse({ issuer: 'https://login', clientId: 'drover' });
  const signer = { settings, key, clock: systemClock, random: systemRandom };
  const who = { issuer: 'https://other', subject: 'ada', audiences: [], sealed: null };
  const { token, type: kind } = subjectAssertion(signer)!(who);
  expect(kind).toBe('urn:ietf:params:oauth:token-type:jwt');
  const [header, claims, signature] = token.split('.');
  const read = (part: string) => JSON.parse(Buffer.from(part, 'base64url').toString()) as unknown;
  expect(read(header!)).toEqual({ alg, typ: 'JWT', kid: 'key-1' });
  expect(read(claims!)).toMatchObject({
    ...{ iss: 'drover', sub: 'ada', aud: 'https://login' },
    sub_id: { format: 'iss_sub', iss: 'https://other', sub: 'ada' },
  });
  const publicKey = { key: createPublicKey(pair.privateKey), dsaEncoding: 'ieee-p1363' } as const;
  const bytes = Buffer.from(`${header}.${claims}`);
  expect(verify(key.hash, bytes, publicKey, Buffer.from(signature!, 'base64url'))).toBe(true);
  expect(clientCredential(signer)().fields['client_assertion']).toBeDefined();
});

test('keys that JWTs are not signed with are refused by name', () => {
  const weak = generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey;
  const odd = generateKeyPairSync('x25519').privateKey;
  for (const key of [weak, odd]) {
    const pem = key.export({ type: 'pkcs8', format: 'pem' }).toString();
    expect(() => readSigningKey(pem, '', '/etc/key')).toThrow('/etc/key');
  }
  expect(() => readSigningKey('hello', '', '/etc/key')).toThrow('no private key in PEM');
});
