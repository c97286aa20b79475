/**
 * gRPC on our own channels, as the transport that the generated clients speak through. Connect's
 * own costs some four times as much per call, which a gateway pays on every request.
 */
import type { ClientHttp2Stream, IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http2';
import {
  create,
  fromBinary,
  toBinary,
  type DescMessage,
  type DescMethod,
  type MessageInitShape,
  type MessageShape,
} from '@bufbuild/protobuf';
import { Code, ConnectError, type Transport } from '@connectrpc/connect';
import { codeFromHttpStatus, findTrailerError } from '@connectrpc/connect/protocol-grpc';
import {
  NGHTTP2_CANCEL,
  NGHTTP2_REFUSED_STREAM,
  type Channel,
  type StreamChannels,
} from './channel.ts';
import { Unframer, frame } from './frames.ts';
import type { GrpcLimits } from './limits.ts';

export interface TransportOptions {
  /** For calls that are answered once. */
  calls: Channel;
  /** For those answered page after page. */
  streams: StreamChannels;
  limits: GrpcLimits;
}

/** Nobody here reads the headers of an answer that is not an error. */
const UNREAD = new Headers();
const NOTHING = { header: UNREAD, trailer: UNREAD };

export function createTransport({ calls, streams, limits }: TransportOptions): Transport {
  return {
    async unary(method, signal, timeoutMs, header, input) {
      const body = encode(method.input, input, limits);
      const headers = headersOf(method, header, timeoutMs);
      const call = (): Promise<Uint8Array> =>
        answerOf(calls.request(headers), { body, timeoutMs, signal, limits });
      const bytes = await call().catch((error: unknown) => {
        // The other side says that it did not look at it: it was about to close the connection.
        if (isRefused(error)) return call();
        throw error;
      });
      const message = decode(method.output, bytes);
      return { stream: false, service: method.parent, method, message, ...NOTHING };
    },
    async stream(method, signal, timeoutMs, header, input) {
      const stream = streams.request(headersOf(method, header, timeoutMs));
      // Only the server streams in what is spoken here: there is one message to send.
      for await (const one of input) stream.write(encode(method.input, one, limits));
      stream.end();
      const messages = eachMessage(stream, method.output, { timeoutMs, signal, limits });
      const { parent: service } = method;
      return { stream: true, service, method, message: messages, ...NOTHING };
    },
  };
}

interface CallOptions {
  timeoutMs: number | undefined;
  signal: AbortSignal | undefined;
  limits: GrpcLimits;
}

/** What a stream was answered so far, and why it was given up here. */
interface Seen {
  header?: IncomingHttpHeaders;
  trailer?: IncomingHttpHeaders;
  error?: Error;
}

function answerOf(
  stream: ClientHttp2Stream,
  options: CallOptions & { body: Uint8Array },
): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const messages: Uint8Array[] = [];
    const unframer = new Unframer(options.limits.responseBytes);
    const { seen, giveUp, settle } = watch(stream, options);
    stream.on('data', (chunk: Buffer) => {
      try {
        messages.push(...unframer.push(chunk));
      } catch (error) {
        giveUp(error as Error);
      }
    });
    stream.once('close', () => {
      settle();
      const failed = failureOf(seen, stream);
      const [message] = messages;
      if (failed) reject(failed);
      else if (message === undefined) reject(new ConnectError('no answer came', Code.Unknown));
      else resolve(message);
    });
    stream.end(options.body);
  });
}

async function* eachMessage<Output extends DescMessage>(
  stream: ClientHttp2Stream,
  output: Output,
  options: CallOptions,
): AsyncGenerator<MessageShape<Output>> {
  const unframer = new Unframer(options.limits.responseBytes);
  const { seen, giveUp, settle } = watch(stream, options);
  const closed = new Promise((resolve) => stream.once('close', resolve));
  let ended = false;
  try {
    // What is not asked for is not read, and what is not read is not sent: HTTP/2's flow control.
    for await (const chunk of stream.iterator({ destroyOnReturn: false })) {
      for (const bytes of unframer.push(chunk as Buffer)) yield decode(output, bytes);
    }
    ended = true;
  } catch (error) {
    seen.error ??= error as Error;
  } finally {
    settle();
    if (!ended) giveUp();
  }
  // The status comes behind the last message.
  await closed;
  const failed = failureOf(seen, stream);
  if (failed) throw failed;
}

