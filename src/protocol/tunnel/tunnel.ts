/**
 * A tunnel: many streams over one message socket, the same code at both ends. Streams take turns
 * frame by frame, each within its credit; what the peer can make us hold is bounded by the limits.
 * Any frame that breaks the rules ends the tunnel, and with it every stream, with a message that
 * says which rule.
 */
import type { Clock, Timer } from '../../lib/clock.ts';
import { DroverError } from '../../lib/errors.ts';
import { decodeFrame, encodeFrame, type Frame, type OpenHeader } from './frames.ts';
import { keepAlive, type KeepAlive } from './keepAlive.ts';
import { TUNNEL_LIMITS, type TunnelLimits } from './limits.ts';
import { CLOSE_NORMAL, CLOSE_PROTOCOL_ERROR, type MessageSocket } from './messageSocket.ts';
import { TunnelStream, type StreamPort } from './stream.ts';

export interface TunnelOptions {
  socket: MessageSocket;
  /**
   * Stream ids of gateways are odd and those of agents even, so that both may open without asking.
   */
  side: 'gateway' | 'agent';
  clock: Clock;
  /** The peer opened a stream. Reset it to refuse. */
  onStream(stream: TunnelStream): void;
  limits?: TunnelLimits;
}

export class Tunnel {
  /** Resolves with the reason once the tunnel is over. */
  readonly closed: Promise<string>;
  readonly #socket: MessageSocket;
  readonly #limits: TunnelLimits;
  readonly #clock: Clock;
  readonly #onStream: (stream: TunnelStream) => void;
  readonly #streams = new Map<number, TunnelStream>();
  /** In order of whose turn it is. */
  readonly #ready = new Set<TunnelStream>();
  readonly #port: StreamPort;
  readonly #keepAlive: KeepAlive;
  readonly #idleMs: number;
  #resolveClosed: (reason: string) => void;
  #closeReason: string | undefined;
  #idleTimer: Timer | undefined;
  #nextId: number;
  #lastPeerId: number;
  #socketBytes = 0;

