/** What is changed, dropped or moved in a chain is found. */
import { expect, test } from 'vitest';
import { brokenAt, CHAIN_BEGIN, chainHash } from './auditChain.ts';
import type { Event } from './event.ts';

function chain(length: number): Event[] {
  let previous = CHAIN_BEGIN;
  return Array.from({ length }, (_, at) => {
    const none = { job: null, task: null, attempt: null, worker: null };
    const data = { by: `user ${at}`, tokens: at };
    const base = { epoch: 1, seq: at, atMs: at, kind: 'user.left' as const, tenant: 'a', data };
    const event: Event = { ...base, ...none, hash: null };
    event.hash = chainHash(previous, event);
    previous = event.hash;
    return event;
  });
}

test('a chain as it was written is whole', () => {
  expect(brokenAt(chain(5))).toBeNull();
  expect(brokenAt([])).toBeNull();
});

test('the order in which facts are read does not matter', () => {
  const [first] = chain(1);
  const facts = Object.entries(first!.data).toReversed();
  expect(brokenAt([{ ...first!, data: Object.fromEntries(facts) }])).toBeNull();
});

test.each([
  ['a changed fact', (events: Event[]) => (events[2]!.data['by'] = 'mallory'), 2],
  ['another time', (events: Event[]) => (events[1]!.atMs += 1), 1],
  ['a dropped entry', (events: Event[]) => events.splice(2, 1), 2],
  ['two that changed places', (events: Event[]) => events.push(events.shift()!), 0],
  ['a hash made to fit', (events: Event[]) => forge(events, 3), 4],
])('%s is found', (_name, change, at) => {
  const events = chain(5);
  change(events);
  expect(brokenAt(events)).toBe(at);
});

function forge(events: Event[], at: number): void {
  events[at]!.data['by'] = 'mallory';
  events[at]!.hash = chainHash(events[at - 1]!.hash!, events[at]!);
}
