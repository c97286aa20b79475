/**
 * Before the command of a gang's member starts, every member must have reached rank 0 where the
 * command will: rank 0's agent listens on the master port until all have said who they are, lets go
 * of the port and tells them to start. Who did not come, or could not, is told by name.
 *
 * A member says `drover-gang TOKEN ROUND RANK`, rank 0 answers `go`. The member closes first: the
 * closing side keeps the address for a minute, and the master port must be free for the command.
 */
import { createConnection, createServer, type Server, type Socket } from 'node:net';
import { sleep, type Clock, type Timer } from '../../lib/clock.ts';
import type { GangOrder } from '../../protocol/agent.ts';

/** A member tries so long to reach rank 0: its order may come later than ours. */
export const REACH_LIMIT_MS = 20_000;
/** Rank 0 waits a little longer, so that a member that knows why it failed is the one to tell. */
export const COME_LIMIT_MS = 25_000;
/** A member that reached rank 0 hears of it, or of a stop, within this; else rank 0 is gone. */
export const GO_LIMIT_MS = 60_000;
/** One try to connect; a network that drops packets answers nothing at all. */
const CONNECT_LIMIT_MS = 5000;
const FIRST_RETRY_MS = 5;
const LONGEST_RETRY_MS = 250;
/** Whoever connects and does not say who it is within this is none of ours. */
const HELLO_LIMIT_MS = 5000;
/** Longer than any hello. */
const HELLO_BYTES = 256;
/** Connections of strangers beside the members'. */
const STRANGERS = 64;
/** How long members have to close after `go`. */
const CLOSE_LIMIT_MS = 1000;
/** Of many that are missing, so many are told by name. */
const NAMED_RANKS = 8;

const GO = 'go\n';
const helloOf = ({ token, round, rank }: GangOrder): string =>
  `drover-gang ${token} ${round} ${rank}\n`;

/** Null when all have met; else who could not, for a person. After an abort it means nothing. */
export function preflight(
  gang: GangOrder,
  clock: Clock,
  signal: AbortSignal,
): Promise<string | null> {
  if (!gang.master) {
    const message = `rank 0 was over before rank ${gang.rank} on worker ${gang.worker} could start`;
    return Promise.resolve(message);
  }
  return gang.rank === 0
    ? new Meeting(gang, gang.master, clock, signal).over
    : reach(gang, gang.master, clock, signal);
}

type Master = NonNullable<GangOrder['master']>;

/** Rank 0's side. */
class Meeting {
  readonly over: Promise<string | null>;
  readonly #gang: GangOrder;
  readonly #server: Server;
  readonly #come = new Map<number, Socket>();
  readonly #sockets = new Set<Socket>();
  readonly #timers: Timer[] = [];
  readonly #clock: Clock;
  #finish!: (problem: string | null) => void;

