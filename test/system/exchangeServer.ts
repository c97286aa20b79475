/**
 * A real OpenID provider (oidc-provider, from npm) with token exchange, on loopback: it takes its
 * own tokens, and the word of a client it trusts, and gives JWTs for other services.
 */
import {
  createPublicKey,
  generateKeyPairSync,
  randomBytes,
  verify,
  type JsonWebKey,
  type KeyObject,
} from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import {
  errors,
  Provider,
  type Configuration,
  type TokenEndpointGrantContext,
} from 'oidc-provider';

const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';
const TOKEN_TYPE = 'urn:ietf:params:oauth:token-type:';
const SCOPE = 'files.read';
const CLIENT = { id: 'drover', secret: 'exchange-client-secret-1' };
/** The same by a key: `private_key_jwt`. */
export const KEY_CLIENT = 'drover-by-key';

export interface ExchangeServer {
  issuer: string;
  /** What the client signs its word with. */
  clientKey: KeyObject;
  /** A token as people come with it. */
  login(person: string): Promise<string>;
  /** While set, every call is answered 503; `starts`: only those with a word for others. */
  away: boolean | 'starts';
  /** Nobody gives these a token, whoever asks: `ada`, or `ada https://drive`. */
  refused: Set<string>;
  /** For these it does not take the client's word. */
  unvouched: Set<string>;
  tokenSeconds: number;
  /** Every token it has given, and every word it was given: what must be found nowhere. */
  seen: Set<string>;
  /** How often each kind of grant was asked for. */
  asked: Record<'exchange' | 'refresh', number>;
  close(): Promise<void>;
}

interface Fields {
  subject_token: string;
  subject_token_type: string;
  requested_token_type?: string;
  audience: string;
  scope?: string;
}

/** People and the tenants they are of. */
export async function startExchangeServer(
  tenants: Record<string, string>,
): Promise<ExchangeServer> {
  const signing = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const client = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const http = createServer();
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  const issuer = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
  const server: ExchangeServer = {
    issuer,
    clientKey: client.privateKey,
    login: (person) => login(issuer, person),
    away: false,
    refused: new Set(),
    unvouched: new Set(),
    tokenSeconds: 600,
    seen: new Set(),
    asked: { exchange: 0, refresh: 0 },
    async close() {
      http.closeAllConnections();
      await new Promise((resolve) => http.close(resolve));
    },
  };
  const provider = new Provider(issuer, configuration(server, tenants, signing.privateKey));
  const fields = ['subject_token', 'subject_token_type', 'requested_token_type', 'audience'];
  const keys = { own: signing.publicKey, client: createPublicKey(client.privateKey) };
  provider.registerGrantType<Fields>(EXCHANGE, (ctx) => exchange(server, keys, ctx), [
    ...fields,
    'scope',
  ]);
  provider.on('grant.success', ({ oidc, body }) => {
    if (oidc.params?.['grant_type'] === 'refresh_token') server.asked.refresh++;
    const { access_token, refresh_token } = body as Record<string, string>;
    for (const token of [access_token, refresh_token]) if (token) server.seen.add(token);
  });
  const answer = provider.callback();
  http.on('request', (request, response) => {
    if (server.away === true) response.writeHead(503).end();
    // Koa answers by a promise and handles its own failures.
    else void answer(request, response);
  });
  return server;
}

function configuration(
  server: ExchangeServer,
  tenants: Readonly<Record<string, string>>,
  key: KeyObject,
): Configuration {
  const jwk: JsonWebKey & { kty?: string } = key.export({ format: 'jwk' });
  const clientKey = createPublicKey(server.clientKey).export({ format: 'jwk' });
  const plain = { redirect_uris: [], response_types: [] };
  const drover = { client_id: CLIENT.id, client_secret: CLIENT.secret, ...plain };
  return {
    clients: [
      { ...drover, grant_types: [EXCHANGE, 'refresh_token'] },
      {
        ...{ client_id: KEY_CLIENT, grant_types: [EXCHANGE, 'refresh_token'], ...plain },
        token_endpoint_auth_method: 'private_key_jwt',
        token_endpoint_auth_signing_alg: 'ES256',
        jwks: { keys: [clientKey] },
      },
      ...Object.keys(tenants).map((person) => ({
        ...{ client_id: person, client_secret: `${person}-secret`, ...plain },
        grant_types: ['client_credentials'],
      })),
    ],
    jwks: { keys: [{ ...jwk, kty: 'RSA', kid: 'server', use: 'sig', alg: 'RS256' }] },
    cookies: { keys: [randomBytes(16).toString('hex')] },
    scopes: [SCOPE, 'offline_access'],
    findAccount: (_ctx, id) =>
      server.refused.has(id) ? undefined : { accountId: id, claims: () => ({ sub: id }) },
    rotateRefreshToken: true,
    extraTokenClaims: (_ctx, { clientId = '' }) => ({ org: tenants[clientId] ?? '' }),
    ttl: { RefreshToken: 3600, Grant: 3600, ClientCredentials: 600 },
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_ctx, resource) => infoOf(server, resource),
      },
    },
  };
}

