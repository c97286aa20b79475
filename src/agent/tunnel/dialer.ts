/**
 * The agent's end of tunnels: dials a gateway when ordered to, and serves the streams that the
 * gateway opens, by kind. Orders repeat and gateways vanish; a dial that cannot succeed any more is
 * dropped.
 */
import { sleep, type Clock } from '../../lib/clock.ts';
import { DroverError } from '../../lib/errors.ts';
import type { Log } from '../../lib/log.ts';
import type { Random } from '../../lib/random.ts';
import type { TunnelOrder } from '../../protocol/agent.ts';
import {
  AGENT_SESSION_HEADER,
  TUNNEL_LIMITS,
  TUNNEL_PATH,
  TUNNEL_PROTOCOL,
} from '../../protocol/tunnel/limits.ts';
import { webSocketMessages } from '../../protocol/tunnel/messageSocket.ts';
import type { TunnelStream } from '../../protocol/tunnel/stream.ts';
import { hashTicket, TICKET_MS } from '../../protocol/tunnel/tickets.ts';
import { Tunnel } from '../../protocol/tunnel/tunnel.ts';
import { connectWebSocket } from '../../protocol/tunnel/webSocket.ts';

/** Serves one stream until it is over. What it throws resets the stream. */
export type StreamHandler = (stream: TunnelStream) => Promise<void>;

export interface TunnelDialerOptions {
  /** What this agent can do over a tunnel: exec, later port-forward and others. */
  kinds: Record<string, StreamHandler>;
  /** The one way out, dialled whatever gateway an order names; absent: there are more. */
  homeUrl?: string | undefined;
  clock: Clock;
  random: Random;
  log: Log;
}

export interface TunnelDialer {
  /** Returns at once; an order seen before is ignored. */
  dial(order: TunnelOrder): void;
  /** The attempt ended: so do its streams and what runs for them. */
  endAttempt(attemptUid: string): void;
  /** Ends all tunnels; resolves when everything started for them is gone. */
  close(): Promise<void>;
}

/** Dials under way: beyond it the controller is told nothing and the ticket runs out. */
const MAX_DIALS = 32;
/** Open tunnels: two for each gateway, and few gateways. */
const MAX_TUNNELS = 64;
const RETRY_FIRST_MS = 250;
const RETRY_MAX_MS = 4_000;

export function createTunnelDialer(options: TunnelDialerOptions): TunnelDialer {
  return new Dialer(options);
}

class Dialer implements TunnelDialer {
  readonly #options: TunnelDialerOptions;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #session: string;
  readonly #tunnels = new Set<Tunnel>();
  readonly #streams = new Map<TunnelStream, Promise<void>>();
  /** Hashes of tickets, with the time after which they are of no use to anyone. */
  readonly #seen = new Map<string, number>();
  #dials = 0;
  #closing = false;

  constructor(options: TunnelDialerOptions) {
    this.#options = options;
    this.#clock = options.clock;
    this.#log = options.log;
    this.#session = options.random.hex(16);
  }

