/** What must hold of any plan, in clusters where things end, are refused and are interrupted. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { account, gpus, wantingGpus } from '../../../test/support/planning.ts';
import { PlannerWorld } from '../../../test/support/plannerWorld.ts';
import { seededRandom } from '../../lib/random.ts';
import type { TaskId } from '../../model/ids.ts';
import { PLAIN_PLACEMENT } from '../../model/placement.ts';
import type { PlacementRequest, PlannerWorker } from '../placement/request.ts';
import type { Plan } from './plan.ts';
import { mayInterrupt } from './victims.ts';

const MIN_MS = 60_000;

const aWorker = fc.record({ count: fc.integer({ min: 1, max: 4 }), network: fc.nat(1) });
const aJob = fc.record({
  count: fc.integer({ min: 1, max: 4 }),
  gangSize: fc.constantFrom(1, 1, 1, 2, 3),
  tasks: fc.integer({ min: 1, max: 3 }),
  band: fc.nat(2),
  tenant: fc.constantFrom('a', 'b', 'c'),
  spot: fc.boolean(),
  exclusive: fc.constantFrom(false, false, false, true),
  limit: fc.nat(2),
  minutes: fc.integer({ min: 1, max: 20 }),
  timed: fc.boolean(),
  passMinutes: fc.nat(4),
});
type AnyJob = typeof aJob extends fc.Arbitrary<infer Job> ? Job : never;

function requestOf(job: AnyJob, timed = job.timed): PlacementRequest {
  const { count, gangSize, band, tenant, spot, exclusive, limit, minutes } = job;
  const timeLimitMs = timed ? minutes * MIN_MS : 0;
  const arrayLimit = gangSize === 1 ? limit : 0;
  const placement = { ...PLAIN_PLACEMENT, interruptible: spot, exclusive };
  const key = JSON.stringify([
    tenant,
    band,
    gangSize,
    count,
    spot,
    exclusive,
    arrayLimit,
    timeLimitMs,
  ]);
  const more = { key, tenant, band, gangSize, arrayLimit, placement, timeLimitMs };
  return wantingGpus(count, { ...more, graceMs: MIN_MS });
}

function workersOf(machines: { count: number; network: number }[]): PlannerWorker[] {
  return machines.map(({ count, network }, at) =>
    gpus(`w${at}`, count, { network: `n${network}` }),
  );
}

/** Submits each job, lets its time pass, and then waits for all to end. */
function play(world: PlannerWorld, jobs: AnyJob[], timed?: boolean): void {
  for (const job of jobs) {
    const request = requestOf(job, timed);
    const tasks = job.gangSize > 1 ? job.gangSize : job.tasks;
    world.submit(request, tasks, job.minutes * MIN_MS);
    world.step(job.passMinutes * MIN_MS);
  }
}

describe('in any history', () => {
  test('nothing is held twice, gangs start whole, limits hold, victims are lower', () => {
    fc.assert(
      fc.property(
        fc.array(aWorker, { minLength: 1, maxLength: 4 }),
        fc.array(aJob, { maxLength: 14 }),
        fc.option(fc.integer({ min: 0, max: 5 })),
        fc.nat(),
        (machines, jobs, quota, seed) => {
          const random = seededRandom(seed);
          const limit = quota === null ? null : quota * 1000;
          const world = new PlannerWorld({
            workers: workersOf(machines),
            accounts: [account('a', { deviceMillis: limit })],
            refuses: () => random.next() < 0.15,
          });
          world.onPlan = (made) => checkPlan(world, made);
          play(world, jobs);
          checkWorld(world, limit);
          for (let minute = 0; minute < 30; minute++) {
            world.step(MIN_MS);
            checkWorld(world, limit);
          }
        },
      ),
      { numRuns: 300 },
    );
  });

  test('what could ever run does, when nothing more comes', () => {
    fc.assert(
      fc.property(
        fc.array(aWorker, { minLength: 1, maxLength: 4 }),
        fc.array(aJob, { maxLength: 10 }),
        fc.nat(),
        (machines, jobs, seed) => {
          const random = seededRandom(seed);
          const workers = workersOf(machines);
          const refuses = () => random.next() < 0.1;
          const world = new PlannerWorld({ workers, refuses });
          play(world, jobs);
          for (let hour = 0; hour < 200 && world.tasks.size > 0; hour++) world.step(15 * MIN_MS);
          for (const { request, pending } of world.tasks.values()) {
            expect([pending.task, couldRun(workers, request)]).toEqual([pending.task, false]);
          }
        },
      ),
      { numRuns: 200 },
    );
  });
});

