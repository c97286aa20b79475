/** `/proxy/{endpoint}/…`: pages that a running task serves, through the tunnel to its machine. */
import { request as httpRequest, type IncomingMessage } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { DroverError } from '../../lib/errors.ts';
import { ENDPOINT, endpointPath, parseEndpoint } from '../../protocol/tunnel/endpoint.ts';
import type { App } from '../app.ts';
import { bearerOf } from '../auth/authorize.ts';
import { found, one } from '../rest/envelope.ts';
import { connectEndpoint, identify, type ProxyOptions } from './access.ts';
import { requestHeaders, responseHeaders } from './headers.ts';
import { SESSION_COOKIE } from './sessions.ts';

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const;
/** Below an endpoint, for links only. */
const LOGIN = 'drover-login';

const params = z.object({ endpoint: z.string().max(300) });
const loginQuery = z.object({ code: z.string().max(100), next: z.string().max(1000).default('') });
const next = z
  .string()
  .max(1000)
  .regex(/^[A-Za-z0-9._~!$&'()*+,;=:@%-][A-Za-z0-9._~!$&'()*+,;=:@%/?-]*$/)
  .or(z.literal(''))
  .default('');

const loginBody = z
  .strictObject({
    endpoint: z
      .string()
      .max(300)
      .describe('TASK:PORT, or TASK:NAME for the socket NAME.sock in its directory')
      .meta({ pattern: ENDPOINT.source }),
    next: next.describe('Where the link leads: a path below the endpoint'),
  })
  .meta({ examples: [{ endpoint: 'jmi1qx2k8a7c101.0:8888', next: 'lab' }] });

export function proxyRoutes(app: App, options: ProxyOptions): void {
  app.route({
    method: 'POST',
    url: '/v1/proxy/logins',
    config: { access: 'jobs:manage' },
    schema: {
      tags: ['proxy'],
      operationId: 'createProxyLogin',
      summary: 'Make a link that opens what a task serves in a browser, once',
      body: loginBody,
      response: { 201: one(z.object({ path: z.string() })) },
    },
    handler: async (request, reply) => {
      const { endpoint, next } = request.body;
      parseEndpoint(endpoint);
      const code = options.sessions.createLogin(endpoint, bearerOf(request));
      const query = new URLSearchParams({ code, ...(next ? { next } : {}) });
      const path = `${endpointPath(endpoint)}${LOGIN}?${query.toString()}`;
      return reply.code(201).header('cache-control', 'no-store').send(found({ path }));
    },
  });
  // Bodies pass as they are, so the parsers of the rest stay out of it.
  void app.register(async (scope: App) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', (_request, _payload, done) => done(null));
    scope.route({
      method: 'GET',
      url: `/proxy/:endpoint/${LOGIN}`,
      config: { access: 'open' },
      schema: { hide: true, params, querystring: loginQuery },
      handler: (request, reply) => login(request.params.endpoint, request.query, reply, options),
    });
    for (const method of METHODS) {
      scope.route({
        method,
        url: '/proxy/:endpoint/*',
        config: { access: 'open', pace: 'stream' },
        schema: { hide: true, params },
        exposeHeadRoute: false,
        handler: (request, reply) => pass(request.params.endpoint, request, reply, options),
      });
    }
  });
}

async function login(
  endpoint: string,
  { code, next }: { code: string; next: string },
  reply: FastifyReply,
  { sessions, secure }: ProxyOptions,
): Promise<FastifyReply> {
  const path = endpointPath(endpoint);
  const session = sessions.login(endpoint, code);
  const cookie = `${SESSION_COOKIE}=${session}; Path=${path}; HttpOnly; SameSite=Lax`;
  return reply
    .code(303)
    .header('set-cookie', secure ? `${cookie}; Secure` : cookie)
    .header('cache-control', 'no-store')
    .header('referrer-policy', 'no-referrer')
    .header('location', `${path}${next}`)
    .send();
}

/** Until the task has answered, a failure is ours to tell. */
async function pass(
  endpoint: string,
  request: FastifyRequest,
  reply: FastifyReply,
  options: ProxyOptions,
): Promise<void> {
  const { who, byCookie } = await identify(request.raw, endpoint, options);
  const connection = await connectEndpoint(who, endpoint, options);
  const headers = requestHeaders(request.raw.headers, {
    withAuthorization: byCookie,
    prefix: endpointPath(endpoint),
    address: request.raw.socket.remoteAddress ?? '',
  });
  const upstream = httpRequest({
    createConnection: () => connection,
    method: request.method,
    path: request.raw.url ?? '/',
    headers: { ...headers, connection: 'close' },
  });
  reply.raw.once('close', () => upstream.destroy());
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    upstream.once('response', resolve);
    upstream.on('error', (cause) => reject(asUnavailable(cause)));
    request.raw.pipe(upstream);
  });
  reply.hijack();
  const { statusCode = 502, statusMessage } = response;
  reply.raw.writeHead(statusCode, statusMessage, responseHeaders(response.headers));
  response.on('error', () => reply.raw.destroy());
  response.pipe(reply.raw);
}

function asUnavailable(cause: Error): DroverError {
  if (cause instanceof DroverError) return cause;
  return new DroverError('UNAVAILABLE', `the task did not answer: ${cause.message}`, { cause });
}
