/**
 * The one listener for WebSocket upgrades: picks the route, and refuses with a problem document.
 */
import { STATUS_CODES, type IncomingMessage, type Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { sleep, type Clock } from '../../lib/clock.ts';
import { DroverError } from '../../lib/errors.ts';
import type { Log } from '../../lib/log.ts';
import type { Random } from '../../lib/random.ts';
import type { UpgradeDescription } from '../openapi.ts';
import { LimitReached } from '../load/refusal.ts';
import { RAW_HEADERS } from '../security/headers.ts';

export interface Upgrade {
  request: IncomingMessage;
  socket: Duplex;
  head: Buffer;
}

export interface UpgradeRoute extends UpgradeDescription {
  /** What the route's pattern found in the path, decoded; undefined: not this route's. */
  match(path: string): string[] | undefined;
  /** Throws a DroverError to refuse, before it has taken the socket. */
  upgrade(upgrade: Upgrade, parameters: string[]): Promise<void>;
}

/** A path as a regular expression, whose groups become the parameters. */
export function matchPath(pattern: RegExp): UpgradeRoute['match'] {
  return (path) => {
    const found = pattern.exec(path);
    if (found === null) return undefined;
    try {
      return found.slice(1).map(decodeURIComponent);
    } catch {
      // A lone percent sign names nothing.
      return undefined;
    }
  };
}

export interface Upgrades {
  /**
   * Refuses further ones; gives sessions a moment to say goodbye, then cuts them, so that a server
   * can stop.
   */
  close(): Promise<void>;
}

const CLOSE_GRACE_MS = 1_000;
const CLOSE_STEP_MS = 10;

/** Node hands the sockets of upgrades over whole: nobody else answers, counts or closes them. */
export function attachUpgrades(
  server: Server,
  routes: UpgradeRoute[],
  options: { clock: Clock; log: Log; random: Random },
): Upgrades {
  const sockets = new Set<Duplex>();
  let handle = upgradeHandler(routes, options);
  const listener = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    handle(request, socket, head);
  };
  server.on('upgrade', listener);
  return {
    async close() {
      handle = upgradeHandler([stoppingRoute], options);
      for (let waitedMs = 0; sockets.size > 0 && waitedMs < CLOSE_GRACE_MS;) {
        await sleep(options.clock, CLOSE_STEP_MS);
        waitedMs += CLOSE_STEP_MS;
      }
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** Answers an upgrade by the first route that knows its path, or refuses it. */
export function upgradeHandler(
  routes: readonly Answering[],
  options: { log: Log; random: Random },
): (request: IncomingMessage, socket: Duplex, head: Buffer) => void {
  return (request, socket, head) => {
    // Until a WebSocket owns it, a client that goes away must not end the process.
    socket.on('error', ignoreError);
    dispatch({ request, socket, head }, routes)
      .catch((error: unknown) => refuse(socket, error, options))
      .finally(() => socket.off('error', ignoreError));
  };
}

/** What answers an upgrade: a route, without what the description says of it. */
type Answering = Pick<UpgradeRoute, 'match' | 'upgrade'>;

const stoppingRoute: Answering = {
  match: () => [],
  upgrade: () => Promise.reject(new DroverError('UNAVAILABLE', 'the gateway is stopping')),
};

function ignoreError(): void {}

async function dispatch(upgrade: Upgrade, routes: readonly Answering[]): Promise<void> {
  const path = (upgrade.request.url ?? '/').replace(/[?#].*$/s, '');
  for (const route of routes) {
    const parameters = route.match(path);
    if (parameters !== undefined) return route.upgrade(upgrade, parameters);
  }
  throw new DroverError('NOT_FOUND', `no WebSocket at ${path}`);
}

function refuse(socket: Duplex, error: unknown, options: { log: Log; random: Random }): void {
  const requestId = options.random.hex(8);
  if (!(error instanceof DroverError)) {
    options.log.error({ requestId, error: String(error) }, 'an upgrade failed');
  }
  const known =
    error instanceof DroverError
      ? error
      : new DroverError('INTERNAL', 'the upgrade failed inside Drover', { cause: error });
  const { status, title, code, message: detail, hint } = known;
  const body = JSON.stringify({ title, status, code, detail, hint, requestId });
  socket.on('error', ignoreError);
  socket.end(
    [
      `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
      'content-type: application/problem+json',
      `content-length: ${Buffer.byteLength(body)}`,
      ...(known instanceof LimitReached ? [`retry-after: ${known.refusal.retryAfterSeconds}`] : []),
      `${RAW_HEADERS}connection: close`,
      '',
      body,
    ].join('\r\n'),
  );
}

/** The token of `authorization: Bearer …`. Never from the URL, which ends up in logs. */
export function bearerToken(request: IncomingMessage): string {
  const found = /^Bearer +(\S+)$/i.exec(request.headers.authorization ?? '');
  if (found?.[1] !== undefined) return found[1];
  throw new DroverError('UNAUTHENTICATED', 'the authorization header has no bearer token', {
    hint: 'send `authorization: Bearer TOKEN`',
  });
}

/** The versions a peer offers; throws when ours is not among them. */
export function requireProtocol(
  request: IncomingMessage,
  protocol: string,
  isOptional = false,
): void {
  const offered = (request.headers['sec-websocket-protocol'] ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
  if (offered.includes(protocol) || (isOptional && offered.length === 0)) return;
  throw new DroverError(
    'INVALID_ARGUMENT',
    `this gateway speaks ${protocol}, the other end offers ${offered.join(', ') || 'nothing'}`,
    { hint: 'bring both to the same version of Drover' },
  );
}
