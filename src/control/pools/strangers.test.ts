/** Machines of ours that nobody asked for, or that nobody remembers. */
import { afterEach, expect, test } from 'vitest';
import { FleetWorld, type FleetWorldOptions } from '../../../test/support/fleetWorld.ts';

let world: FleetWorld;

afterEach(() => world.close());

async function open(options: FleetWorldOptions = {}): Promise<FleetWorld> {
  world = await new FleetWorld(options).start();
  return world;
}

const work = { name: 'canary', pool: 'rented', resources: { cpuMillis: 8000 } };

function stray(label: string): void {
  world.account.create({
    ...{ clusterId: 'c0test', pool: 'rented', label, joinToken: '', workers: 1 },
    ...{ resources: null, runAs: null, timeLimitMs: 0, avoid: [] },
    agent: { url: '', authorities: '', selfDestructAfterMs: 0 },
  });
}

test('a stray that stands still and costs is ended like one that runs', async () => {
  world = new FleetWorld();
  world.joins = false;
  const { account, faults } = world;
  faults.next('machine: outbid and still billed');
  stray('i0stray');
  await world.test.clock.advance(600_000);
  expect(account.existing()).toMatchObject([{ phase: 'ending' }]);
  await world.start();
  await world.pass(60);
  expect(account.existing()).toEqual([]);
});

test('an intent that finds a stray before its launch keeps it', async () => {
  const { test: lab, account } = await open({ capabilities: { labels: false, batches: false } });
  world.joins = false;
  stray('');
  await lab.submit(work);
  await world.pass(20);
  expect(world.instances()).toMatchObject([{ handle: '4000' }]);
  expect(account.machines.size).toBe(1);
});

test('why, and what is told of an instance, name nobody else’s work', async () => {
  const { test: lab } = await open();
  await lab.submit(work);
  await lab.clock.advance(1000);
  const { items } = await lab.clock.run(
    lab.it.listInstances(lab.admin, { pool: '', ended: false, limit: 10 }),
  );
  expect(items).toMatchObject([{ reason: '1 task waits' }]);
  expect(JSON.stringify(items)).not.toContain('canary');
});
