/** Tokens made to deceive: each is answered 401 and told why, and none breaks anything. */
import { sign } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../lib/clock.ts';
import { DroverError } from '../../lib/errors.ts';
import { silentLog } from '../../lib/log.ts';
import { authSettings } from '../../model/authSettings.ts';
import { createFakeCoordinator } from '../fakeCoordinator.ts';
import { startTestGateway, type TestGateway } from '../testGateway.ts';
import { openAuthenticate, type Authenticate } from './authenticate.ts';
import { AUTH_LIMITS } from './limits.ts';
import { forge, hmacWith, newTestKey, signed, signerOf } from './testIssuer.ts';

const ISSUER = 'https://login.example.org/realms/lab';
const OTHER = 'https://other.example.org';
const AUDIENCE = 'drover';
const rsa = newTestKey('rsa-1', 'RS256');
const ec = newTestKey('ec-1', 'ES256');
const ed = newTestKey('ed-1', 'EdDSA');
const pss = newTestKey('pss-1', 'PS256');
const theirs = newTestKey('theirs-1', 'RS256');
const mallory = newTestKey('rsa-1', 'RS256');

const now = Math.floor(Date.now() / 1000);
const claims = { iss: ISSUER, aud: AUDIENCE, sub: 'ada', exp: now + 600, groups: ['gpu-users'] };
const without = (name: keyof typeof claims) => ({ ...claims, [name]: undefined });
const good = signed(rsa, claims);
const [goodHeader = '', goodPayload = '', goodSignature = ''] = good.split('.');

let gateway: TestGateway;
let authenticate: Authenticate;
beforeAll(async () => {
  const settings = authSettings.parse({
    issuers: [
      {
        name: 'lab',
        issuer: ISSUER,
        audience: AUDIENCE,
        keys: [rsa, ec, ed, pss].map(({ jwk }) => jwk),
        tenant: 'physics',
        roles: { 'gpu-users': ['user'] },
      },
      { name: 'other', issuer: OTHER, audience: AUDIENCE, keys: [theirs.jwk], tenant: 'guests' },
    ],
  });
  const coordinator = createFakeCoordinator();
  authenticate = await openAuthenticate(settings, {
    coordinator,
    clock: systemClock,
    log: silentLog,
  });
  gateway = await startTestGateway({}, { authenticate });
});
afterAll(() => gateway.close());

const withHeader = (header: object): string => signed(rsa, claims, header);
const withClaims = (changed: object): string => signed(rsa, { ...claims, ...changed });
const none = (alg: string): string => forge({ alg, typ: 'JWT' }, claims, () => Buffer.alloc(0));
const hs256 = (secret: string | Buffer): string =>
  forge({ alg: 'HS256', typ: 'JWT', kid: 'rsa-1' }, claims, hmacWith(secret));
const pem = rsa.publicKey.export({ type: 'spki', format: 'pem' });
const der = rsa.publicKey.export({ type: 'spki', format: 'der' });

