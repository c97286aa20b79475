/** Any order of launches, ends, moves and faults: as many as were wanted, and no others ended. */
import { expect, it } from 'vitest';
import { batch, machinesOf, startSaladPool, UP_MS } from '../../../test/support/salad/pool.ts';
import { seededRandom, type Random } from '../../lib/random.ts';
import type { Machine, Provider } from '../contract.ts';

const SEEDS = 5;
const STEPS = 40;
const MOST = 6;
const FAULTS = ['html', 'lost', 'unsent', 'too-many'] as const;

const pick = <Value>(random: Random, values: readonly Value[]): Value | undefined =>
  values[Math.floor(random.next() * values.length)];

async function known(provider: Provider): Promise<Machine[]> {
  const listing = await provider.list();
  return listing.kind === 'known' ? listing.machines : [];
}

it.each(Array.from({ length: SEEDS }, (_, seed) => seed))('seed %i', async (seed) => {
  const random = seededRandom(seed);
  const pool = await startSaladPool();
  const { clock, emulator } = pool;
  // A controller that starts again now and then.
  const provider = (): Provider => (random.next() < 0.1 ? (opened = pool.open()) : opened);
  let opened = pool.open();
  let target = 0;
  const victims = new Set<string>();
  /** While nothing was wanted everybody had to go. */
  let isEmptied = false;
  const check = (): void => {
    const { events } = emulator.cloud;
    const stopped = events.filter((event) => event['event_name'] === 'instance_stopped');
    if (isEmptied) for (const { instance_id: id } of stopped) victims.add(id);
    for (const { instance_id: id } of stopped) expect(victims).toContain(id);
    isEmptied = target === 0;
  };
  const end = (machines: Machine[]) => provider().destroy({ machines, target });
  const leaving = (machines: Machine[]) => machines.filter(({ handle }) => victims.has(handle));

  for (let step = 0; step < STEPS; step++) {
    const kind = pick(random, FAULTS);
    if (kind && random.next() < 0.4) emulator.fail({ kind, retryAfter: '1' });
    const machines = await known(provider());
    if (random.next() < 0.4 && target < MOST) {
      target += 1 + Math.floor(random.next() * 2);
      isEmptied = false;
      await provider().launch(batch(target));
    } else if (random.next() < 0.5) {
      const victim = pick(
        random,
        machines.filter(({ phase }) => phase === 'running'),
      );
      if (victim && !victims.has(victim.handle)) {
        victims.add(victim.handle);
        target = Math.max(0, target - 1);
      }
      isEmptied ||= target === 0;
    } else if (random.next() < 0.3 && emulator.cloud.groups.size > 0) {
      const group = emulator.group();
      const moved = pick(
        random,
        group.instances.filter(({ state }) => state === 'running'),
      );
      if (moved) group.reallocate(moved, random.next() < 0.5);
    }
    const going = leaving(machines);
    if (going.length > 0) await end(going);
    check();
    await clock.advance(random.next() * 60_000);
  }

  // Well again, but for faults that nobody has met: looks of a controller lead to what is wanted.
  for (let look = 0; look < 10; look++) {
    await clock.advance(UP_MS);
    const listing = await provider().list();
    if (listing.kind === 'unknown') continue;
    const { machines } = listing;
    const staying = machines.filter(({ handle }) => !victims.has(handle));
    if (staying.length < target) await provider().launch(batch(target));
    const surplus = staying.slice(target);
    for (const { handle } of surplus) if (handle) victims.add(handle);
    const going = [...leaving(machines), ...surplus.filter(({ handle }) => handle === '')];
    if (going.length > 0) await end(going);
    check();
  }
  await clock.advance(UP_MS);
  const machines = await machinesOf(provider());
  expect(machines.map(({ phase }) => phase)).toEqual(
    Array.from({ length: target }, () => 'running'),
  );
  expect(leaving(machines)).toEqual([]);
  if (emulator.cloud.groups.size > 0) expect(emulator.group().replicas).toBe(target);
  await pool.close();
});
