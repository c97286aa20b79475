/**
 * The gateway's end of tunnels. A stream to a task asks the controller every time (`openTunnel`),
 * because that is where it is decided whether the caller may and which attempt is meant now; the
 * tunnel to that worker is reused when there is one, and the agent's further dial answered with
 * CONFLICT, which costs one small request. Bulk streams have a tunnel of their own, so that a
 * keystroke never waits behind a file.
 */
import { WebSocketServer } from 'ws';
import { sleep, type Clock, type Timer } from '../../lib/clock.ts';
import { DroverError } from '../../lib/errors.ts';
import type { Log } from '../../lib/log.ts';
import type { Principal } from '../../model/token.ts';
import type { Coordinator, TunnelTicket } from '../../protocol/coordinator.ts';
import {
  AGENT_SESSION_HEADER,
  TUNNEL_LIMITS,
  TUNNEL_PATH,
  TUNNEL_PROTOCOL,
} from '../../protocol/tunnel/limits.ts';
import { webSocketMessages } from '../../protocol/tunnel/messageSocket.ts';
import type { TunnelStream } from '../../protocol/tunnel/stream.ts';
import { Tunnel } from '../../protocol/tunnel/tunnel.ts';
import { Accesses, CONNECTIONS, type Audited } from './accesses.ts';
import { createTicketBook, type TicketBook } from './tickets.ts';
import { bearerToken, requireProtocol, type Upgrade, type UpgradeRoute } from './upgrades.ts';

export interface TunnelHubOptions {
  coordinator: Pick<Coordinator, 'registerGateway' | 'openTunnel'>;
  /** Where agents reach this gateway, without a path of its own or with one that a proxy strips. */
  publicUrl: string;
  clock: Clock;
  log: Log;
  audited: Audited;
  /** Throws where this caller has too many open; returns what gives the place back. */
  holdStream: (who: Principal) => () => void;
}

interface StreamRequest {
  kind: string;
  /** Bulk: throughput matters more than a prompt answer. */
  priority?: 'interactive' | 'bulk';
  /** Further keys of the OPEN header. */
  details?: Record<string, unknown>;
}

export interface TunnelHub {
  /** For `attachUpgrades`. */
  route: UpgradeRoute;
  openStream(who: Principal, task: string, request: StreamRequest): Promise<TunnelStream>;
  close(): void;
}

interface Reached {
  tunnel: Tunnel;
  attemptUid: string;
}

interface Purpose {
  worker: string;
  priority: 'interactive' | 'bulk';
}

/** How long a stream waits for the agent: a sync in flight, a dial, a retry. */
export const DIAL_TIMEOUT_MS = 15_000;
const ASK_AGAIN_MS = DIAL_TIMEOUT_MS / 3;
/** A dial may come before `openTunnel` has told us its ticket; it is held for this long. */
const EARLY_DIAL_MS = 5_000;
/** A browser opens many streams at once: for so long the controller's last answer is taken. */
const REUSE_MS = 5_000;
export const GATEWAY_LEASE_MS = 30_000;
const REGISTER_PERIOD_MS = GATEWAY_LEASE_MS / 3;

export function createTunnelHub(options: TunnelHubOptions): TunnelHub {
  return new Hub(options);
}

