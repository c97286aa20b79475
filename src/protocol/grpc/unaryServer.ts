/**
 * Calls that are answered once, served by hand: Connect's way costs some three times as much, and
 * every request of every gateway comes through here. Streams stay with Connect. Both pass the same
 * gate and the same guard.
 */
import { constants, type Http2ServerResponse, type ServerHttp2Stream } from 'node:http2';
import {
  create,
  fromBinary,
  toBinary,
  type DescMessage,
  type DescMethod,
  type DescService,
  type MessageInitShape,
  type MessageShape,
} from '@bufbuild/protobuf';
import {
  Code,
  ConnectError,
  createContextValues,
  type HandlerContext,
  type ServiceImpl,
} from '@connectrpc/connect';
import { parseTimeout, setTrailerStatus } from '@connectrpc/connect/protocol-grpc';
import type { Log } from '../../lib/log.ts';
import { METADATA } from './caller.ts';
import { toConnectError } from './errors.ts';
import { frame, Unframer } from './frames.ts';
import { limitOf } from './guard.ts';
import { bounded, type GrpcLimits } from './limits.ts';

export interface UnaryServerOptions {
  gate: (context: HandlerContext) => Promise<void>;
  limits: GrpcLimits;
  closing: AbortSignal;
  log: Log;
}

type Implementation = (
  message: MessageShape<DescMessage>,
  context: HandlerContext,
) => Promise<MessageInitShape<DescMessage>>;

type Serve = (response: Http2ServerResponse, headers: Headers) => Promise<void>;

/** By path. */
export function unaryHandlers<Service extends DescService>(
  service: Service,
  implementation: ServiceImpl<Service>,
  options: UnaryServerOptions,
): [string, Serve][] {
  const calls = implementation as Record<string, Implementation>;
  return service.methods.flatMap((method) => {
    const call = calls[method.localName];
    if (method.methodKind !== 'unary' || !call) return [];
    const serve: Serve = (response, headers) =>
      serveCall({ ...options, method, call, response, headers });
    return [[`/${service.typeName}/${method.name}`, serve]];
  });
}

interface Call extends UnaryServerOptions {
  method: DescMethod;
  call: Implementation;
  response: Http2ServerResponse;
  headers: Headers;
}

async function serveCall(options: Call): Promise<void> {
  const { response, headers, log, limits } = options;
  const { stream } = response;
  if (!isGrpc(headers)) return respond(stream, { ':status': 415 });
  const left = new AbortController();
  const context = contextOf(options, left.signal);
  let isAnswered = false;
  stream.once('close', () => {
    if (!isAnswered) left.abort(LEFT);
  });
  // A client that leaves breaks its stream, which is no matter of ours.
  stream.on('error', () => {});
  try {
    const answer = frame(await answerOf(options, context), limits.responseBytes);
    if (stream.destroyed) return;
    const requestId = context.responseHeader.get(METADATA.requestId) ?? '';
    response.writeHead(200, { 'content-type': GRPC, [METADATA.requestId]: requestId });
    response.addTrailers({ 'grpc-status': '0' });
    response.end(answer);
    isAnswered = true;
  } catch (error) {
    const requestId = context.requestHeader.get(METADATA.requestId) ?? '';
    const status = setTrailerStatus(new Headers(), toConnectError(error, requestId, log));
    const head = { ':status': 200, 'content-type': GRPC, [METADATA.requestId]: requestId };
    respond(stream, { ...head, ...Object.fromEntries(status) });
  }
}

/** One for all: it is made at the end of every call, and nobody is there to read it. */
const LEFT = new ConnectError('the client left', Code.Canceled);
const GRPC = 'application/grpc+proto';

function isGrpc(headers: Headers): boolean {
  return /^application\/grpc(\+proto)?(;|$)/.test(headers.get('content-type') ?? '');
}

function respond(stream: ServerHttp2Stream, headers: Record<string, string | number>): void {
  if (stream.destroyed || stream.headersSent) return;
  stream.respond(headers, { endStream: true });
  // Of a body that nobody wants, no more need be sent.
  if (!stream.readableEnded) stream.close(constants.NGHTTP2_NO_ERROR);
}

/** Who calls is asked before the body is read. */
async function answerOf(options: Call, context: HandlerContext): Promise<Uint8Array> {
  const { method, call, limits, closing, response } = options;
  const { timeoutMs, error } = parseTimeout(
    context.requestHeader.get('grpc-timeout'),
    limits.streamMs,
  );
  if (error) throw error;
  await options.gate(context);
  const message = decode(method.input, await bodyOf(response.stream, limits.requestBytes));
  const { limitMs, isHeld } = limitOf(method, limits);
  const signals = isHeld ? [context.signal, closing] : [context.signal];
  const mostMs = Math.min(limitMs, timeoutMs ?? limitMs);
  const answer = await bounded(call(message, context), mostMs, signals);
  return toBinary(method.output, create(method.output, answer));
}

function decode(input: DescMessage, bytes: Uint8Array): MessageShape<DescMessage> {
  try {
    return fromBinary(input, bytes);
  } catch (cause) {
    const text = `the message is no ${input.typeName}`;
    throw new ConnectError(text, Code.InvalidArgument, undefined, undefined, cause);
  }
}

function bodyOf(stream: ServerHttp2Stream, mostBytes: number): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const unframer = new Unframer(mostBytes);
    const messages: Uint8Array[] = [];
    stream.on('data', (chunk: Buffer) => {
      try {
        messages.push(...unframer.push(chunk));
      } catch (error) {
        stream.removeAllListeners('data').resume();
        reject(error);
      }
    });
    stream.once('close', () => reject(LEFT));
    stream.once('end', () => {
      const [message] = messages;
      if (message && messages.length === 1) resolve(message);
      else reject(new ConnectError('one message is wanted', Code.Unimplemented));
    });
  });
}

function contextOf({ method, headers }: Call, signal: AbortSignal): HandlerContext {
  return {
    method,
    service: method.parent,
    signal,
    timeoutMs: () => undefined,
    requestMethod: 'POST',
    requestHeader: headers,
    responseHeader: new Headers(),
    responseTrailer: new Headers(),
    protocolName: 'grpc',
    values: createContextValues(),
    url: '',
  };
}
