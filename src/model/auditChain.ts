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

type Entry = Omit<Event, 'hash'>;

export function chainHash(previous: string, event: Entry): string {
  const { epoch, seq, atMs, kind, tenant, job, task, attempt, worker, data } = event;
  const fields = [previous, epoch, seq, atMs, kind, tenant, job, task, attempt, worker, data];
  return hash('sha256', JSON.stringify(fields), 'hex');
}
