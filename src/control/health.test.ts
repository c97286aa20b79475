/** Whether the controller can work, how it says so, and what it counts. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { TestController } from '../../test/support/testController.ts';
import { createToken } from '../protocol/fleet.ts';
import type { History } from '../store/contract.ts';

let it: TestController;
let broken: boolean;
beforeEach(async () => {
  broken = false;
  it = new TestController({ history: failing });
  await it.start();
});
afterEach(() => it.close());

function failing(real: History): History {
  const system = real.system();
  return {
    ...real,
    system: () => ({
      ...system,
      ping: () => (broken ? Promise.reject(new Error('disk I/O error')) : system.ping()),
    }),
  };
}

const ready = () => it.clock.run(it.it.readiness());

describe('readiness', () => {
  test('names the loops and when they last ran', async () => {
    await it.clock.advance(2000);
    const { ready: is, reasons, loops } = await ready();
    expect([is, reasons]).toEqual([true, []]);
    expect(loops.map(({ name, healthy }) => [name, healthy])).toEqual([
      ['schedule', true],
      ['leases', true],
      ['deadlines', true],
      ['charges', true],
      ['notices', true],
    ]);
    for (const { lastFinishedAtMs } of loops) expect(lastFinishedAtMs).toBeGreaterThan(0);
  });

  test('is lost with the store, and found again', async () => {
    broken = true;
    expect(await ready()).toMatchObject({ ready: false, reasons: ['store: disk I/O error'] });
    broken = false;
    expect(await ready()).toMatchObject({ ready: true });
  });

  test('is lost with a loop that fails, and says which and why', async () => {
    const { workers } = it.controller.state;
    Object.defineProperty(workers, 'values', {
      configurable: true,
      value() {
        throw new Error('a bug');
      },
    });
    await it.clock.advance(1000);
    expect(await ready()).toMatchObject({ ready: false, reasons: ['loop leases: a bug'] });
    const metrics = await it.clock.run(loopMetrics());
    expect(metrics).toMatch('drover_loop_healthy{loop="leases"} 0');
    Reflect.deleteProperty(workers, 'values');
    await it.clock.advance(1000);
    expect(await ready()).toMatchObject({ ready: true });
  });
});

/** The gauges that look at workers fail with them; those of the loops do not. */
async function loopMetrics(): Promise<string> {
  const { workers } = it.controller.state;
  const broken = Object.getOwnPropertyDescriptor(workers, 'values');
  Reflect.deleteProperty(workers, 'values');
  const text = await it.it.metrics();
  if (broken) Object.defineProperty(workers, 'values', broken);
  return text;
}

test('metrics count what there is', async () => {
  const agents = [await it.joinAgent(), await it.joinAgent()] as const;
  await it.submit({}, {}, { resources: { cpuMillis: 9000 } });
  const wanted = await agents[0].sync();
  const agent = wanted.desired.length > 0 ? agents[0] : agents[1];
  const { desired } = agent === agents[0] ? wanted : await agent.sync();
  await agent.sync([{ uid: desired[0]?.uid ?? '', state: 'RUNNING' }]);
  await it.clock.run(it.it.setDraining(it.admin, agent.joined.worker, true));
  const text = await it.clock.run(it.it.metrics());
  const value = (name: string) =>
    Number(
      text
        .split('\n')
        .find((l) => l.startsWith(`${name} `))
        ?.split(' ')[1],
    );
  expect({
    pending: value('drover_tasks{state="PENDING"}'),
    assigned: value('drover_tasks{state="ASSIGNED"}'),
    running: value('drover_tasks{state="RUNNING"}'),
    online: value('drover_workers{state="ONLINE"}'),
    draining: value('drover_workers{state="DRAINING"}'),
    jobs: value('drover_jobs_live'),
    placed: value('drover_tasks_placed_total'),
    stale: value('drover_placements_stale_total'),
    healthy: value('drover_loop_healthy{loop="schedule"}'),
  }).toEqual({
    pending: 1,
    assigned: 1,
    running: 1,
    online: 1,
    draining: 1,
    jobs: 3,
    placed: 2,
    stale: 0,
    healthy: 1,
  });
  expect(value('drover_store_rows_total')).toBeGreaterThan(value('drover_store_batches_total'));
  expect(value('drover_events_total')).toBe(it.controller.state.seq);
  const cluster = await it.clock.run(it.it.cluster(it.admin));
  expect(cluster).toMatchObject({
    name: 'test',
    store: 'sqlite',
    workers: { online: 2, suspect: 0, draining: 1 },
    tasks: { pending: 1, assigned: 1, running: 1 },
  });
});

describe('tokens', () => {
  const create = (fields: object, who = it.admin) =>
    it.clock.run(it.it.createToken(who, createToken.parse(fields)));

  test('end when their time is over', async () => {
    const { secret = '' } = await create({ expiresInMs: 5000, scopes: ['jobs:read'] });
    expect(await it.clock.run(it.it.authenticate(secret))).toMatchObject({ scopes: ['jobs:read'] });
    await it.clock.advance(5000);
    expect(await it.clock.run(it.it.authenticate(secret))).toBeUndefined();
  });

  test('to join are no user’s', async () => {
    const { secret = '', scopes } = await create({ kind: 'join', scopes: ['jobs:read'] });
    expect(scopes).toEqual([]);
    expect(await it.clock.run(it.it.authenticate(secret))).toBeUndefined();
  });

  test('give nobody more than he has', async () => {
    const who = { ...it.admin, scopes: ['tokens:manage' as const, 'jobs:read' as const] };
    await expect(create({ scopes: ['jobs:read', 'fleet:manage'] }, who)).rejects.toMatchObject({
      code: 'PERMISSION_DENIED',
      message: 'your token lacks fleet:manage itself',
    });
  });

  test('of another tenant cannot be seen or revoked', async () => {
    const { id } = await create({});
    const scopes = it.admin.scopes.filter((scope) => scope !== 'tenants:manage');
    const stranger = { ...it.admin, tenant: 'other', scopes };
    await expect(it.clock.run(it.it.revokeToken(stranger, id))).rejects.toMatchObject({
      code: 'NOT_FOUND',
    });
    expect((await it.clock.run(it.it.listTokens(stranger, { limit: 9 }))).items).toEqual([]);
  });
});
