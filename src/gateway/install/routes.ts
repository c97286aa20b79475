/**
 * /install: what a bare machine needs to become a worker. Anybody may have it: it holds no secret,
 * and joining needs a token.
 */
import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { DroverError } from '../../lib/errors.ts';
import type { App } from '../app.ts';
import type { GatewayLimits } from '../limits.ts';
import { found, one } from '../rest/envelope.ts';
import { rangeOf } from '../rest/range.ts';
import { findBundle, openBundle, PLATFORMS } from './bundle.ts';
import { joinScript } from './joinScript.ts';

export interface InstallOptions {
  /** Where the agent may lie; the first folder that has one counts. */
  folders: readonly string[];
  /** How agents reach this gateway; empty: as whoever asks did. */
  publicUrl: string;
  limits: Pick<GatewayLimits, 'installDownloads' | 'transferSilenceMs'>;
}

const tags = ['install'];
const config = { access: 'open', failures: ['NOT_FOUND'] } as const;
const querystring = z.strictObject({
  platform: z.enum(PLATFORMS).default('linux-x64').describe('For which machines'),
});
const headers = z.looseObject({
  range: z.string().max(200).optional().describe('One range of bytes: bytes=0-1023'),
  'if-none-match': z.string().max(200).optional().describe('The ETag of the copy at hand'),
  'if-range': z.string().max(200).optional().describe('Range counts only for this ETag'),
});
const bytes = (description: string) => ({
  description,
  content: { 'application/octet-stream': { schema: z.string() } },
});
const text = (type: string) => ({ content: { [type]: { schema: z.string() } } });
const versionView = z.object({
  version: z.string(),
  platform: z.enum(PLATFORMS),
  sha256: z.string().describe('Of the executable, not of its compressed copy'),
  bytes: z.int(),
});

export function installRoutes(app: App, options: InstallOptions): void {
  const { folders } = options;
  downloadRoutes(app, options);
  app.route({
    method: 'GET',
    url: '/install/agent.sha256',
    config,
    schema: {
      tags,
      operationId: 'getAgentChecksum',
      summary: 'The checksum of the self-contained agent, as sha256sum writes it',
      querystring,
      response: { 200: text('text/plain') },
    },
    handler: async ({ query: { platform } }, reply) => {
      const { sha256 } = await findBundle(folders, platform);
      return plain(reply, 'text/plain', `${sha256}  drover-agent-${platform}\n`);
    },
  });

  app.route({
    method: 'GET',
    url: '/install/version',
    config,
    schema: {
      tags,
      operationId: 'getAgentVersion',
      summary: 'Which self-contained agent this server has',
      querystring,
      response: { 200: one(versionView) },
    },
    handler: async ({ query: { platform } }) => {
      const { version, sha256, bytes: size } = await findBundle(folders, platform);
      return found({ version, platform, sha256, bytes: size });
    },
  });

  app.route({
    method: 'GET',
    url: '/install/join.sh',
    config: { access: 'open', failures: ['INVALID_ARGUMENT'] },
    schema: {
      tags,
      operationId: 'getJoinScript',
      summary: 'A script for sh that gets the agent and joins with DROVER_JOIN_TOKEN',
      response: { 200: text('text/x-shellscript') },
    },
    handler: async (request, reply) =>
      plain(reply, 'text/x-shellscript', joinScript(options.publicUrl, request.raw)),
  });
}

function downloadRoutes(app: App, options: InstallOptions): void {
  const downloads = new Downloads(options.limits.installDownloads);
  for (const [url, operationId, summary] of [
    ['/install/agent', 'getAgent', 'The agent as one executable, or a Range of it'],
    ['/install/agent.gz', 'getCompressedAgent', 'The same, compressed by gzip'],
  ] as const) {
    app.route({
      method: 'GET',
      url,
      config: {
        ...config,
        pace: 'stream',
        failures: ['NOT_FOUND', 'RANGE_NOT_SATISFIABLE', 'TOO_MANY'],
      },
      schema: {
        tags,
        operationId,
        summary,
        querystring,
        headers,
        response: {
          200: bytes('All of it'),
          206: bytes('The bytes that Range asked for'),
          304: z.null().describe('It is the one that If-None-Match names'),
        },
      },
      handler: async (request, reply) => {
        const { platform } = request.query;
        return send(request, reply, { platform, isCompressed: url.endsWith('.gz') });
      },
    });
  }

  async function send(
    request: FastifyRequest,
    reply: FastifyReply,
    { platform, isCompressed }: { platform: (typeof PLATFORMS)[number]; isCompressed: boolean },
  ): Promise<FastifyReply> {
    const bundle = await findBundle(options.folders, platform);
    const etag = `"${bundle.sha256}${isCompressed ? '.gz' : ''}"`;
    reply.header('etag', etag).header('cache-control', 'no-cache');
    if (request.headers['if-none-match'] === etag) return reply.code(304).send();
    const { file, size } = await openBundle(bundle, isCompressed);
    try {
      const range = rangeOf(request.headers, etag, size);
      if (range === 'outside') {
        reply.header('content-range', `bytes */${size}`);
        throw new DroverError('RANGE_NOT_SATISFIABLE', `The agent has ${size} bytes`);
      }
      const isHead = request.method === 'HEAD';
      if (!isHead) downloads.enter(reply);
      if (range) {
        reply.code(206).header('content-range', `bytes ${range.start}-${range.end}/${size}`);
      }
      reply
        .header('content-type', 'application/octet-stream')
        .header('accept-ranges', 'bytes')
        .header('content-length', range ? range.end - range.start + 1 : size);
      if (isHead) {
        await file.close();
        return reply.send(Readable.from([]));
      }
      // A reader that has stopped reading must not hold the file for ever.
      reply.raw.setTimeout(options.limits.transferSilenceMs, () => reply.raw.destroy());
      return reply.send(file.createReadStream(range ?? {}));
    } catch (error) {
      await file.close();
      throw error;
    }
  }
}

/** Each holds a file and a socket, and nobody had to show a token. */
class Downloads {
  readonly #most: number;
  #count = 0;

  constructor(most: number) {
    this.#most = most;
  }

  enter(reply: FastifyReply): void {
    if (this.#count >= this.#most) {
      throw new DroverError('TOO_MANY', `The agent goes out ${this.#most} times at once already`, {
        hint: 'Wait a few seconds, and try again; join.sh does so.',
      });
    }
    this.#count++;
    reply.raw.once('close', () => this.#count--);
  }
}

function plain(reply: FastifyReply, type: string, content: string): FastifyReply {
  return reply
    .header('content-type', `${type}; charset=utf-8`)
    .header('cache-control', 'no-cache')
    .serializer((payload: unknown) => payload as string)
    .send(content);
}