test('a higher band never waits for what a lower one was given in the same plan', () => {
  fc.assert(
    fc.property(
      fc.array(aWorker, { minLength: 1, maxLength: 4 }),
      fc.array(aJob, { maxLength: 14 }),
      (machines, jobs) => {
        const single = { gangSize: 1 as const, limit: 0, exclusive: false };
        const singles = jobs.map((job) => ({ ...job, ...single }));
        const policy = { ageingMs: Number.POSITIVE_INFINITY };
        const world = new PlannerWorld({ workers: workersOf(machines), policy });
        world.onPlan = (made) => checkBands(world, made);
        play(world, singles, false);
      },
    ),
    { numRuns: 200 },
  );
});

test('what is kept for one is never late because of another', () => {
  fc.assert(
    fc.property(
      fc.array(aWorker, { minLength: 1, maxLength: 3 }),
      fc.array(aJob, { minLength: 5, maxLength: 20 }),
      (machines, jobs) => {
        // Everything ends by its limit, nobody is of a higher band, and an older job of the class
        // that may go on again does not go first.
        const equal = jobs.map((job) => ({ ...job, band: 2, spot: false, limit: 0 }));
        const world = new PlannerWorld({ workers: workersOf(machines) });
        const promised = new Map<TaskId, number>();
        world.onPlan = () => {
          for (const { of, atMs } of world.view.reservations.values()) {
            const task = of.queue.peek()?.[0]?.task;
            if (!task || atMs === null) continue;
            expect(atMs).toBeLessThanOrEqual(promised.get(task) ?? Number.POSITIVE_INFINITY);
            promised.set(task, Math.min(atMs, promised.get(task) ?? Number.POSITIVE_INFINITY));
          }
        };
        play(world, equal, true);
        for (let minute = 0; minute < 120; minute++) {
          world.step(MIN_MS);
          for (const [task, atMs] of promised) {
            if (world.isWaiting(task)) expect(world.nowMs).toBeLessThanOrEqual(atMs);
          }
        }
      },
    ),
    { numRuns: 200 },
  );
});

describe('a task that needs a whole worker, among many that do not', () => {
  /** Minutes until it starts, while more small ones come than there is room for. */
  function waited(seed: number, ageingMs: number, timed: boolean): number | null {
    const random = seededRandom(seed);
    const workers = [gpus('w0', 4), gpus('w1', 4), gpus('w2', 4)];
    const world = new PlannerWorld({ workers, policy: { ageingMs } });
    const small = (minutes: number) =>
      wantingGpus(1, {
        key: `small${timed ? minutes : ''}`,
        tenant: 'many',
        timeLimitMs: timed ? minutes * MIN_MS : 0,
      });
    const arrive = (): void => {
      for (let at = 0; at < 4; at++) {
        const minutes = 5 + Math.floor(random.next() * 10);
        world.submit(small(minutes), 1, minutes * MIN_MS);
      }
    };
    for (let minute = 0; minute < 30; minute++, world.step(MIN_MS)) arrive();
    const [whole] = world.submit(wantingGpus(4, { tenant: 'one' }), 1, MIN_MS);
    for (let minute = 0; minute < 400; minute++, world.step(MIN_MS)) {
      if (!world.isWaiting(whole as TaskId)) return minute;
      arrive();
    }
    return null;
  }

  test('starts soon where time limits tell when there will be room', () => {
    for (let seed = 1; seed <= 20; seed++) {
      expect(waited(seed, Number.POSITIVE_INFINITY, true)).toBeLessThanOrEqual(30);
    }
  });

  test('starts after it has aged where they do not', () => {
    for (let seed = 1; seed <= 20; seed++) {
      expect(waited(seed, 60 * MIN_MS, false)).toBeLessThanOrEqual(200);
    }
    // Without ageing it would not have, so this test can fail.
    expect(waited(1, Number.POSITIVE_INFINITY, false)).toBeNull();
  });
});