  dial(order: TunnelOrder): void {
    const now = this.#clock.bootMs();
    for (const [hash, until] of this.#seen) if (until < now) this.#seen.delete(hash);
    const hash = hashTicket(order.ticket);
    if (this.#closing || this.#seen.has(hash)) return;
    if (this.#dials >= MAX_DIALS || this.#tunnels.size >= MAX_TUNNELS) {
      const fields = { dials: this.#dials, tunnels: this.#tunnels.size };
      this.#log.warn(fields, 'too many tunnels: a dial was not made');
      return;
    }
    this.#seen.set(hash, now + 2 * TICKET_MS);
    this.#dials++;
    this.#dialUntil(order, now + TICKET_MS)
      .catch((error: unknown) => reportDial(error, order, this.#log))
      .finally(() => this.#dials--);
  }

  endAttempt(attemptUid: string): void {
    for (const stream of this.#streams.keys()) {
      if (stream.header.attemptUid !== attemptUid) continue;
      stream.reset('NOT_FOUND', `attempt ${attemptUid} ended`);
    }
  }

  async close(): Promise<void> {
    this.#closing = true;
    for (const tunnel of this.#tunnels) tunnel.close('the agent is stopping');
    await Promise.all(this.#streams.values());
  }

  async #dialUntil(order: TunnelOrder, until: number): Promise<void> {
    for (let retryMs = RETRY_FIRST_MS; !this.#closing; retryMs = nextRetryMs(retryMs)) {
      try {
        return await this.#connect(order);
      } catch (error) {
        const isLate = this.#clock.bootMs() + retryMs >= until;
        if (isLate || !isWorthRetrying(error)) throw error;
      }
      await sleep(this.#clock, retryMs);
    }
  }

  #connect(order: TunnelOrder): Promise<void> {
    const { ticket, gatewayUrl } = order;
    const connection = {
      url: tunnelUrl(this.#options.homeUrl ?? gatewayUrl),
      protocol: TUNNEL_PROTOCOL,
      headers: { authorization: `Bearer ${ticket}`, [AGENT_SESSION_HEADER]: this.#session },
      maxMessageBytes: TUNNEL_LIMITS.frameBytes,
    };
    return connectWebSocket(connection, (socket) => {
      const tunnel = new Tunnel({
        socket: webSocketMessages(socket),
        side: 'agent',
        clock: this.#clock,
        onStream: (stream) => this.#accept(stream),
      });
      this.#tunnels.add(tunnel);
      void this.#untilClosed(tunnel, gatewayUrl);
      if (this.#closing) tunnel.close('the agent is stopping');
    });
  }

  async #untilClosed(tunnel: Tunnel, gatewayUrl: string): Promise<void> {
    this.#log.info({ gatewayUrl }, 'tunnel open');
    const reason = await tunnel.closed;
    this.#tunnels.delete(tunnel);
    this.#log.info({ gatewayUrl, reason }, 'tunnel closed');
  }

  #accept(stream: TunnelStream): void {
    const serving = serve(stream, this.#options.kinds, this.#log);
    this.#streams.set(
      stream,
      serving.finally(() => this.#streams.delete(stream)),
    );
  }
}

function nextRetryMs(retryMs: number): number {
  return Math.min(retryMs * 2, RETRY_MAX_MS);
}

function tunnelUrl(gatewayUrl: string): string {
  return gatewayUrl.replace(/\/+$/, '') + TUNNEL_PATH;
}

/**
 * A gateway that could not be reached or is not ready may be soon; one that refused will refuse
 * again.
 */
function isWorthRetrying(error: unknown): boolean {
  return error instanceof DroverError && error.status >= 500;
}

function reportDial(error: unknown, order: TunnelOrder, log: Log): void {
  const fields = { gatewayUrl: order.gatewayUrl, error: String(error) };
  if (error instanceof DroverError && error.code === 'CONFLICT') {
    log.debug(fields, 'the gateway has a tunnel to us already');
  } else {
    log.warn(fields, 'dialling a gateway failed');
  }
}

async function serve(
  stream: TunnelStream,
  kinds: Record<string, StreamHandler>,
  log: Log,
): Promise<void> {
  const { kind, attemptUid } = stream.header;
  const handler = Object.hasOwn(kinds, kind) ? kinds[kind] : undefined;
  try {
    if (handler === undefined) {
      throw new DroverError('INVALID_ARGUMENT', `this agent has no streams of kind "${kind}"`);
    }
    await handler(stream);
    stream.reset('UNAVAILABLE', 'the stream was served');
  } catch (error) {
    if (!(error instanceof DroverError)) {
      log.error({ kind, attemptUid, error: String(error) }, 'a stream failed');
    }
    const code = error instanceof DroverError ? error.code : 'INTERNAL';
    stream.reset(code, error instanceof Error ? error.message : String(error));
  }
}
