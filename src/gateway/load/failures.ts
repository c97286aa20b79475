/** Failed authentications by address: whoever tries many tokens is told to wait. */
import type { IncomingMessage } from 'node:http';
import { isLoopback } from '../../lib/loopback.ts';
import { Bucket, type Rate } from './bucket.ts';

/** A person who pastes the wrong token, a script that does not notice for a minute. */
const BURST = 300;
/** The oldest are forgotten first: they have had the longest to recover. */
export const MOST_ADDRESSES = 10_000;

export class Failures {
  readonly #rate: Rate;
  readonly #byAddress = new Map<string, Bucket>();

  /** 0: nobody is ever told to wait. */
  constructor(perSecond: number) {
    this.#rate = { perSecond, burst: BURST };
  }

  get size(): number {
    return this.#byAddress.size;
  }

  note(address: string, nowMs: number): void {
    if (this.#rate.perSecond === 0) return;
    let bucket = this.#byAddress.get(address);
    if (bucket === undefined) {
      if (this.#byAddress.size >= MOST_ADDRESSES) this.#forgetOldest();
      bucket = new Bucket(this.#rate, nowMs);
      this.#byAddress.set(address, bucket);
    }
    // Those under way when the limit was reached shall not make a debt of minutes.
    if (bucket.waitMs(1, nowMs) === 0) bucket.spend(1);
  }

  /** 0: may try. */
  waitMs(address: string, nowMs: number): number {
    return this.#byAddress.get(address)?.waitMs(1, nowMs) ?? 0;
  }

  #forgetOldest(): void {
    const [oldest] = this.#byAddress.keys();
    if (oldest !== undefined) this.#byAddress.delete(oldest);
  }
}

/**
 * Whom a failure is counted for. Behind a proxy on this machine it is who the proxy says it is:
 * the last entry, which the proxy wrote itself. Of IPv6 it is the network, as anybody has 2^64.
 */
export function addressOf({ headers, socket }: IncomingMessage): string {
  const peer = socket.remoteAddress ?? '';
  const forwarded = headers['x-forwarded-for'];
  if (forwarded === undefined || !isLoopback(peer)) return networkOf(peer);
  const last = [forwarded].flat().join(',').split(',').at(-1)?.trim() ?? '';
  return networkOf(last);
}

function networkOf(address: string): string {
  const plain = address.startsWith('::ffff:') ? address.slice(7) : address;
  if (!plain.includes(':')) return plain;
  const [front = ''] = plain.split('::', 1);
  const groups = front.split(':');
  while (groups.length < 4) groups.push('0');
  return groups.slice(0, 4).join(':');
}
