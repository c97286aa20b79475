/** The overload rule on a simulated server: full use, short queues, fair shares. */
import { expect, test } from 'vitest';
import { FEWEST_CALLS, Overload } from './overload.ts';

/**
 * A server that answers one call after the other, `perSecond` of them, after `floorMs` at least;
 * tenants offer their rates whatever becomes of their calls.
 */
class Server {
  nowMs = 0;
  readonly overload: Overload;
  readonly calls = new Map<string, number>();
  readonly accepted = new Map<string, number>();
  readonly refused = new Map<string, number>();
  readonly latenciesMs = new Map<string, number[]>();
  readonly #queue: { tenant: string; beganMs: number; endsMs: number }[] = [];
  #freeAtMs = 0;

  constructor(overload: Overload) {
    this.overload = overload;
  }

  offer(tenant: string, perSecond: number, floorMs: number): void {
    const calls = this.calls.get(tenant) ?? 0;
    if (this.overload.refuses(calls)) {
      this.overload.refused();
      this.refused.set(tenant, (this.refused.get(tenant) ?? 0) + 1);
      return;
    }
    this.overload.begin(calls);
    this.calls.set(tenant, calls + 1);
    this.#freeAtMs = Math.max(this.#freeAtMs, this.nowMs) + 1000 / perSecond;
    const endsMs = this.#freeAtMs + floorMs;
    this.#queue.push({ tenant, beganMs: this.nowMs, endsMs });
  }

  advance(toMs: number): void {
    this.nowMs = toMs;
    while (this.#queue[0] && this.#queue[0].endsMs <= toMs) {
      const { tenant, beganMs, endsMs } = this.#queue.shift()!;
      const left = this.calls.get(tenant)! - 1;
      this.calls.set(tenant, left);
      this.overload.end(left, endsMs - beganMs, endsMs);
      this.accepted.set(tenant, (this.accepted.get(tenant) ?? 0) + 1);
      const latencies = this.latenciesMs.get(tenant) ?? [];
      latencies.push(endsMs - beganMs);
      this.latenciesMs.set(tenant, latencies);
    }
  }
}

interface Load {
  tenants: Record<string, number>;
  perSecond: number;
  floorMs?: number;
  seconds: number;
}

function simulate(overload: Overload, { tenants, perSecond, floorMs = 1, seconds }: Load): Server {
  const server = new Server(overload);
  const due = new Map(Object.keys(tenants).map((tenant) => [tenant, 0]));
  for (let nowMs = 0; nowMs < seconds * 1000; nowMs += 0.25) {
    server.advance(nowMs);
    for (const [tenant, rate] of Object.entries(tenants)) {
      for (; due.get(tenant)! <= nowMs; due.set(tenant, due.get(tenant)! + 1000 / rate)) {
        server.offer(tenant, perSecond, floorMs);
      }
    }
  }
  return server;
}

const settings = { overloadMs: 20, callsAtOnce: 1024 };
const late = (latencies: number[] | undefined): number[] => latencies!.slice(-1000);
const worst = (latencies: number[]): number => Math.max(...latencies);

test('below capacity nobody is refused', () => {
  const server = simulate(new Overload(settings), {
    ...{ tenants: { a: 1800, b: 100 }, perSecond: 2000, seconds: 10 },
  });
  expect(server.refused.size).toBe(0);
  expect(server.overload.inFlight).toBeLessThan(50);
});

test.each([3, 10, 50])('at %i times the capacity the server stays busy, its queue short', (n) => {
  const overload = new Overload(settings);
  const server = simulate(overload, {
    ...{ tenants: { a: 2000 * n }, perSecond: 2000, seconds: 10 },
  });
  expect(server.accepted.get('a')! / 10).toBeGreaterThan(1900);
  // It began with a limit for a faster server, and has learned.
  expect(worst(late(server.latenciesMs.get('a')))).toBeLessThan(60);
  expect(overload.inFlight).toBeLessThanOrEqual(overload.limit + 1);
});

test('a flood does not push out the few calls of others, and slows them little', () => {
  const server = simulate(new Overload(settings), {
    ...{ tenants: { flood: 6000, b: 100, c: 100 }, perSecond: 2000, seconds: 10 },
  });
  expect(server.refused.has('b')).toBe(false);
  expect(server.refused.has('c')).toBe(false);
  expect(server.accepted.get('b')).toBeGreaterThan(990);
  expect(worst(late(server.latenciesMs.get('b')).slice(-500))).toBeLessThan(60);
  expect(server.accepted.get('flood')! / 10).toBeGreaterThan(1600);
});

test('two floods get the same, whatever each of them offers', () => {
  const server = simulate(new Overload(settings), {
    ...{ tenants: { small: 3000, large: 30_000 }, perSecond: 2000, seconds: 10 },
  });
  const [small, large] = [server.accepted.get('small')!, server.accepted.get('large')!];
  expect(small / large).toBeGreaterThan(0.7);
  expect(small / large).toBeLessThan(1.4);
});

test('a disk that is slow by itself is no queue: group commits keep their width', () => {
  const overload = new Overload(settings);
  const slow = { perSecond: 1000, floorMs: 100 };
  simulate(overload, { ...slow, tenants: { a: 20 }, seconds: 20 });
  expect(overload.inFlight).toBeLessThan(8);
  const limit = overload.limit;
  const server = simulate(overload, { ...slow, tenants: { a: 900 }, seconds: 10 });
  expect(overload.limit).toBeGreaterThanOrEqual(limit);
  expect(server.refused.size).toBe(0);
});

test('the limit has a floor and a ceiling, and grows again when calls are quick', () => {
  const overload = new Overload({ overloadMs: 20, callsAtOnce: 300 });
  simulate(overload, { tenants: { a: 3000 }, perSecond: 100, seconds: 5 });
  expect(overload.limit).toBe(FEWEST_CALLS);
  const again = new Overload({ overloadMs: 20, callsAtOnce: 300 });
  simulate(again, { tenants: { a: 100_000 }, perSecond: 50_000, seconds: 2 });
  expect(again.limit).toBe(300);
});

test('those sent away are told to come again over as many seconds as they are too many', () => {
  const overload = new Overload(settings);
  simulate(overload, { tenants: { a: 8000 }, perSecond: 2000, seconds: 3 });
  const told = new Set(Array.from({ length: 30 }, () => overload.refused()));
  expect([...told].toSorted((a, b) => a - b)).toEqual([1, 2, 3]);
});