  constructor(options: TunnelOptions) {
    this.#socket = options.socket;
    this.#limits = options.limits ?? TUNNEL_LIMITS;
    this.#clock = options.clock;
    this.#onStream = (stream) => options.onStream(stream);
    this.#nextId = options.side === 'gateway' ? 1 : 2;
    this.#lastPeerId = options.side === 'gateway' ? 0 : -1;
    // The gateway, which opens streams, calls it idle first: so no OPEN crosses a close.
    this.#idleMs = this.#limits.idleMs * (options.side === 'gateway' ? 1 : 2);
    const { promise, resolve } = Promise.withResolvers<string>();
    this.closed = promise;
    this.#resolveClosed = resolve;
    this.#port = {
      limits: this.#limits,
      ready: (stream) => {
        this.#ready.add(stream);
        this.#pump();
      },
      sendNow: (frame) => this.#send(frame),
      finished: (stream) => this.#forget(stream),
    };
    this.#keepAlive = keepAlive({
      clock: options.clock,
      intervalMs: this.#limits.pingIntervalMs,
      silentPings: this.#limits.silentPings,
      ping: () => this.#socket.ping(),
      dead: () => {
        this.#finish('the other end of the tunnel does not answer');
        this.#socket.terminate();
      },
    });
    this.#listen();
    this.#watchIdle();
  }

  get isOpen(): boolean {
    return this.#closeReason === undefined;
  }

  get streamCount(): number {
    return this.#streams.size;
  }

  open(header: OpenHeader): TunnelStream {
    if (this.#closeReason !== undefined) throw tunnelEnded(this.#closeReason);
    if (this.#countOf(this.#nextId) >= this.#limits.streams) {
      throw new DroverError(
        'TOO_MANY',
        `the tunnel carries ${this.#limits.streams} streams already`,
        {
          hint: 'end one of the sessions on that machine',
        },
      );
    }
    const stream = new TunnelStream(this.#nextId, header, this.#port);
    this.#send({ type: 'OPEN', stream: stream.id, header });
    this.#nextId += 2;
    this.#add(stream);
    return stream;
  }

  close(reason: string, code = CLOSE_NORMAL): void {
    if (this.#closeReason !== undefined) return;
    this.#finish(reason);
    this.#socket.close(code, reason);
  }

  #listen(): void {
    this.#socket.listen({
      message: (bytes) => {
        this.#keepAlive.heard();
        this.#receive(bytes);
      },
      pong: () => this.#keepAlive.heard(),
      foreign: (what) => this.close(`${what} is no tunnel frame`, CLOSE_PROTOCOL_ERROR),
      close: (reason) => this.#finish(reason),
    });
  }

  #receive(bytes: Uint8Array): void {
    if (this.#closeReason !== undefined) return;
    try {
      this.#dispatch(decodeFrame(bytes, this.#limits));
    } catch (error) {
      if (!(error instanceof DroverError)) throw error;
      this.close(error.message, CLOSE_PROTOCOL_ERROR);
    }
  }

  #dispatch(frame: Frame): void {
    const known = this.#streams.get(frame.stream);
    if (known !== undefined) {
      known.receive(frame);
    } else if (frame.type === 'OPEN') {
      this.#accept(frame.stream, frame.header);
    } else if (!this.#wasOpened(frame.stream)) {
      throw new DroverError(
        'MALFORMED_BODY',
        `${frame.type} on stream ${frame.stream}, never opened`,
      );
    }
    // Otherwise it crossed our reset or end of that stream, and nobody waits for it.
  }

  #accept(id: number, header: OpenHeader): void {
    if (id % 2 === this.#nextId % 2 || id <= this.#lastPeerId) {
      throw new DroverError('MALFORMED_BODY', `stream ${id} is not for the peer to open`);
    }
    // The peer counts the same streams in the same order, so one too many is its fault.
    if (this.#countOf(id) >= this.#limits.streams) {
      throw new DroverError('TOO_MANY', `more than ${this.#limits.streams} streams in one tunnel`);
    }
    this.#lastPeerId = id;
    const stream = new TunnelStream(id, header, this.#port);
    this.#add(stream);
    this.#onStream(stream);
  }

  #wasOpened(id: number): boolean {
    return id % 2 === this.#nextId % 2 ? id < this.#nextId : id <= this.#lastPeerId;
  }

  /** Open streams of whoever owns ids like this one. */
  #countOf(id: number): number {
    let count = 0;
    for (const open of this.#streams.keys()) if (open % 2 === id % 2) count++;
    return count;
  }

  #add(stream: TunnelStream): void {
    this.#streams.set(stream.id, stream);
    this.#idleTimer?.cancel();
    this.#idleTimer = undefined;
  }

  #forget(stream: TunnelStream): void {
    this.#streams.delete(stream.id);
    this.#ready.delete(stream);
    this.#watchIdle();
  }

  #watchIdle(): void {
    if (this.#streams.size > 0 || this.#closeReason !== undefined) return;
    this.#idleTimer?.cancel();
    this.#idleTimer = this.#clock.setTimer(this.#idleMs, () => this.close('the tunnel was idle'));
  }

  /** One frame for each stream in turn, as long as the socket takes them. */
  #pump(): void {
    while (this.#socketBytes < this.#limits.socketBytes && this.#closeReason === undefined) {
      const [stream] = this.#ready;
      if (stream === undefined) return;
      this.#ready.delete(stream);
      const frame = stream.nextFrame();
      if (frame === undefined) continue;
      if (frame.type === 'DATA') this.#ready.add(stream);
      this.#send(frame);
    }
  }

  #send(frame: Frame): void {
    if (this.#closeReason !== undefined) return;
    const bytes = encodeFrame(frame, this.#limits);
    this.#socketBytes += bytes.length;
    if (this.#socketBytes > this.#limits.socketBytes + this.#limits.controlBytes) {
      this.#finish('the other end of the tunnel does not read');
      this.#socket.terminate();
      return;
    }
    this.#socket.send(bytes, () => {
      this.#socketBytes -= bytes.length;
      this.#pump();
    });
  }

  #finish(reason: string): void {
    if (this.#closeReason !== undefined) return;
    this.#closeReason = reason;
    this.#keepAlive.stop();
    this.#idleTimer?.cancel();
    for (const stream of this.#streams.values()) stream.fail(tunnelEnded(reason));
    this.#resolveClosed(reason);
  }
}

function tunnelEnded(reason: string): DroverError {
  return new DroverError('UNAVAILABLE', `the tunnel to the machine ended: ${reason}`, {
    hint: 'look at the worker with `drover workers`, then try again',
  });
}
