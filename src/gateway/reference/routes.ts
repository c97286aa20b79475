/** /openapi.json for programs, /reference for people: the same document twice. */
import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { App } from '../app.ts';
import type { OpenApi } from '../description/document.ts';
import { referencePage } from './page.ts';

const tags = ['description'];
const config = { access: 'open' } as const;
const unchanged = z.null().describe('It is the one that If-None-Match names');
/** The page takes nothing from elsewhere, sends nothing and sits in no frame. */
const PAGE_POLICY =
  "default-src 'none'; style-src 'self'; script-src 'self'; img-src data:; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

interface Content {
  type: string;
  text: string;
  etag: string;
}

export function referenceRoutes(app: App, describe: () => OpenApi): void {
  const description = once('application/json; charset=utf-8', () => JSON.stringify(describe()));
  const page = once('text/html; charset=utf-8', () => referencePage(describe()));
  app.route({
    method: 'GET',
    url: '/openapi.json',
    config,
    schema: {
      tags,
      operationId: 'getDescription',
      summary: 'This API as OpenAPI 3.1',
      response: { 200: z.looseObject({ openapi: z.string() }), 304: unchanged },
    },
    handler: (request, reply) => send(request, reply, description()),
  });

  app.route({
    method: 'GET',
    url: '/reference',
    config,
    schema: {
      tags,
      operationId: 'getReference',
      summary: 'This API as a page',
      response: {
        200: { description: 'The page', content: { 'text/html': { schema: z.string() } } },
        304: unchanged,
      },
    },
    handler: (request, reply) => {
      reply.header('content-security-policy', PAGE_POLICY);
      send(request, reply, page());
    },
  });

  for (const [file, type] of [
    ['style.css', 'text/css; charset=utf-8'],
    ['search.js', 'text/javascript; charset=utf-8'],
  ] as const) {
    const asset = once(type, () => readFileSync(new URL(file, import.meta.url), 'utf8'));
    app.route({
      method: 'GET',
      url: `/reference/${file}`,
      config,
      schema: { hide: true },
      handler: (request, reply) => send(request, reply, asset()),
    });
  }
}

/** Made when first asked for: not every gateway is. */
function once(type: string, make: () => string): () => Content {
  let content: Content | undefined;
  return () => {
    if (content === undefined) {
      const text = make();
      content = { type, text, etag: `"${hash('sha256', text, 'hex').slice(0, 32)}"` };
    }
    return content;
  };
}

/** Sent as it is: made and checked once, not for each reader. */
function send(request: FastifyRequest, reply: FastifyReply, content: Content): void {
  const { type, text, etag } = content;
  reply.header('etag', etag).header('cache-control', 'no-cache');
  if (request.headers['if-none-match'] === etag) return void reply.code(304).send();
  void reply
    .header('content-type', type)
    .serializer((payload: unknown) => payload as string)
    .send(text);
}
