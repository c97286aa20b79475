/** Tickets: once, in time, and not without number. */
import { expect, test } from 'vitest';
import { systemClock } from '../../lib/clock.ts';
import { hashTicket, TICKET_MS } from '../../protocol/tunnel/tickets.ts';
import { createTicketBook, MAX_TICKETS } from './tickets.ts';

test('a ticket is spent once, by whoever has it and not by its hash', () => {
  const book = createTicketBook<string>(systemClock);
  book.expect(hashTicket('secret'), 'w1');
  book.expect(hashTicket('other'), 'w2');
  expect(book.spend(hashTicket('secret'))).toBeUndefined();
  expect(book.spend('secret')).toBe('w1');
  expect(book.spend('secret')).toBeUndefined();
  expect(book.spend('other')).toBe('w2');
});

test('MAX_TICKETS are waited for, and again once they are too old', () => {
  let now = 0;
  const book = createTicketBook<number>({ ...systemClock, bootMs: () => now });
  for (let i = 0; i < MAX_TICKETS; i++) book.expect(hashTicket(String(i)), i);
  expect(() => book.expect(hashTicket('more'), 0)).toThrow(`${MAX_TICKETS} machines`);
  now = TICKET_MS - 1;
  expect(book.spend('7')).toBe(7);
  now = TICKET_MS;
  expect(book.spend('8')).toBeUndefined();
  book.expect(hashTicket('more'), 1);
  expect(book.spend('more')).toBe(1);
});