function checkPlan(world: PlannerWorld, made: Plan): void {
  for (const { tasks } of [...made.placements, ...made.preemptions]) {
    const { request } = world.tasks.get(tasks[0]!.task)!;
    expect(tasks).toHaveLength(request.gangSize);
    const networks = tasks.map(({ claim }) => world.view.fleet.worker(claim.worker)!.info.network);
    expect(new Set(networks).size).toBe(1);
  }
  for (const { tasks, victims } of made.preemptions) {
    const { request } = world.tasks.get(tasks[0]!.task)!;
    const jobs = new Map<string, number>();
    for (const { uid } of victims) {
      const { of, job } = world.view.claims.get(uid)!;
      expect(mayInterrupt(request, of.request)).toBe(true);
      if (of.request.gangSize > 1) jobs.set(job, (jobs.get(job) ?? 0) + 1);
    }
    // Whole gangs, as far as they still run.
    for (const [job, count] of jobs) {
      const held = [...world.claims.values()].filter(
        (each) => each.held.job === job && each.held.claim.state === 'HELD',
      );
      expect(count).toBe(held.length);
    }
  }
  // When all that leaves has left, all that has a place in prospect fits.
  for (const { info, capacity, claims } of world.view.fleet.workers()) {
    let cpuFree = capacity.cpuFree;
    const devices = [...capacity.deviceFree];
    for (const { owner } of claims.values()) {
      const booked = world.view.claims.get(owner);
      if (booked && booked.claim.state !== 'RELEASING') continue;
      const { claim } = booked ?? { claim: claims.get(owner)! };
      cpuFree += claim.cpuMillis;
      for (const index of claim.devices) devices[index]! += claim.share;
    }
    expect([info.id, Math.min(cpuFree, ...devices) >= 0]).toEqual([info.id, true]);
  }
}

function checkWorld(world: PlannerWorld, limit: number | null): void {
  for (const worker of world.workers) {
    const free = world.freeOf(worker);
    expect(Math.min(free.cpuFree, free.memoryFree, ...free.deviceFree)).toBeGreaterThanOrEqual(0);
  }
  const perJob = new Map<string, number>();
  let millis = 0;
  for (const { held } of world.claims.values()) {
    perJob.set(held.job, (perJob.get(held.job) ?? 0) + 1);
    const { request } = world.tasks.get(
      held.claim.owner.split('.').slice(0, 2).join('.') as TaskId,
    )!;
    if (request.tenant === 'a') millis += held.claim.devices.length * held.claim.share;
    if (request.arrayLimit > 0)
      expect(perJob.get(held.job)).toBeLessThanOrEqual(request.arrayLimit);
    if (!request.placement.exclusive || held.claim.state === 'NOMINATED') continue;
    const beside = [...world.claims.values()].filter(
      (each) =>
        each.held.claim.worker === held.claim.worker && each.held.claim.state !== 'NOMINATED',
    );
    expect(beside).toHaveLength(1);
  }
  if (limit !== null) expect(millis).toBeLessThanOrEqual(limit);
}

/** Puts each placement of a lower band back and looks whether a higher one that waits would fit. */
function checkBands(world: PlannerWorld, made: Plan): void {
  const { view } = world;
  for (const { tasks } of made.placements) {
    const { claim } = tasks[0]!;
    // What had a place in prospect is not overtaken.
    if (world.claims.has(claim.owner)) continue;
    const { of } = view.claims.get(claim.owner)!;
    const { capacity } = view.fleet.worker(claim.worker)!;
    for (const waits of view.classes.values()) {
      if (waits.request.band >= of.request.band || !waits.queue.peek()) continue;
      capacity.give(claim);
      expect(capacity.fit(waits.request.resources).fits).toBe(false);
      capacity.take(claim);
    }
  }
}

/** On an empty cluster. */
function couldRun(workers: PlannerWorker[], request: PlacementRequest): boolean {
  const world = new PlannerWorld({ workers });
  const count = request.gangSize;
  const [task] = world.submit(request, count, MIN_MS);
  world.step(MIN_MS);
  return !world.isWaiting(task as TaskId);
}
