/** Machines that come by themselves: the real controller, a real database, a fake provider. */
import { afterEach, describe, expect, test } from 'vitest';
import { FleetWorld, type FleetWorldOptions } from '../../../test/support/fleetWorld.ts';
import type { TestAgent } from '../../../test/support/testController.ts';

let world: FleetWorld;

afterEach(() => world.close());

async function open(options: FleetWorldOptions = {}): Promise<FleetWorld> {
  world = await new FleetWorld(options).start();
  return world;
}

const work = { pool: 'rented', resources: { cpuMillis: 8000 } };

describe('a pool that grows', () => {
  test('what fits nowhere brings a machine, runs there, and the machine goes again', async () => {
    const { test: lab, account } = await open();
    const [job = ''] = await lab.submit(work);
    await world.pass(3);
    const why = await lab.clock.run(lab.it.why(lab.admin, job));
    expect(why).toMatchObject({ code: 'COMING' });
    expect(why.sentence).toMatch(/^waiting for (a )?pretended machine/);
    await world.pass(120);
    expect(world.instances()).toMatchObject([{ state: 'JOINED', handle: /./ }]);
    await world.end(firstAgent(), 0);
    expect((await lab.clock.run(lab.it.getJob(lab.admin, job))).state).toBe('SUCCEEDED');
    await world.pass(150);
    expect(account.existing()).toEqual([]);
    expect(world.instances()).toEqual([]);
  });

  test('one sized for a task: worker and nomination appear together', async () => {
    const { test: lab } = await open({ settings: { mode: 'job' } });
    const [job = ''] = await lab.submit({ ...work, resources: { cpuMillis: 4000 } });
    await world.pass(1);
    const [instance] = world.instances();
    expect(instance?.tasks).toEqual([`${job}.0`]);
    await world.pass(120);
    const attempts = await lab.clock.run(lab.it.listAttempts(lab.admin, job, { limit: 10 }));
    expect(attempts.items).toHaveLength(1);
  });

  test('a gang comes as one instance with a worker each, and starts whole', async () => {
    const { test: lab } = await open({ settings: { mode: 'job' } });
    const [job = ''] = await lab.submit({ ...work, shape: { kind: 'gang', size: 3 } });
    await world.pass(150);
    expect(world.instances()).toMatchObject([{ workers: 3, state: 'JOINED' }]);
    const attempts = await lab.clock.run(lab.it.listAttempts(lab.admin, job, { limit: 10 }));
    expect(attempts.items).toHaveLength(3);
  });

  test('machines that have less than was promised do not come one after the other', async () => {
    const { test: lab, account } = await open({ settings: { largestWorker: { cpus: 64 } } });
    await lab.submit({ ...work, resources: { cpuMillis: 32_000 } });
    await world.pass(400, 2);
    expect(account.machines.size).toBe(1);
  });

  test('its min is kept, its max not exceeded', async () => {
    const { test: lab, account } = await open({ settings: { min: 1, max: 2 } });
    await world.pass(120);
    expect(account.existing()).toHaveLength(1);
    await lab.submit(...Array.from({ length: 9 }, () => work));
    await world.pass(300);
    expect(account.existing()).toHaveLength(2);
  });
});

