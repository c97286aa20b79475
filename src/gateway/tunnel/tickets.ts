/** The tickets this gateway waits for. Each is good for one dial, for a short time. */
import { timingSafeEqual } from 'node:crypto';
import type { Clock } from '../../lib/clock.ts';
import { DroverError } from '../../lib/errors.ts';
import { hashTicket, TICKET_MS } from '../../protocol/tunnel/tickets.ts';

/**
 * Tickets waited for at once: with TICKET_MS it bounds the rate of new streams to about 130 a
 * second.
 */
export const MAX_TICKETS = 4_000;

export interface TicketBook<Purpose> {
  expect(ticketHash: string, purpose: Purpose): void;
  /** Spends the ticket. Undefined when it is unknown, spent or too old. */
  spend(ticket: string): Purpose | undefined;
}

export function createTicketBook<Purpose>(clock: Clock): TicketBook<Purpose> {
  const waiting = new Map<string, { hash: Buffer; purpose: Purpose; until: number }>();
  function dropExpired(): void {
    const now = clock.bootMs();
    for (const [key, { until }] of waiting) if (until <= now) waiting.delete(key);
  }
  return {
    expect(ticketHash, purpose) {
      dropExpired();
      if (waiting.size >= MAX_TICKETS) {
        throw new DroverError('TOO_MANY', `${MAX_TICKETS} machines are being dialled already`, {
          hint: 'try again in half a minute',
        });
      }
      const hash = Buffer.from(ticketHash, 'hex');
      waiting.set(ticketHash, { hash, purpose, until: clock.bootMs() + TICKET_MS });
    },
    spend(ticket) {
      dropExpired();
      const hash = Buffer.from(hashTicket(ticket), 'hex');
      let spent: string | undefined;
      // Every entry is compared, in constant time: how long it takes says nothing about any of
      // them.
      for (const [key, entry] of waiting) {
        if (entry.hash.length === hash.length && timingSafeEqual(entry.hash, hash)) spent = key;
      }
      if (spent === undefined) return undefined;
      const purpose = waiting.get(spent)?.purpose;
      waiting.delete(spent);
      return purpose;
    },
  };
}