function watch(stream: ClientHttp2Stream, { timeoutMs, signal }: CallOptions) {
  const seen: Seen = {};
  const giveUp = (error?: Error): void => {
    if (error) seen.error ??= error;
    if (!stream.closed) stream.close(NGHTTP2_CANCEL);
  };
  const late = (): void =>
    giveUp(new ConnectError(`no answer within ${timeoutMs} ms`, Code.DeadlineExceeded));
  const timer = timeoutMs === undefined ? undefined : setTimeout(late, timeoutMs);
  const onAbort = (): void => giveUp(signal?.reason as Error);
  stream.on('response', (header) => (seen.header = header));
  stream.on('trailers', (trailer) => (seen.trailer = trailer));
  stream.on('error', (error: Error) => (seen.error ??= error));
  signal?.addEventListener('abort', onAbort, { once: true });
  if (signal?.aborted) onAbort();
  const settle = (): void => {
    clearTimeout(timer);
    signal?.removeEventListener('abort', onAbort);
  };
  return { seen, giveUp, settle };
}

/** Why there is no answer, or none that counts; undefined where all is well. */
function failureOf({ header, trailer, error }: Seen, stream: ClientHttp2Stream): Error | undefined {
  // A status that came counts more than how the connection ended after it.
  const said = trailer ?? header;
  if (said?.['grpc-status'] !== undefined) return statusOf(said);
  if (error instanceof ConnectError) return error;
  const status = Number(header?.[':status'] ?? 200);
  if (status !== 200) return new ConnectError(`HTTP status ${status}`, codeFromHttpStatus(status));
  if (stream.rstCode === NGHTTP2_REFUSED_STREAM) return new Refused(error);
  const why = error?.message ?? `reset with code ${stream.rstCode}`;
  const text = `the connection was lost: ${why}`;
  return new ConnectError(text, Code.Unavailable, undefined, undefined, error);
}

class Refused extends ConnectError {
  constructor(cause: unknown) {
    super('the call was refused', Code.Unavailable, undefined, undefined, cause);
  }
}

const isRefused = (error: unknown): boolean => error instanceof Refused;

function statusOf(headers: IncomingHttpHeaders): ConnectError | undefined {
  if (headers['grpc-status'] === '0') return undefined;
  const said = new Headers();
  for (const name of ['grpc-status', 'grpc-message', 'grpc-status-details-bin']) {
    const value = headers[name];
    if (typeof value === 'string') said.set(name, value);
  }
  try {
    return findTrailerError(said);
  } catch (cause) {
    const code = Number(headers['grpc-status']);
    const text = `a status that cannot be read: ${said.get('grpc-message') ?? ''}`;
    const known = code in Code ? (code as Code) : Code.Unknown;
    return new ConnectError(text, known, undefined, undefined, cause);
  }
}

function headersOf(
  method: DescMethod,
  header: Parameters<Transport['unary']>[3],
  timeoutMs: number | undefined,
): OutgoingHttpHeaders {
  return {
    ':method': 'POST',
    ':path': `/${method.parent.typeName}/${method.name}`,
    'content-type': 'application/grpc+proto',
    te: 'trailers',
    ...(timeoutMs !== undefined && { 'grpc-timeout': `${Math.ceil(timeoutMs)}m` }),
    // The connection gives them as plain fields.
    ...(header as Record<string, string> | undefined),
  };
}

function encode<Input extends DescMessage>(
  input: Input,
  message: MessageInitShape<Input>,
  limits: GrpcLimits,
): Buffer {
  return frame(toBinary(input, create(input, message)), limits.requestBytes);
}

function decode<Output extends DescMessage>(
  output: Output,
  bytes: Uint8Array,
): MessageShape<Output> {
  try {
    return fromBinary(output, bytes);
  } catch (cause) {
    const text = `the answer is no ${output.typeName}`;
    throw new ConnectError(text, Code.Internal, undefined, undefined, cause);
  }
}
