/** Tunnels asked for: a ticket per dial, handed to the agent with its next sync, in memory only. */
import type { Clock } from '../lib/clock.ts';
import type { Random } from '../lib/random.ts';
import { DroverError } from '../lib/errors.ts';
import type { TaskId, WorkerId } from '../model/ids.ts';
import type { TunnelOrder } from '../protocol/agent.ts';
import type { Coordinator } from '../protocol/coordinator.ts';
import type { State } from '../state/state.ts';
import type { Jobs } from './jobs.ts';
import { hashSecret, newSecret } from './secrets.ts';
import type { Sessions } from './sessions.ts';

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
    for (const known of this.#gateways.keys()) {
      if (!this.isRegistered(known)) this.#gateways.delete(known);
    }
    this.#gateways.set(url, this.#clock.bootMs() + leaseMs);
  }

  isRegistered(url: string): boolean {
    return (this.#gateways.get(url) ?? 0) > this.#clock.bootMs();
  }

  forget(worker: WorkerId): void {
    this.#waiting.delete(worker);
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

export interface TunnelCallOptions {
  state: State;
  jobs: Jobs;
  tunnels: Tunnels;
  sessions: Sessions;
}

export function createTunnelCalls(
  options: TunnelCallOptions,
): Pick<Coordinator, 'registerGateway' | 'openTunnel'> {
  const { state, jobs, tunnels, sessions } = options;
  return {
    async registerGateway(url, leaseMs) {
      tunnels.register(url, leaseMs);
    },

    async openTunnel(who, id, gatewayUrl) {
      // A job's id alone means its first task.
      const [job = '', index] = id.split('.');
      await jobs.getJob(who, job);
      const first = state.jobs.get(job as never)?.tasks[0];
      const found = state.task(index === undefined && first ? first.id : (id as TaskId));
      const attempt = found?.live.attempts.get(found.task.index);
      if (!attempt || attempt.startedAtMs === null) {
        throw new DroverError('CONFLICT', `${id} is not running`, {
          hint: `see where it is with: drover job ${job}`,
        });
      }
      if (!tunnels.isRegistered(gatewayUrl)) {
        throw new DroverError('UNAVAILABLE', `the gateway ${gatewayUrl} has not registered`, {
          hint: 'try again in a moment',
        });
      }
      const ticketHash = tunnels.ask(attempt.worker, gatewayUrl);
      sessions.wakeSoon([attempt.worker]);
      return { ticketHash, worker: attempt.worker, attempt: attempt.uid };
    },
  };
}
