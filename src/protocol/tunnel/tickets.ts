/** A tunnel ticket: a secret for one dial. The controller keeps and hands out its hash. */
import { createHash } from 'node:crypto';

/** A gateway accepts a ticket once, within this time of learning its hash. */
export const TICKET_MS = 30_000;

/** Hex of SHA-256: tickets are random enough that nothing slower is needed. */
export function hashTicket(ticket: string): string {
  return createHash('sha256').update(ticket).digest('hex');
}
