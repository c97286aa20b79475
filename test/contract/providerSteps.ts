/** Steps of the providers' contract, and what any machine and any reason must look like. */
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import { FAILURE_CLASSES } from '../../src/model/instance.ts';
import { MACHINE_PHASES } from '../../src/providers/contract.ts';
import type { LaunchBatch, Listing, Machine, Provider } from '../../src/providers/contract.ts';

export const POLL_MS = 50;
let batches = 0;

/** Labels as the controller makes them; nothing in it is used twice. */
export function batchOf(
  count: number,
  target: number,
  like: Partial<LaunchBatch> = {},
): LaunchBatch {
  const id = `i0${process.pid.toString(36)}x${(++batches).toString(36)}`;
  const intents = Array.from({ length: count }, (_, place) => ({
    label: count === 1 ? id : `${id}.${place}`,
    joinToken: `drj_secret${id}x${place}`,
  }));
  return {
    ...{ id, intents, target },
    ...{ resources: null, workers: 1, timeLimitMs: 0, noticeMs: 0, runAs: null },
    ...{ name: 'contract', avoid: [] },
    agent: { url: 'http://127.0.0.1:9', authorities: '', selfDestructAfterMs: 60_000 },
    ...like,
  };
}

export function labels({ intents }: LaunchBatch): Set<string> {
  return new Set(intents.map(({ label }) => label));
}

/** Those that are not over; fails where the provider does not know. */
export async function alive(provider: Provider): Promise<Machine[]> {
  const listing: Listing = await provider.list();
  if (listing.kind === 'unknown') throw new Error(`the listing is unknown: ${listing.reason}`);
  return listing.machines.filter(({ phase }) => phase !== 'gone');
}

export async function clear(provider: Provider, patienceMs: number): Promise<void> {
  await until(patienceMs, 'all is cleared away', async () => {
    const machines = await alive(provider);
    if (machines.length > 0) await provider.destroy({ machines, target: 0 });
    return machines.length === 0;
  });
}

export async function until<Value>(
  patienceMs: number,
  what: string,
  look: () => Promise<Value | false>,
): Promise<Value> {
  const untilMs = performance.now() + patienceMs;
  for (;;) {
    const value = await look();
    if (value !== false) return value;
    if (performance.now() > untilMs) throw new Error(`not within ${patienceMs} ms: ${what}`);
    await delay(POLL_MS);
  }
}

export function wellFormed(machine: Machine): void {
  expect(MACHINE_PHASES).toContain(machine.phase);
  expect([null, ...FAILURE_CLASSES]).toContain(machine.failure);
  expect(machine).toMatchObject({ reason: expect.any(String), host: expect.any(String) });
  expect(machine.restarts).toBeGreaterThanOrEqual(0);
  expect(machine.billed).toBeTypeOf('boolean');
  for (const number of [machine.startsAtMs, machine.leftMs, machine.priceHourMicros]) {
    if (number !== null) expect(number).toBeGreaterThanOrEqual(0);
  }
}

/** Something that a person can read: words on one line, no dump, no secret. */
export function sentence(reason: string, { intents }: LaunchBatch): void {
  expect(reason.trim().split(/\s+/).length, reason).toBeGreaterThanOrEqual(3);
  expect(reason).not.toMatch(/[\n\r]|undefined|\[object|^\s*[{[<]|\bat .*:\d+:\d+/);
  for (const { joinToken } of intents) expect(reason).not.toContain(joinToken);
}
