/** Tunnels asked for: a ticket per dial, handed to the agent with its next sync, in memory only. */
import type { Clock } from '../lib/clock.ts';
import type { Random } from '../lib/random.ts';
import type { WorkerId } from '../model/ids.ts';
import type { TunnelOrder } from '../protocol/agent.ts';
import { hashSecret, newSecret } from './secrets.ts';

/** The gateway accepts a ticket once, within this time. */
export const TICKET_MS = 30_000;

interface Waiting {
  order: TunnelOrder;
  expiresBootMs: number;
}

export class Tunnels {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #waiting = new Map<WorkerId, Waiting[]>();
  /** Gateways by URL, with the boot time until which they are registered. */
  readonly #gateways = new Map<string, number>();

  constructor(clock: Clock, random: Random) {
    this.#clock = clock;
    this.#random = random;
  }

  register(url: string, leaseMs: number): void {
    this.#gateways.set(url, this.#clock.bootMs() + leaseMs);
  }

  isRegistered(url: string): boolean {
    return (this.#gateways.get(url) ?? 0) > this.#clock.bootMs();
  }

  /** Returns the hash of the ticket the agent will show. */
  ask(worker: WorkerId, gatewayUrl: string): string {
    const ticket = newSecret('drt', this.#random);
    const waiting = this.#waiting.get(worker) ?? [];
    waiting.push({
      order: { gatewayUrl, ticket },
      expiresBootMs: this.#clock.bootMs() + TICKET_MS,
    });
    this.#waiting.set(worker, waiting);
    return hashSecret(ticket);
  }

  /** A ticket whose reply is lost is not sent again: whoever waits for the dial asks anew. */
  take(worker: WorkerId): TunnelOrder[] {
    const waiting = this.#waiting.get(worker);
    if (!waiting) return [];
    this.#waiting.delete(worker);
    const now = this.#clock.bootMs();
    return waiting.filter((one) => one.expiresBootMs > now).map((one) => one.order);
  }
}