/** Name, token, a word that the answer must have. */
const ATTACKS: [string, string, string][] = [
  ['none', none('none'), 'algorithm'],
  ['None', none('None'), 'algorithm'],
  ['none with the signature kept', forge({ alg: 'none' }, claims, signerOf(rsa)), 'algorithm'],
  ['no algorithm', forge({ typ: 'JWT', kid: 'rsa-1' }, claims, signerOf(rsa)), 'algorithm'],
  ['an algorithm that is a list', withHeader({ alg: ['RS256'] }), 'algorithm'],
  ['HS256 with the public key as PEM', hs256(pem), 'algorithm'],
  ['HS256 with the public key as DER', hs256(der), 'algorithm'],
  ['HS256 with the published key', hs256(JSON.stringify(rsa.jwk)), 'algorithm'],
  ['HS256 with the modulus', hs256(Buffer.from(rsa.jwk.n ?? '', 'base64url')), 'algorithm'],
  ['HS256 with nothing', hs256(''), 'algorithm'],
  ['lower case', withHeader({ alg: 'rs256' }), 'algorithm'],
  ['another algorithm of the same key', withHeader({ alg: 'PS256' }), 'no such key'],
  ['RS512 with the key of RS256', withHeader({ alg: 'RS512' }), 'no such key'],
  ['ES256 with an RSA key id', signed(ec, claims, { kid: 'rsa-1' }), 'no such key'],

  ['a path as key id', withHeader({ kid: '../../../../dev/null' }), 'no such key'],
  ['SQL as key id', withHeader({ kid: "rsa-1' OR '1'='1" }), 'no such key'],
  ['an address as key id', withHeader({ kid: 'https://evil.example/jwks' }), 'no such key'],
  ['__proto__ as key id', withHeader({ kid: '__proto__' }), 'no such key'],
  ['an empty key id', withHeader({ kid: '' }), 'no such key'],
  ['a list as key id', withHeader({ kid: ['rsa-1'] }), 'kid'],
  ['null as key id', withHeader({ kid: null }), 'kid'],
  ['no key id where there are several', withHeader({ kid: undefined }), 'no such key'],
  ['the key of another issuer', signed(theirs, claims), 'no such key'],
  ['another issuer for our key', signed(rsa, { ...claims, iss: OTHER }), 'no such key'],
  ['a stranger with our key id', signed(mallory, claims), 'signature'],

  ['jku', signed(mallory, claims, { jku: 'https://evil.example/jwks' }), 'jku'],
  ['x5u', signed(mallory, claims, { x5u: 'https://evil.example/cert' }), 'x5u'],
  ['jwk', signed(mallory, claims, { jwk: mallory.jwk }), 'jwk'],
  ['x5c', signed(mallory, claims, { x5c: ['MIIB'] }), 'x5c'],
  ['jku beside a good signature', withHeader({ jku: 'https://evil.example/jwks' }), 'jku'],

  ['expired', withClaims({ exp: now - 60 }), 'expired'],
  ['expired long ago', withClaims({ exp: -1e300 }), 'expired'],
  ['no expiry', signed(rsa, without('exp')), 'exp'],
  ['an expiry that is text', withClaims({ exp: String(now + 600) }), 'exp'],
  ['not yet valid', withClaims({ nbf: now + 300 }), 'not valid yet'],
  ['a beginning that is text', withClaims({ nbf: 'now' }), 'nbf'],

  ['another issuer', withClaims({ iss: 'https://evil.example' }), 'issuer'],
  ['no issuer', signed(rsa, without('iss')), 'issuer'],
  ['a list of issuers', withClaims({ iss: [ISSUER] }), 'issuer'],
  ['the issuer with a slash', withClaims({ iss: `${ISSUER}/` }), 'issuer'],
  ['the issuer __proto__', withClaims({ iss: '__proto__' }), 'issuer'],
  ['another audience', withClaims({ aud: 'payroll' }), 'audience'],
  ['no audience', signed(rsa, without('aud')), 'audience'],
  ['a list of other audiences', withClaims({ aud: ['payroll', 'drover2'] }), 'audience'],
  ['an audience that begins alike', withClaims({ aud: 'drover.evil.example' }), 'audience'],
  ['an audience that is a number', withClaims({ aud: 7 }), 'audience'],

  ['no subject', signed(rsa, without('sub')), 'sub'],
  ['an empty subject', withClaims({ sub: '' }), 'sub'],
  ['a subject with lines', withClaims({ sub: 'ada\nx-tenant-id: guests' }), 'sub'],
  ['a subject without end', withClaims({ sub: 'a'.repeat(300) }), 'sub'],
  ['a logout token by its type', withHeader({ typ: 'logout+jwt' }), 'typ'],
  ['a proof of possession', withHeader({ typ: 'dpop+jwt' }), 'typ'],
  ['a type that is a number', withHeader({ typ: 1 }), 'typ'],
  ['a logout token by its claims', withClaims({ events: { logout: {} } }), 'event'],
  ["Keycloak's refresh token", withClaims({ typ: 'Refresh' }), 'access token'],
  ['crit', withHeader({ crit: ['exp'] }), 'crit'],
  ['crit with b64', withHeader({ crit: ['b64'], b64: false }), 'crit'],
  ['b64 alone', withHeader({ b64: false }), 'b64'],

  ['a signature of zeros', forgeWith('ES256', Buffer.alloc(64)), 'signature'],
  ['an empty signature', forgeWith('ES256', Buffer.alloc(0)), 'refused'],
  ['a signature in DER', signedInDer(), 'signature'],
  ['another payload', `${goodHeader}.${swapped()}.${goodSignature}`, 'signature'],
  ['half a signature', good.slice(0, -20), 'signature'],
  ['no signature', `${goodHeader}.${goodPayload}.`, 'signature'],
  ['too long', withClaims({ groups: ['x'.repeat(AUTH_LIMITS.jwtBytes)] }), 'longer'],
  ['a list as payload', forge({ alg: 'RS256' }, [], signerOf(rsa)), 'read'],
  ['null as payload', forge({ alg: 'RS256' }, null, signerOf(rsa)), 'read'],
  ['null as header', forge(null, claims, signerOf(rsa)), 'read'],
  ['no JSON', forge('{', '{', signerOf(rsa)), 'read'],
  ['letters', 'a.b.c', 'read'],
  ['no part but dots', '..', 'unknown'],
  ['a trailing dot', `${good}.`, 'unknown'],
  ['trailing dots', `${good}..`, 'unknown'],
  ['five parts, as if encrypted', `${good}.${goodPayload}.${goodSignature}`, 'unknown'],
  ['padding', `${good}==`, 'unknown'],
  ['two parts', `${goodHeader}.${goodPayload}`, 'unknown'],
];

