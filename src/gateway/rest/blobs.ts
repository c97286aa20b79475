/** /v1/blobs: raw bytes by their hash, of the caller's tenant alone. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { BlobContent, BlobStore } from '../../blobs/contract.ts';
import { noSuchBlob } from '../../blobs/errors.ts';
import type { BlobQuota } from '../../blobs/quota.ts';
import { DroverError } from '../../lib/errors.ts';
import { freeMemory } from '../../lib/freeMemory.ts';
import { BLOB_HASH, type BlobHash, isBlobHash } from '../../model/blob.ts';
import { blobView, EXAMPLE_HASH, missingBlobs, missingView } from '../../protocol/blobs.ts';
import type { App } from '../app.ts';
import { setSending } from '../clientError.ts';
import type { GatewayLimits } from '../limits.ts';
import { found, one } from './envelope.ts';
import { pieceStream } from './pieceStream.ts';
import { rangeOf } from './range.ts';

export interface BlobRouteOptions {
  store: BlobStore;
  quota: BlobQuota;
  maxBlobBytes: number;
  limits: Pick<GatewayLimits, 'transferSilenceMs' | 'signedUrlMs'>;
}

const BYTES = 'application/octet-stream';
const tags = ['blobs'];
const params = z.strictObject({
  hash: z
    .string()
    .max(200)
    .describe('sha256: and 64 hexadecimal digits')
    .meta({ examples: [EXAMPLE_HASH], pattern: BLOB_HASH.source }),
});
const removed = z.object({ hash: z.string() });
const bytes = (description: string) => ({
  description,
  content: { 'application/octet-stream': { schema: z.string() } },
});
const nothing = (description: string) => z.null().describe(description);
const rangeHeaders = z.looseObject({
  range: z.string().max(200).optional().describe('One range of bytes: bytes=0-1023'),
  'if-none-match': z.string().max(200).optional().describe('The ETag of the copy at hand'),
  'if-range': z.string().max(200).optional().describe('Range counts only for this ETag'),
});
const read = { access: 'jobs:read', orAttempt: true, pace: 'stream' } as const;
const write = { access: 'jobs:manage', orAttempt: true } as const;

export function blobRoutes(app: App, options: BlobRouteOptions): void {
  const { store } = options;
  app.route({
    method: 'POST',
    url: '/v1/blobs/missing',
    config: write,
    schema: {
      tags,
      operationId: 'findMissingBlobs',
      summary: 'Which of these blobs have to be sent; the others are kept for now',
      body: missingBlobs,
      response: { 200: one(missingView) },
    },
    handler: async ({ principal, body }) => {
      const hashes = body.hashes as BlobHash[];
      return found({ missing: await store.missing(principal.tenant, hashes) });
    },
  });

  app.route({
    method: 'DELETE',
    url: '/v1/blobs/:hash',
    // Not for agents: what a job keeps is its owner's to remove.
    config: { access: 'jobs:manage' },
    schema: {
      tags,
      operationId: 'removeBlob',
      summary: 'Remove a blob',
      params,
      response: { 200: one(removed) },
    },
    handler: async (request) => {
      const hash = hashOf(request.params.hash);
      const { tenant } = request.principal;
      if (!(await store.remove(tenant, hash))) throw noSuchBlob(hash);
      options.quota.forget(tenant);
      return found({ hash });
    },
  });

  readRoutes(app, options);
  app.register((scope, _options, done) => {
    putRoute(scope, options);
    done();
  });
}

function readRoutes(app: App, options: BlobRouteOptions): void {
  const querystring = z.strictObject({
    redirect: z.enum(['0', '1']).default('0').describe('1: answer with a signed URL if possible'),
  });
  app.route({
    method: 'HEAD',
    url: '/v1/blobs/:hash',
    // Others come of a GET and are left out of the description; this one says more.
    config: { ...read, swagger: { exposeHeadRoute: true } },
    schema: {
      tags,
      operationId: 'statBlob',
      summary: 'Whether there is such a blob, and its size',
      params,
      querystring,
    },
    handler: async (request, reply) => {
      const hash = hashOf(request.params.hash);
      const known = await options.store.stat(request.principal.tenant, hash);
      if (!known) throw noSuchBlob(hash);
      return describe(reply, hash).header('content-length', known.size).send();
    },
  });

  app.route({
    method: 'GET',
    url: '/v1/blobs/:hash',
    config: { ...read, failures: ['RANGE_NOT_SATISFIABLE'] },
    schema: {
      tags,
      operationId: 'getBlob',
      summary: 'The bytes of a blob, or a Range of them',
      params,
      querystring,
      headers: rangeHeaders,
      response: {
        200: bytes('All of it'),
        206: bytes('The bytes that Range asked for'),
        304: nothing('It is the one that If-None-Match names'),
        307: nothing('At the signed URL of the header Location'),
      },
    },
    handler: async (request, reply) => {
      const hash = hashOf(request.params.hash);
      if (request.query.redirect === '1') {
        const url = await signedUrl(request, hash, options);
        if (url) return reply.header('cache-control', 'no-store').redirect(url, 307);
      }
      return sendBlob(request, reply, hash, options);
    },
  });
}

async function signedUrl(
  { principal }: FastifyRequest,
  hash: BlobHash,
  { store, limits }: BlobRouteOptions,
): Promise<string | undefined> {
  if (store.kind !== 's3') return undefined;
  if (!(await store.stat(principal.tenant, hash))) throw noSuchBlob(hash);
  return store.signedUrl(principal.tenant, hash, limits.signedUrlMs);
}

async function sendBlob(
  request: FastifyRequest,
  reply: FastifyReply,
  hash: BlobHash,
  { store, limits }: BlobRouteOptions,
): Promise<FastifyReply> {
  const { tenant } = request.principal;
  const known = await store.stat(tenant, hash);
  if (!known) throw noSuchBlob(hash);
  describe(reply, hash);
  if (request.headers['if-none-match'] === etag(hash)) return reply.code(304).send();
  const range = rangeOf(request.headers, etag(hash), known.size);
  if (range === 'outside') {
    reply.header('content-range', `bytes */${known.size}`);
    throw new DroverError('RANGE_NOT_SATISFIABLE', `The blob has ${known.size} bytes`);
  }
  const stream = pieceStream(await store.pieces(tenant, hash, range));
  if (range) {
    reply.code(206).header('content-range', `bytes ${range.start}-${range.end}/${known.size}`);
  }
  const length = range ? range.end - range.start + 1 : known.size;
  // A reader that has stopped reading must not hold the file for ever.
  reply.raw.setTimeout(limits.transferSilenceMs, () => reply.raw.destroy());
  return reply.header('content-length', length).send(stream);
}

/** Its own scope, so that bytes are taken as they come here and nowhere else. */
function putRoute(app: App, options: BlobRouteOptions): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, payload, done) => done(null, payload));
  app.route({
    method: 'PUT',
    url: '/v1/blobs/:hash',
    config: { ...write, pace: 'stream', reads: BYTES, failures: ['OVER_QUOTA', 'NO_SPACE'] },
    schema: {
      tags,
      operationId: 'putBlob',
      summary: 'Put a blob: its bytes as the body, with Content-Length',
      params,
      response: { 200: one(blobView), 201: one(blobView) },
    },
    handler: async (request, reply) => {
      const hash = hashOf(request.params.hash);
      const size = sizeOf(request, options.maxBlobBytes);
      const body = (request.body ?? []) as BlobContent;
      // Files are written from a copy; parts for S3 are gathered from the chunks themselves.
      const content = options.store.kind === 'files' ? freed(body) : body;
      const { created } = await receive(request, options, { hash, size, content });
      return reply.code(created ? 201 : 200).send(found({ hash, size, created }));
    },
  });
}

/** A chunk was used when the next one is asked for. */
async function* freed(body: BlobContent): AsyncGenerator<Uint8Array> {
  for await (const chunk of body) {
    yield chunk;
    freeMemory(chunk);
  }
}

async function receive(
  { principal, raw }: FastifyRequest,
  { store, quota, limits }: BlobRouteOptions,
  { hash, size, content }: { hash: BlobHash; size: number; content: BlobContent },
): Promise<{ created: boolean }> {
  // What is there already costs nothing, also where the quota is used up.
  if ((await store.missing(principal.tenant, [hash])).length === 0) return { created: false };
  const giveBack = await quota.reserve(principal.tenant, size);
  setSending(raw.socket, true);
  raw.setTimeout(limits.transferSilenceMs, () => raw.destroy());
  let created = false;
  try {
    ({ created } = await store.put(principal.tenant, hash, size, content));
  } finally {
    setSending(raw.socket, false);
    if (!created) giveBack();
  }
  return { created };
}

function describe(reply: FastifyReply, hash: BlobHash): FastifyReply {
  return reply
    .header('content-type', 'application/octet-stream')
    .header('x-content-type-options', 'nosniff')
    .header('accept-ranges', 'bytes')
    .header('etag', etag(hash))
    .header('cache-control', 'private, max-age=86400, immutable');
}

function etag(hash: BlobHash): string {
  return `"${hash}"`;
}

function hashOf(text: string): BlobHash {
  if (isBlobHash(text)) return text;
  throw new DroverError('INVALID_ARGUMENT', `${text} is not the name of a blob`, {
    hint: 'It is sha256: and 64 hexadecimal digits in lower case, as sha256sum prints them.',
  });
}

/** A body without a length could only be refused when all of it has come. */
function sizeOf({ headers }: FastifyRequest, maxBlobBytes: number): number {
  const stated = headers['content-length'];
  if (stated === undefined) {
    throw new DroverError('INVALID_ARGUMENT', 'The request has no Content-Length', {
      hint: 'Send the size of the blob as Content-Length; chunked bodies are not taken here.',
    });
  }
  const size = Number(stated);
  if (size <= maxBlobBytes) return size;
  throw new DroverError('BODY_TOO_LARGE', `A blob may have ${maxBlobBytes} bytes, not ${size}`, {
    hint: 'Split it; the limit is blobs.maxBlobBytes.',
  });
}
