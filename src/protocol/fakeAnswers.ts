/** What every call of the fake Coordinator has in common: scopes and pages. */
import { sleep, type Clock } from '../lib/clock.ts';
import { DroverError } from '../lib/errors.ts';
import type { Principal, Scope } from '../model/token.ts';
import type { Page } from './coordinator.ts';
import type { PageQuery } from './jobs.ts';

export function allow(who: Principal, scope: Scope): void {
  if (who.scopes.includes(scope)) return;
  throw new DroverError('PERMISSION_DENIED', `the token lacks the scope ${scope}`, {
    hint: 'Use a token that has it.',
  });
}

export function pageOf<Item>(items: Item[], { cursor, limit }: PageQuery): Page<Item> {
  const from = cursor === undefined ? 0 : Number(cursor);
  const to = from + limit;
  return { items: items.slice(from, to), nextCursor: to < items.length ? String(to) : null };
}

const POLL_MS = 5;

export async function pollUntil(clock: Clock, waitMs: number, done: () => boolean): Promise<void> {
  const deadline = clock.bootMs() + waitMs;
  while (!done() && clock.bootMs() < deadline) await sleep(clock, POLL_MS);
}
