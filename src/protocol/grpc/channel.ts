/**
 * One HTTP/2 connection that is held open: pinged also when idle, and made anew when it was lost,
 * with growing pauses. A call never waits for the pause: it connects by itself.
 */
import {
  connect,
  constants,
  type ClientHttp2Session,
  type ClientHttp2Stream,
  type OutgoingHttpHeaders,
  type SecureClientSessionOptions,
} from 'node:http2';
import { DroverError } from '../../lib/errors.ts';
import type { Pems } from '../../lib/tls/pems.ts';
import { sessionOptions, type GrpcLimits } from './limits.ts';

/** A connection that does not answer a ping in time is given up; so dead machines are noticed. */
const PING_INTERVAL_MS = 10_000;
const PING_TIMEOUT_MS = 5_000;
/** Between two tries to reach a coordinator that is away; doubled each time, with some chance. */
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5_000;
/** HTTP/2 numbers its streams up to 2^31 and by twos; a connection is replaced well before. */
const CALLS_PER_SESSION = 500_000_000;

export interface ChannelOptions {
  /** http://host:port, or https://host:port with TLS. */
  origin: string;
  /** Read for each connection, so that a new one is made with what is there by then. */
  tls: Pems;
  limits: GrpcLimits;
  /** Made anew when it is lost, also without a call. */
  held: boolean;
}

export class Channel {
  readonly #options: ChannelOptions;
  #session: ClientHttp2Session | undefined;
  #streams = 0;
  /** Since the connection was made. */
  #calls = 0;
  #isClosed = false;
  #pauseMs = FIRST_PAUSE_MS;
  #retry: NodeJS.Timeout | undefined;

  constructor(options: ChannelOptions) {
    this.#options = options;
  }

  /** Calls under way. */
  get streams(): number {
    return this.#streams;
  }

  /** How many more calls the other side takes at once. */
  get room(): number {
    const most = this.#session?.remoteSettings?.maxConcurrentStreams;
    return (most ?? Number.POSITIVE_INFINITY) - this.#streams;
  }

  /** Throws once it is closed; everything else that goes wrong is the stream's to say. */
  request(headers: OutgoingHttpHeaders): ClientHttp2Stream {
    const stream = this.#open().request(headers);
    this.#streams++;
    stream.once('close', () => this.#streams--);
    return stream;
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#retry);
    this.#session?.destroy();
  }

  #open(): ClientHttp2Session {
    if (this.#isClosed) {
      throw new DroverError('UNAVAILABLE', 'the connection to the coordinator was closed');
    }
    const current = this.#session;
    if (this.#calls++ > CALLS_PER_SESSION) current?.close();
    if (current && !current.closed && !current.destroyed) return current;
    this.#calls = 0;
    clearTimeout(this.#retry);
    const { origin, tls, limits } = this.#options;
    const session = connect(origin, { ...sessionOptions(limits), ...known(tls) });
    this.#session = session;
    session.once('connect', () => {
      this.#pauseMs = FIRST_PAUSE_MS;
      session.setLocalWindowSize(limits.connectionWindowBytes);
    });
    // Told to each stream on it; 'close' follows.
    session.on('error', () => {});
    const pinging = setInterval(() => ping(session), PING_INTERVAL_MS).unref();
    session.once('close', () => {
      clearInterval(pinging);
      if (this.#session === session) this.#lost();
    });
    return session;
  }

  #lost(): void {
    this.#session = undefined;
    if (this.#isClosed || !this.#options.held) return;
    const pauseMs = this.#pauseMs * (0.5 + Math.random());
    this.#pauseMs = Math.min(LONGEST_PAUSE_MS, this.#pauseMs * 2);
    this.#retry = setTimeout(() => this.#open(), pauseMs).unref();
  }
}

function known({ ca, cert, key }: Pems): SecureClientSessionOptions {
  return { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) };
}

function ping(session: ClientHttp2Session): void {
  if (session.connecting || session.closed || session.destroyed) return;
  const late = setTimeout(() => {
    session.destroy(new Error(`no answer to a ping within ${PING_TIMEOUT_MS} ms`));
  }, PING_TIMEOUT_MS);
  // It fails where the connection ends meanwhile, which is the end of the wait as well.
  session.ping(() => clearTimeout(late));
}

/** Streams that last share connections of their own, so that no call waits behind them. */
export class StreamChannels {
  readonly #options: ChannelOptions;
  readonly #perChannel: number;
  #channels: Channel[] = [];

  constructor(options: ChannelOptions, perChannel: number) {
    this.#options = options;
    this.#perChannel = perChannel;
  }

  request(headers: OutgoingHttpHeaders): ClientHttp2Stream {
    const channel = this.#withRoom();
    const stream = channel.request(headers);
    stream.once('close', () => this.#drop(channel));
    return stream;
  }

  close(): void {
    for (const channel of this.#channels) channel.close();
  }

  #withRoom(): Channel {
    const found = this.#channels.find(
      (channel) => channel.streams < this.#perChannel && channel.room > 0,
    );
    if (found) return found;
    const channel = new Channel(this.#options);
    this.#channels.push(channel);
    return channel;
  }

  #drop(channel: Channel): void {
    if (channel.streams > 0 || this.#channels.length === 1) return;
    channel.close();
    this.#channels = this.#channels.filter((other) => other !== channel);
  }
}

export const { NGHTTP2_CANCEL, NGHTTP2_REFUSED_STREAM } = constants;
