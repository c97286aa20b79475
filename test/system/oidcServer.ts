/**
 * A real OpenID provider (oidc-provider, from npm) on loopback, for tests of who comes in. Tokens
 * are JWTs by client credentials; the audience is the resource that is asked for.
 */
import { generateKeyPairSync, randomBytes, type JsonWebKey } from 'node:crypto';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Provider, type ClientMetadata, type Configuration } from 'oidc-provider';

interface OidcClient {
  id: string;
  secret: string;
  /** Put into its access tokens. */
  claims?: Record<string, string | string[]>;
  /** Beside client_credentials. */
  grantTypes?: string[];
}

export interface OidcServerOptions {
  clients: OidcClient[];
  /** Scopes that a client may ask for at any resource. */
  scopes?: string[];
  tokenSeconds?: number;
  /** Called for each provider that is made: a test adds its own grant types. */
  extend?: (provider: Provider) => void;
}

export interface OidcServer extends AsyncDisposable {
  issuer: string;
  /** An access token of the client itself, by its credentials. */
  token(client: string, audience: string, scope?: string): Promise<string>;
  /** Signs with a new key from now on; the old one is not published any more. */
  rotate(): void;
  /** Everything that was asked, as `GET /jwks`. */
  asked: string[];
  /** While set, every call is answered 503. */
  away: boolean;
  close(): Promise<void>;
}

export async function startOidcServer(options: OidcServerOptions): Promise<OidcServer> {
  let answer: RequestListener = () => undefined;
  const server = createServer((request, response) => {
    oidc.asked.push(`${request.method} ${request.url}`);
    if (oidc.away) response.writeHead(503).end();
    else answer(request, response);
  });
  const issuer = await listen(server);
  const rotate = (): void => {
    const provider = new Provider(issuer, configurationOf(options));
    options.extend?.(provider);
    // Koa answers by a promise and handles its own failures.
    const callback = provider.callback();
    answer = (request, response) => void callback(request, response);
  };
  const close = async (): Promise<void> => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  const oidc: OidcServer = {
    issuer,
    token: (client, audience, scope) => fetchToken(issuer, options, { client, audience, scope }),
    rotate,
    asked: [],
    away: false,
    close,
    [Symbol.asyncDispose]: close,
  };
  rotate();
  return oidc;
}

async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function configurationOf({ clients, scopes = [], tokenSeconds = 600 }: OidcServerOptions) {
  const claims = new Map(clients.map((client) => [client.id, client.claims ?? {}]));
  const configuration: Configuration = {
    clients: clients.map(metadataOf),
    jwks: { keys: [newKey()] },
    cookies: { keys: [randomBytes(16).toString('hex')] },
    scopes,
    ttl: { ClientCredentials: tokenSeconds, AccessToken: tokenSeconds },
    extraTokenClaims: (_context, { clientId = '' }) => claims.get(clientId),
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_context, resource) => ({
          scope: scopes.join(' '),
          audience: resource,
          accessTokenFormat: 'jwt',
          accessTokenTTL: tokenSeconds,
          jwt: { sign: { alg: 'RS256' } },
        }),
      },
    },
  };
  return configuration;
}

function metadataOf({ id, secret, grantTypes = [] }: OidcClient): ClientMetadata {
  return {
    client_id: id,
    client_secret: secret,
    grant_types: ['client_credentials', ...grantTypes],
    redirect_uris: [],
    response_types: [],
  };
}

function newKey(): JsonWebKey & { kty: string } {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const kid = randomBytes(8).toString('hex');
  return { ...privateKey.export({ format: 'jwk' }), kty: 'RSA', kid, use: 'sig', alg: 'RS256' };
}

async function fetchToken(
  issuer: string,
  { clients }: OidcServerOptions,
  { client, audience, scope }: { client: string; audience: string; scope: string | undefined },
): Promise<string> {
  const secret = clients.find(({ id }) => id === client)?.secret ?? '';
  const body = new URLSearchParams({ grant_type: 'client_credentials', resource: audience });
  if (scope !== undefined) body.set('scope', scope);
  const credentials = Buffer.from(`${client}:${secret}`).toString('base64');
  const headers = { authorization: `Basic ${credentials}` };
  const response = await fetch(`${issuer}/token`, { method: 'POST', headers, body });
  const answer = (await response.json()) as { access_token?: string };
  if (!answer.access_token) throw new Error(`no token: ${JSON.stringify(answer)}`);
  return answer.access_token;
}