function infoOf({ tokenSeconds }: ExchangeServer, audience: string) {
  return {
    scope: SCOPE,
    audience,
    accessTokenFormat: 'jwt' as const,
    accessTokenTTL: tokenSeconds,
    jwt: { sign: { alg: 'RS256' as const } },
  };
}

async function exchange(
  server: ExchangeServer,
  keys: { own: KeyObject; client: KeyObject },
  ctx: TokenEndpointGrantContext<Fields>,
): Promise<void> {
  const { provider, client, params } = ctx.oidc;
  server.asked.exchange++;
  const { audience, scope = '' } = params;
  const isWord = params.subject_token_type === `${TOKEN_TYPE}jwt`;
  if (server.away === 'starts' && isWord) throw new errors.TemporarilyUnavailable();
  const accountId = subjectOf(server, keys, params);
  if (server.refused.has(accountId) || server.refused.has(`${accountId} ${audience}`)) {
    throw new errors.InvalidTarget(`${accountId} may not use ${audience}`);
  }
  const grant = new provider.Grant({ accountId, clientId: client.clientId });
  grant.addResourceScope(audience, SCOPE);
  grant.addOIDCScope('offline_access');
  const common = { accountId, client, grantId: await grant.save(), gty: 'token_exchange', scope };
  const token = new provider.AccessToken(common);
  token.resourceServer = new provider.ResourceServer(audience, infoOf(server, audience));
  const refresh = (): Promise<string> =>
    new provider.RefreshToken({ ...common, resource: audience }).save();
  const wantsRefresh = params.requested_token_type === `${TOKEN_TYPE}refresh_token`;
  ctx.body = wantsRefresh
    ? { access_token: await refresh(), issued_token_type: `${TOKEN_TYPE}refresh_token` }
    : {
        access_token: await token.save(),
        issued_token_type: `${TOKEN_TYPE}access_token`,
        token_type: 'Bearer',
        expires_in: token.expiration,
        ...(scope.includes('offline_access') && { refresh_token: await refresh() }),
      };
}

/** Its own tokens as they are; a word that others are meant only from the client it trusts. */
function subjectOf(
  { issuer, unvouched, seen }: ExchangeServer,
  keys: { own: KeyObject; client: KeyObject },
  { subject_token: token, subject_token_type: type }: Fields,
): string {
  seen.add(token);
  const isWord = type === `${TOKEN_TYPE}jwt`;
  const [header = '', claims = '', signature = ''] = token.split('.');
  const key = isWord ? { key: keys.client, dsaEncoding: 'ieee-p1363' as const } : keys.own;
  const bytes = Buffer.from(`${header}.${claims}`);
  const read = JSON.parse(Buffer.from(claims, 'base64url').toString()) as Record<string, unknown>;
  const isFresh = Number(read['exp']) > Date.now() / 1000;
  if (!isFresh || !verify('sha256', bytes, key, Buffer.from(signature, 'base64url'))) {
    throw new errors.InvalidGrant('the subject token is not valid');
  }
  const subject = String(read['sub']);
  const trusts = [CLIENT.id, KEY_CLIENT].includes(String(read['iss'])) && read['aud'] === issuer;
  if (isWord && (!trusts || unvouched.has(subject))) {
    throw new errors.InvalidGrant('nobody vouches for others here');
  }
  return subject;
}

async function login(issuer: string, person: string): Promise<string> {
  const credentials = Buffer.from(`${person}:${person}-secret`).toString('base64');
  const response = await fetch(`${issuer}/token`, {
    method: 'POST',
    headers: { authorization: `Basic ${credentials}` },
    body: new URLSearchParams({ grant_type: 'client_credentials', resource: 'https://drover' }),
  });
  const { access_token: token } = (await response.json()) as { access_token?: string };
  if (!token) throw new Error(`${person} got no token: ${response.status}`);
  return token;
}

/** Settings of a server that lets these people in and exchanges their tokens. */
export function exchangeEnvironment(
  { issuer, clientKey }: ExchangeServer,
  folder: string,
  audiences: object,
): Record<string, string> {
  const file = (name: string, text: string): string => {
    const place = path.join(folder, name);
    writeFileSync(place, text, { mode: 0o600 });
    return place;
  };
  const pem = clientKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  const lab = {
    ...{ name: 'lab', issuer, audience: 'https://drover', discovery: true },
    ...{ claims: { tenant: 'org' }, defaultRoles: ['user'] },
  };
  return {
    DROVER_AUTH_ISSUERS: JSON.stringify([lab]),
    DROVER_EXCHANGE_ISSUER: issuer,
    DROVER_EXCHANGE_CLIENT_ID: CLIENT.id,
    DROVER_EXCHANGE_CLIENT_SECRET_FILE: file('secret', `${CLIENT.secret}\n`),
    DROVER_EXCHANGE_KEY_FILE: file('key.pem', pem),
    DROVER_EXCHANGE_MASTER_KEY_FILE: file(
      'master.keys',
      `k1:${randomBytes(32).toString('base64')}\n`,
    ),
    DROVER_EXCHANGE_AUDIENCES: JSON.stringify(audiences),
  };
}