class Hub implements TunnelHub {
  readonly route: UpgradeRoute = {
    path: TUNNEL_PATH,
    permission: 'ticket',
    summary: 'An agent that was asked to dial, with the ticket it was given',
    match: (path) => (path === TUNNEL_PATH ? [] : undefined),
    upgrade: (upgrade) => this.#upgrade(upgrade),
  };
  readonly #options: TunnelHubOptions;
  readonly #tickets: TicketBook<Purpose>;
  readonly #asking = new Set<Promise<TunnelTicket>>();
  /** By worker and priority. */
  readonly #tunnels = new Map<string, { tunnel: Tunnel; session: string }>();
  readonly #waiting = new Map<string, Set<(tunnel: Tunnel) => void>>();
  /** By token, task and priority. */
  readonly #reached = new Map<string, Reached & { untilBootMs: number }>();
  readonly #accesses: Accesses;
  readonly #server = new WebSocketServer({
    noServer: true,
    perMessageDeflate: false,
    maxPayload: TUNNEL_LIMITS.frameBytes,
    handleProtocols: () => TUNNEL_PROTOCOL,
  });
  #registerTimer: Timer | undefined;
  #isClosed = false;

  constructor(options: TunnelHubOptions) {
    this.#options = options;
    this.#tickets = createTicketBook(options.clock);
    this.#accesses = new Accesses(options.clock, options.audited);
    void this.#register();
  }

  async openStream(who: Principal, task: string, request: StreamRequest): Promise<TunnelStream> {
    const { kind, priority = 'interactive', details = {} } = request;
    const release = this.#options.holdStream(who);
    try {
      const { tunnel, attemptUid } = CONNECTIONS.has(kind)
        ? await this.#reachAgain(who, task, priority)
        : await this.#reach(who, task, priority);
      await this.#accesses.record({ kind, task, attempt: attemptUid, principal: who, details });
      const stream = tunnel.open({ ...details, kind, attemptUid });
      void stream.closed.then(release);
      return stream;
    } catch (error) {
      release();
      throw error;
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#registerTimer?.cancel();
    for (const { tunnel } of this.#tunnels.values()) tunnel.close('the gateway is stopping');
  }

  async #register(): Promise<void> {
    const { coordinator, publicUrl, log, clock } = this.#options;
    try {
      await coordinator.registerGateway(publicUrl, GATEWAY_LEASE_MS);
    } catch (error) {
      log.warn(
        { publicUrl, error: String(error) },
        'registering this gateway failed, trying again',
      );
    }
    if (this.#isClosed) return;
    this.#registerTimer = clock.setTimer(REGISTER_PERIOD_MS, () => void this.#register());
  }

  async #ask(who: Principal, task: string, priority: Purpose['priority']): Promise<TunnelTicket> {
    const { coordinator, publicUrl } = this.#options;
    const asking = coordinator.openTunnel(who, task, publicUrl);
    this.#asking.add(asking);
    try {
      const ticket = await asking;
      this.#tickets.expect(ticket.ticketHash, { worker: ticket.worker, priority });
      return ticket;
    } finally {
      this.#asking.delete(asking);
    }
  }

  async #reachAgain(who: Principal, task: string, priority: Purpose['priority']): Promise<Reached> {
    const now = this.#options.clock.bootMs();
    for (const [key, { untilBootMs, tunnel }] of this.#reached) {
      if (untilBootMs < now || !tunnel.isOpen) this.#reached.delete(key);
    }
    const key = JSON.stringify([who.token, task, priority]);
    const known = this.#reached.get(key);
    if (known !== undefined) return known;
    const reached = await this.#reach(who, task, priority);
    this.#reached.set(key, { ...reached, untilBootMs: now + REUSE_MS });
    return reached;
  }

  /** Asks again while nobody dials: the reply that carried the order to the agent may be lost. */
  async #reach(who: Principal, task: string, priority: Purpose['priority']): Promise<Reached> {
    let worker = '';
    for (let waitedMs = 0; waitedMs < DIAL_TIMEOUT_MS; waitedMs += ASK_AGAIN_MS) {
      const ticket = await this.#ask(who, task, priority);
      worker = ticket.worker;
      const tunnel = await this.#tunnelTo({ worker, priority });
      if (tunnel !== undefined) return { tunnel, attemptUid: ticket.attempt };
    }
    throw new DroverError(
      'UNAVAILABLE',
      `worker ${worker} did not dial back within ${DIAL_TIMEOUT_MS / 1000} s`,
      {
        hint: `see \`drover workers\`, and whether it can reach ${this.#options.publicUrl}`,
      },
    );
  }

  /** The open tunnel, or the one that is dialled within ASK_AGAIN_MS. */
  #tunnelTo(purpose: Purpose): Promise<Tunnel | undefined> {
    const key = keyOf(purpose);
    const open = this.#tunnels.get(key)?.tunnel;
    if (open?.isOpen) return Promise.resolve(open);
    const waiters = this.#waiting.get(key) ?? new Set();
    this.#waiting.set(key, waiters);
    return new Promise((resolve) => {
      const dialled = (tunnel: Tunnel): void => {
        timer.cancel();
        resolve(tunnel);
      };
      const timer = this.#options.clock.setTimer(ASK_AGAIN_MS, () => {
        waiters.delete(dialled);
        if (waiters.size === 0) this.#waiting.delete(key);
        resolve(undefined);
      });
      waiters.add(dialled);
    });
  }

  async #upgrade({ request, socket, head }: Upgrade): Promise<void> {
    const ticket = bearerToken(request);
    requireProtocol(request, TUNNEL_PROTOCOL);
    const purpose = this.#tickets.spend(ticket) ?? (await this.#spendLate(ticket));
    if (purpose === undefined) {
      throw new DroverError('UNAUTHENTICATED', 'the tunnel ticket is unknown, used or expired');
    }
    if (this.#isClosed) throw new DroverError('UNAVAILABLE', 'the gateway is stopping');
    const session = String(request.headers[AGENT_SESSION_HEADER] ?? '');
    const present = this.#tunnels.get(keyOf(purpose));
    if (present?.tunnel.isOpen && present.session === session) {
      throw new DroverError('CONFLICT', `there is a tunnel to worker ${purpose.worker} already`);
    }
    this.#server.handleUpgrade(request, socket, head, (webSocket) => {
      // The agent was started anew, so its old tunnel leads nowhere even if nobody noticed yet.
      present?.tunnel.close('the agent was started anew');
      const tunnel = new Tunnel({
        socket: webSocketMessages(webSocket),
        side: 'gateway',
        clock: this.#options.clock,
        onStream: (stream) => stream.reset('INVALID_ARGUMENT', 'agents open no streams'),
      });
      this.#adopt(purpose, tunnel, session);
    });
  }

  /** The controller tells the agent and us at the same time, and the agent may be faster. */
  async #spendLate(ticket: string): Promise<Purpose | undefined> {
    if (this.#asking.size === 0) return undefined;
    const told = Promise.allSettled(this.#asking);
    await Promise.race([told, sleep(this.#options.clock, EARLY_DIAL_MS)]);
    return this.#tickets.spend(ticket);
  }

  #adopt(purpose: Purpose, tunnel: Tunnel, session: string): void {
    const key = keyOf(purpose);
    const { log } = this.#options;
    this.#tunnels.set(key, { tunnel, session });
    log.info({ ...purpose }, 'tunnel open');
    void tunnel.closed.then((reason) => {
      if (this.#tunnels.get(key)?.tunnel === tunnel) this.#tunnels.delete(key);
      return log.info({ ...purpose, reason }, 'tunnel closed');
    });
    const waiters = this.#waiting.get(key) ?? [];
    this.#waiting.delete(key);
    for (const dialled of waiters) dialled(tunnel);
  }
}

function keyOf({ worker, priority }: Purpose): string {
  return `${worker}/${priority}`;
}