describe('what goes wrong', () => {
  test('a lost reply: the machine is found by its label, and there is only one', async () => {
    const { test: lab, account, faults } = await open();
    faults.next('launch: reply lost');
    await lab.submit(work);
    await world.pass(150);
    expect(account.machines.size).toBe(1);
    expect(world.instances()).toMatchObject([{ state: 'JOINED' }]);
  });

  test.each([
    'launch: taken twice',
    'launch: refused though it created',
    'launch: fails though it created',
    'launch: appears late',
  ] as const)('%s: what nobody wants is gone within five minutes', async (fault) => {
    const { test: lab, account, faults } = await open({ settings: { max: 1 } });
    faults.next(fault);
    await lab.submit(work);
    await world.pass(900);
    const known = new Set(world.instances().map(({ handle }) => handle));
    expect(account.existing().filter(({ handle }) => !known.has(handle))).toEqual([]);
    expect(account.existing()).toHaveLength(1);
  });

  test('a listing that fails ends nothing', async () => {
    const { test: lab, account } = await open();
    await lab.submit(work);
    await world.pass(120);
    account.reachable = false;
    await world.pass(200);
    expect(world.instances()).toMatchObject([{ state: 'JOINED' }]);
    const [, pool] = await lab.clock.run(lab.it.listPools(lab.admin));
    expect(pool?.listError).toMatch(/does not answer/);
    account.reachable = true;
    await world.pass(30);
    expect(account.existing()).toHaveLength(1);
  });

  test('one that never joins: ended, held against its host, another comes', async () => {
    const { test: lab, account, faults } = await open();
    faults.next('machine: never joins');
    await lab.submit(work);
    await world.pass(600);
    expect(account.machines.size).toBe(2);
    expect(world.instances()).toMatchObject([{ state: 'JOINED' }]);
    const hosts = [...lab.controller.state.machines.hosts.values()];
    expect(hosts).toMatchObject([{ faults: 1, evidence: /never joined/ }]);
  });

  test('refused: the pool says why, waits, and tries again later', async () => {
    const { test: lab, faults } = await open({ settings: { cooldownMs: 20_000 } });
    faults.next('launch: no capacity');
    const [job = ''] = await lab.submit(work);
    await world.pass(5);
    expect(world.instances()).toEqual([]);
    const why = await lab.clock.run(lab.it.why(lab.admin, job));
    expect(why.sentence).toMatch(/pool rented: holds back after: .*, until/);
    await world.pass(150);
    expect(world.instances()).toMatchObject([{ state: 'JOINED' }]);
  });

  test('a machine that vanishes: its work is placed again and not charged', async () => {
    const { test: lab, account } = await open();
    const [job = ''] = await lab.submit(work);
    await world.pass(120);
    expect(firstAgent().runs.size).toBe(1);
    account.existing()[0]?.vanish();
    await world.pass(150);
    const { items } = await lab.clock.run(lab.it.listAttempts(lab.admin, job, { limit: 10 }));
    expect(items[0]).toMatchObject({ cause: 'lost' });
    expect(items.length).toBeGreaterThan(1);
  });

  test('a machine that its provider has lost, though its agent lives: stopped first', async () => {
    const { test: lab, account } = await open();
    const [job = ''] = await lab.submit(work);
    await world.pass(120);
    const [machine] = account.existing();
    world.undead.add(machine!);
    machine?.vanish();
    await world.pass(150);
    const { items } = await lab.clock.run(lab.it.listAttempts(lab.admin, job, { limit: 10 }));
    expect(items[0]).toMatchObject({ cause: 'preempted' });
    expect(items[1]?.assignedAtMs).toBeGreaterThanOrEqual(items[0]?.endedAtMs ?? Infinity);
    // Nobody wants it any more: its token is good for nothing.
    await expect(lab.clock.run(firstAgent().send())).rejects.toThrow(/not valid any more/);
  });

  test('a controller that dies with an intent on disk: nothing doubled, nothing lost', async () => {
    const { test: lab, account } = await open();
    await lab.submit(work);
    await lab.clock.advance(1000);
    await lab.crash();
    await lab.start();
    await world.pass(300);
    expect(account.existing()).toHaveLength(1);
    expect(world.instances()).toMatchObject([{ state: 'JOINED' }]);
  });

  test('spending stops at the limit of the pool', { timeout: 30_000 }, async () => {
    const settings = { pricePerInstanceHour: 1, spendPerDay: 1.1, pollMs: 5000 };
    const { test: lab, account } = await open({ settings });
    const jobs = await lab.submit(work, work);
    await world.pass(60);
    const why = await lab.clock.run(lab.it.why(lab.admin, jobs[1] ?? ''));
    expect(why.sentence).toMatch(/of 1\.10 a day are spent and [01]\.\d\d kept for those it has/);
    await world.pass(4200, 20);
    const billed = [...account.machines.values()]
      .flatMap(({ bill }) => bill.charges(lab.clock.now()))
      .reduce((sum, { micros }) => sum + micros, 0);
    expect(account.existing()).toEqual([]);
    expect(billed).toBeGreaterThan(1_000_000);
    expect(billed).toBeLessThanOrEqual(1_100_000 + Math.ceil(1_000_000 / 60));
  });
});

function firstAgent(): TestAgent {
  const [agents] = world.agents.values();
  if (!agents?.[0]) throw new Error('no machine has joined');
  return agents[0];
}