  constructor(gang: GangOrder, master: Master, clock: Clock, signal: AbortSignal) {
    this.#gang = gang;
    this.#clock = clock;
    this.#server = createServer((socket) => this.#receive(socket));
    this.#server.maxConnections = gang.size + STRANGERS;
    this.over = new Promise((resolve) => {
      this.#finish = (problem) => {
        this.#letGo();
        resolve(problem);
      };
    });
    signal.addEventListener('abort', () => this.#finish('stopped'), { once: true });
    this.#timers.push(clock.setTimer(COME_LIMIT_MS, () => this.#finish(this.#missing())));
    this.#server.on('error', (error) => {
      const where = `worker ${gang.worker} cannot listen on port ${master.port}`;
      this.#finish(`rank 0 on ${where}: ${reasonOf(error)}`);
    });
    this.#server.listen(master.port);
  }

  #receive(socket: Socket): void {
    this.#sockets.add(socket);
    const tooLate = this.#clock.setTimer(HELLO_LIMIT_MS, () => socket.destroy());
    let text = '';
    socket.setEncoding('latin1');
    // A broken connection is one that is closed: the member tries again or is missing.
    socket.on('error', () => socket.destroy());
    socket.on('close', () => {
      tooLate.cancel();
      this.#sockets.delete(socket);
      for (const [rank, one] of this.#come) if (one === socket) this.#come.delete(rank);
    });
    socket.on('data', (data) => {
      text += String(data);
      const rank = this.#rankOf(text);
      if (rank === undefined && !text.includes('\n') && text.length < HELLO_BYTES) return;
      tooLate.cancel();
      if (rank === undefined) socket.destroy();
      else this.#welcome(rank, socket);
    });
  }

  /** Undefined for strangers, and for members of another round. */
  #rankOf(text: string): number | undefined {
    const rank = Number(/^drover-gang \S+ \d+ (\d+)\n$/.exec(text)?.[1]);
    const known = rank > 0 && rank < this.#gang.size;
    return known && text === helloOf({ ...this.#gang, rank }) ? rank : undefined;
  }

  #welcome(rank: number, socket: Socket): void {
    const earlier = this.#come.get(rank);
    this.#come.set(rank, socket);
    if (earlier !== socket) earlier?.destroy();
    if (this.#come.size === this.#gang.size - 1) this.#begin();
  }

  /** The port is free before anybody is told: no command shall find us there. */
  #begin(): void {
    this.#server.close();
    const members = new Set(this.#come.values());
    for (const socket of this.#sockets) if (!members.has(socket)) socket.resetAndDestroy();
    let open = members.size;
    const closed = (): void => {
      if (--open === 0) this.#finish(null);
    };
    for (const socket of members) {
      socket.once('close', closed);
      socket.write(GO);
    }
    this.#timers.push(this.#clock.setTimer(CLOSE_LIMIT_MS, () => this.#finish(null)));
  }

  #letGo(): void {
    for (const timer of this.#timers) timer.cancel();
    this.#server.close();
    // A reset leaves no trace of the address behind.
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  #missing(): string {
    const { members, size } = this.#gang;
    const ranks = Array.from({ length: size - 1 }, (_, i) => i + 1);
    const absent = ranks.filter((rank) => !this.#come.has(rank));
    const names = absent.slice(0, NAMED_RANKS).map((rank) => {
      const { worker = 'unknown', address = '' } = members[rank] ?? {};
      return `${rank} on worker ${worker} (${address})`;
    });
    if (absent.length > NAMED_RANKS) names.push(`${absent.length - NAMED_RANKS} more`);
    const who = `${absent.length === 1 ? 'rank' : 'ranks'} ${names.join(', ')}`;
    return `${who} did not come to rank 0 within ${COME_LIMIT_MS / 1000} s`;
  }
}

/** Every other rank's side. */
async function reach(
  gang: GangOrder,
  master: Master,
  clock: Clock,
  signal: AbortSignal,
): Promise<string | null> {
  const endMs = clock.bootMs() + GO_LIMIT_MS;
  let reachByMs = clock.bootMs() + REACH_LIMIT_MS;
  let delayMs = FIRST_RETRY_MS;
  while (!signal.aborted) {
    const visit = await sayHello(gang, master, clock, signal, endMs - clock.bootMs());
    if (visit.answer === 'go') return null;
    const nowMs = clock.bootMs();
    // It was there: its agent may be starting again.
    if (visit.reached) reachByMs = nowMs + REACH_LIMIT_MS;
    if (nowMs >= Math.min(reachByMs, endMs)) {
      const here = `rank ${gang.rank} on worker ${gang.worker}`;
      const there = `rank 0 on worker ${master.worker} at ${placeOf(master)}`;
      return `${here} could not reach ${there}: ${visit.answer}`;
    }
    await sleep(clock, delayMs);
    delayMs = Math.min(LONGEST_RETRY_MS, delayMs * 2);
  }
  return null;
}

interface Visit {
  /** `go`, or why not. */
  answer: string;
  reached: boolean;
}

function sayHello(
  gang: GangOrder,
  { address, port }: Master,
  clock: Clock,
  signal: AbortSignal,
  limitMs: number,
): Promise<Visit> {
  return new Promise((resolve) => {
    const socket = createConnection({ host: address, port });
    let reached = false;
    let text = '';
    const end = (answer: string): void => {
      timer.cancel();
      signal.removeEventListener('abort', stop);
      resolve({ answer, reached });
      if (answer === 'go') socket.end();
      else socket.destroy();
    };
    const stop = (): void => end('stopped');
    let timer = clock.setTimer(Math.min(limitMs, CONNECT_LIMIT_MS), () => end('no answer'));
    signal.addEventListener('abort', stop, { once: true });
    socket.setEncoding('latin1');
    socket.on('connect', () => {
      reached = true;
      timer.cancel();
      timer = clock.setTimer(limitMs, () => end('it answered, but never said go'));
      socket.write(helloOf(gang));
    });
    socket.on('data', (data) => {
      text += String(data);
      if (text === GO) end('go');
      else if (!GO.startsWith(text)) end('something else answers there');
    });
    socket.on('error', (error) => end(reasonOf(error)));
    socket.on('close', () => end('it closed the connection'));
  });
}

const placeOf = ({ address, port }: Master): string =>
  address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`;

const REASONS: Record<string, string> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection reset',
  EHOSTUNREACH: 'no route to the host',
  ENETUNREACH: 'the network is unreachable',
  ETIMEDOUT: 'no answer',
  ENOTFOUND: 'nobody knows that name',
  EAI_AGAIN: 'nobody knows that name now',
  EADDRINUSE: 'something else uses it',
  EACCES: 'not permitted',
};

function reasonOf(error: Error): string {
  return REASONS[(error as NodeJS.ErrnoException).code ?? ''] ?? error.message;
}
