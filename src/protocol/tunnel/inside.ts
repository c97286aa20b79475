/**
 * What a client may ask of a running task besides exec. A client's WebSocket is a tunnel of its
 * own: it opens streams as a gateway does towards an agent, and the gateway joins each with a
 * stream to the task's machine. The OPEN header says which of these it is:
 *
 *   tcp      bytes to and from a TCP port on the loopback of the task's machine
 *   unix     the same with a Unix socket, relative to the task's directory
 *   ssh      first a line of JSON (`sshGreeting`), then the SSH protocol
 *   ps       one JSON document, `processList`
 *   profile  one JSON document, `profileResult`
 */
import { z } from 'zod';
import type { Clock } from '../../lib/clock.ts';
import { DroverError } from '../../lib/errors.ts';
import type { OpenHeader } from './frames.ts';
import { TUNNEL_LIMITS } from './limits.ts';
import { webSocketMessages } from './messageSocket.ts';
import type { TunnelStream } from './stream.ts';
import { Tunnel } from './tunnel.ts';
import { connectWebSocket } from './webSocket.ts';

/** The WebSocket subprotocol of clients. */
export const INSIDE_PROTOCOL = 'drover.inside.v1';
export const INSIDE_PATH = /^\/v1\/tasks\/([^/]+)\/tunnel$/;
/** A client does not know the attempt: the one that runs now is meant. */
const CURRENT_ATTEMPT = 'current';
/** Longer would tie up the machine that is looked at. */
export const MAX_PROFILE_SECONDS = 600;
export const PROFILE_TOOLS = ['py-spy', 'node', 'perf'] as const;
export type ProfileTool = (typeof PROFILE_TOOLS)[number];
/** What a document may have at most: a deep profile has a few megabytes. */
const DOCUMENT_BYTES = 64 * 1024 * 1024;

const pid = z.int().min(1).max(4_194_304);

const insideRequest = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('tcp'), port: z.int().min(1).max(65_535) }),
  z.object({ kind: z.literal('unix'), socket: z.string().min(1).max(1024) }),
  z.object({
    kind: z.literal('ssh'),
    /** The only key that this stream lets in. */
    publicKey: z.string().regex(/^ssh-ed25519 [A-Za-z0-9+/]{1,200}={0,2}$/),
  }),
  z.object({ kind: z.literal('ps') }),
  z.object({
    kind: z.literal('profile'),
    seconds: z.int().min(1).max(MAX_PROFILE_SECONDS),
    pid: pid.optional(),
    tool: z.enum(PROFILE_TOOLS).optional(),
  }),
]);
export type InsideRequest = z.infer<typeof insideRequest>;

export const sshGreeting = z.object({ hostKey: z.string() });

export const processList = z.object({
  processes: z.array(
    z.object({
      pid: z.int(),
      parent: z.int(),
      state: z.string(),
      /** Of one core, over the last moment: 200 is two cores. */
      cpuPercent: z.number(),
      rssBytes: z.number(),
      threads: z.int(),
      cpuMs: z.number(),
      elapsedMs: z.number(),
      command: z.string(),
    }),
  ),
});
export type ProcessList = z.infer<typeof processList>;

export const profileResult = z.object({
  pid: z.int(),
  command: z.string(),
  tool: z.enum(PROFILE_TOOLS),
  /** `outermost;…;innermost COUNT` a line, as flame graphs are made from. */
  folded: z.string(),
});
export type ProfileResult = z.infer<typeof profileResult>;

/** Throws INVALID_ARGUMENT that names the field. */
export function parseInside(header: OpenHeader): InsideRequest {
  const parsed = insideRequest.safeParse(header);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const where = issue?.path.join('.') ?? '';
  throw new DroverError('INVALID_ARGUMENT', `${where} ${issue?.message ?? ''}`.trim());
}

export interface ConnectInsideOptions {
  server: string;
  token: string;
  task: string;
  clock: Clock;
}

/** To a gateway; open streams on it with `openInside`. */
export function connectInside(options: ConnectInsideOptions): Promise<Tunnel> {
  const base = options.server.endsWith('/') ? options.server : `${options.server}/`;
  const connection = {
    url: new URL(`v1/tasks/${encodeURIComponent(options.task)}/tunnel`, base).href,
    protocol: INSIDE_PROTOCOL,
    headers: { authorization: `Bearer ${options.token}` },
    maxMessageBytes: TUNNEL_LIMITS.frameBytes,
  };
  return connectWebSocket(
    connection,
    (socket) =>
      new Tunnel({
        socket: webSocketMessages(socket),
        side: 'gateway',
        clock: options.clock,
        onStream: (stream) => stream.reset('INVALID_ARGUMENT', 'gateways open no streams here'),
      }),
  );
}

export function openInside(tunnel: Tunnel, request: InsideRequest): TunnelStream {
  return tunnel.open({ ...request, attemptUid: CURRENT_ATTEMPT });
}

/** The one document of a `ps` or `profile`. */
export async function readDocument<Shape>(
  stream: TunnelStream,
  schema: z.ZodType<Shape>,
): Promise<Shape> {
  stream.end();
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of stream) {
    bytes += piece.length;
    if (bytes > DOCUMENT_BYTES) throw new DroverError('BODY_TOO_LARGE', 'the answer is too large');
    pieces.push(piece);
  }
  return schema.parse(JSON.parse(Buffer.concat(pieces).toString('utf8')));
}