function forgeWith(alg: 'ES256', signature: Buffer): string {
  return forge({ alg, typ: 'JWT', kid: ec.kid }, claims, () => signature);
}

function signedInDer(): string {
  const header = { alg: 'ES256', typ: 'JWT', kid: ec.kid };
  return forge(header, claims, (input) => sign('sha256', Buffer.from(input), ec.privateKey));
}

function swapped(): string {
  return Buffer.from(JSON.stringify({ ...claims, sub: 'eve' })).toString('base64url');
}

describe('refused', () => {
  test.for(ATTACKS)('%s', async ([, token, word]) => {
    const answer = await gateway.call('GET', '/v1/jobs', { token });
    expect([answer.status, answer.json.code]).toEqual([401, 'UNAUTHENTICATED']);
    expect(answer.headers.get('content-type')).toContain('application/problem+json');
    expect(answer.headers.get('www-authenticate')).toContain('Bearer');
    expect(answer.json.detail).toContain(word);
    for (const part of token.split('.').filter((text) => text.length > 8)) {
      expect(answer.text).not.toContain(part);
    }
  });

  test('whatever one character of a good token becomes', async () => {
    const wrong = fc.tuple(
      fc.nat(good.length - 1),
      fc.constantFrom(...'A Z a z 0 9 - _ .'.split(' ')),
    );
    await fc.assert(
      fc.asyncProperty(wrong, async ([at, letter]) => {
        const token = good.slice(0, at) + letter + good.slice(at + 1);
        if (sameBytes(token, good)) return;
        const outcome = await authenticate(token).catch((error: unknown) => error);
        if (outcome !== undefined) expect(outcome).toBeInstanceOf(DroverError);
        if (outcome instanceof DroverError) expect(outcome.code).toBe('UNAUTHENTICATED');
      }),
      { numRuns: 300 },
    );
  });
});

/** The last letter of a part has bits that mean nothing. */
function sameBytes(a: string, b: string): boolean {
  const bytes = (token: string): string[] =>
    token.split('.').map((part) => Buffer.from(part, 'base64url').toString('hex'));
  return bytes(a).join() === bytes(b).join();
}

describe('let in', () => {
  test.for<[string, string]>([
    ['RS256', good],
    ['ES256', signed(ec, claims)],
    ['EdDSA', signed(ed, claims)],
    ['PS256', signed(pss, claims)],
    ['several audiences', withClaims({ aud: ['payroll', AUDIENCE] })],
    ['an access token by its type', withHeader({ typ: 'at+jwt' })],
    ['no type', withHeader({ typ: undefined })],
    ['a clock that is a little wrong', withClaims({ exp: now - 5, nbf: now + 5 })],
    ['an expiry beyond all clocks', withClaims({ exp: 1e300 })],
  ])('%s', async ([, token]) => {
    expect((await gateway.call('GET', '/v1/jobs', { token })).status).toBe(200);
  });

  test('the only key of an issuer needs no id; who is in no group may nothing', async () => {
    const token = signed(theirs, { ...claims, iss: OTHER }, { kid: undefined });
    const answer = await gateway.call('GET', '/v1/jobs', { token });
    expect([answer.status, answer.json.code]).toEqual([403, 'PERMISSION_DENIED']);
  });

  test('what a token says of its own power counts for nothing', async () => {
    const token = withClaims({ roles: ['admin'], scopes: ['tokens:manage'], tenant: 'guests' });
    expect((await gateway.call('GET', '/v1/tokens', { token })).status).toBe(403);
    expect(await authenticate(token)).toMatchObject({
      tenant: 'physics',
      user: 'ada',
      scopes: ['jobs:read', 'jobs:manage', 'fleet:read'],
      identity: { issuer: ISSUER, subject: 'ada' },
    });
  });
});
