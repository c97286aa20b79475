/**
 * The record of who did what, as a chain: each entry's hash covers the one before it, per tenant.
 * Whoever changes, drops or inserts an entry has to write every later hash anew, and the last one
 * is what people can keep elsewhere.
 */
import { hash } from 'node:crypto';
import type { Event } from './event.ts';

/** The last entry of a tenant. */
export interface AuditHead {
  tenant: string;
  hash: string;
  entries: number;
}

/** What the first entry of a tenant stands on. */
export const CHAIN_BEGIN = '';

type Place = 'job' | 'task' | 'attempt' | 'worker';
/** As the state has it, and as it is listed. */
type Entry = Omit<Event, 'hash' | 'tenant' | Place> & Record<Place, string | null>;

/** The tenant is not in it: a chain is one tenant's, and an entry cannot leave it unseen. */
export function chainHash(previous: string, event: Entry): string {
  const { epoch, seq, atMs, kind, job, task, attempt, worker, data } = event;
  const facts = Object.entries(data).toSorted(([a], [b]) => (a < b ? -1 : 1));
  const fields = [previous, epoch, seq, atMs, kind, job, task, attempt, worker, facts];
  return hash('sha256', JSON.stringify(fields), 'hex');
}

/** Entries from the oldest on; the place of the first that does not stand on the one before it. */
export function brokenAt(entries: readonly (Entry & { hash: string | null })[]): number | null {
  let previous = CHAIN_BEGIN;
  for (const [at, entry] of entries.entries()) {
    if (entry.hash !== chainHash(previous, entry)) return at;
    previous = entry.hash;
  }
  return null;
}
