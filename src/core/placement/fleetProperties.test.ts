/** Random fleets and work: the fleet answers as one that looks at every worker each time. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { AttemptUid, WorkerId } from '../../model/ids.ts';
import type { Claim } from '../../model/claim.ts';
import { ARRANGEMENTS, type Constraint } from '../../model/placement.ts';
import type { Device } from '../../model/resources.ts';
import { Capacity, claimOf } from './capacity.ts';
import { preference, satisfies, unsuitable } from './constraints.ts';
import { Fleet, type Rejection } from './fleet.ts';
import type { PlacementRequest, PlannerWorker } from './request.ts';
import { gpus, testRequest, testWorker, wants, GIB } from './testFleet.ts';

interface Held {
  claim: Claim;
  request: PlacementRequest;
}

/** The rules written down once more, without any memory: what the fleet must agree with. */
class Naive {
  readonly workers = new Map<WorkerId, PlannerWorker>();
  readonly held = new Map<AttemptUid, Held>();

  capacity(worker: PlannerWorker): Capacity {
    const capacity = new Capacity(worker.resources);
    for (const { claim } of this.on(worker)) capacity.take(claim);
    return capacity;
  }

  on({ id }: PlannerWorker): Held[] {
    return [...this.held.values()].filter(({ claim }) => claim.worker === id);
  }

  rejection(worker: PlannerWorker, request: PlacementRequest): Rejection | null {
    const early = unsuitable(worker, request);
    if (early) return early;
    const { antiAffinity, exclusive } = request.placement;
    const held = this.on(worker);
    const near = held.some(
      (each) =>
        antiAffinity !== '' &&
        each.request.placement.antiAffinity === antiAffinity &&
        each.request.tenant === request.tenant,
    );
    if (near) return 'anti-affinity';
    const alone = held.some((each) => each.request.placement.exclusive);
    if (alone || (exclusive && held.length > 0)) return 'exclusive';
    const fit = this.capacity(worker).fit(request.resources);
    return fit.fits ? null : fit.short;
  }

  fitting(request: PlacementRequest): PlannerWorker[] {
    return [...this.workers.values()].filter((worker) => !this.rejection(worker, request));
  }
}

const device = fc.option(
  fc
    .record({
      count: fc.integer({ min: 1, max: 3 }),
      share: fc.constantFrom(1000, 1000, 700, 500, 250),
      models: fc.constantFrom<string[]>([], [], ['h100'], ['L4', 'T4']),
    })
    .map(({ count, share, models }) => ({ count: share < 1000 ? 1 : count, share, models })),
);

const constraint: fc.Arbitrary<Constraint> = fc.record({
  attribute: fc.constantFrom('zone', 'rack', 'name', 'network'),
  operator: fc.constantFrom('EQ', 'NE', 'IN', 'EXISTS', 'GT', 'LT'),
  values: fc.constantFrom(['a'], ['2'], ['w1'], ['lan']),
  preferred: fc.boolean(),
});

const requests: fc.Arbitrary<PlacementRequest> = fc
  .record({
    tenant: fc.constantFrom('lab', 'x'),
    pool: fc.constantFrom('', '', '', 'p'),
    cpuMillis: fc.constantFrom(500, 1000, 3000),
    memoryBytes: fc.constantFrom(0, GIB, 5 * GIB),
    ports: fc.constantFrom(0, 0, 1, 2),
    device,
    constraints: fc.oneof(
      { weight: 3, arbitrary: fc.constant<Constraint[]>([]) },
      { weight: 1, arbitrary: fc.array(constraint, { maxLength: 2 }) },
    ),
    arrangement: fc.constantFrom(...ARRANGEMENTS),
    exclusive: fc.constantFrom(false, false, false, true),
    antiAffinity: fc.constantFrom('', '', '', 'db'),
    locality: fc.constantFrom('', 'rack'),
    interruptible: fc.boolean(),
    trust: fc.constantFrom('normal', 'restricted'),
    gangSize: fc.constantFrom(1, 1, 1, 2, 3),
  })
  .map(({ tenant, pool, cpuMillis, memoryBytes, ports, device: asked, gangSize, ...placement }) =>
    testRequest(placement, {
      tenant,
      pool,
      gangSize,
      resources: wants({ cpuMillis, memoryBytes, ports }, asked),
    }),
  );

const workers: fc.Arbitrary<PlannerWorker> = fc
  .record({
    id: fc.constantFrom('w1', 'w2', 'w3', 'w4', 'w5', 'w6'),
    pool: fc.constantFrom('p', 'q'),
    network: fc.constantFrom('lan', 'lan', 'wan'),
    attributes: fc.constantFrom<Record<string, string>>(
      {},
      { zone: 'a' },
      { rack: '1' },
      { rack: '3', zone: 'b' },
    ),
    open: fc.constantFrom(true, true, true, false),
    terms: fc.record({
      tenants: fc.constantFrom<string[]>([], [], ['x']),
      users: fc.constantFrom<string[]>([], [], ['x/u']),
      interruptibleOnly: fc.constantFrom(false, false, true),
      marketplace: fc.boolean(),
    }),
    cpuHourMicros: fc.constantFrom(0, 0, 7),
    cpuMillis: fc.constantFrom(2000, 8000),
    devices: fc.constantFrom<Device[]>([], gpus(1), gpus(4), gpus(2, 'L4'), [
      ...gpus(1, 'T4'),
      ...gpus(3).slice(1),
    ]),
  })
  .map(({ id, cpuMillis, devices, ...more }) =>
    testWorker(id, more, { cpuMillis, devices, portRange: [100, 103] }),
  );

type Move =
  | { kind: 'worker'; worker: PlannerWorker }
  | { kind: 'remove'; id: WorkerId }
  | { kind: 'place'; request: PlacementRequest; times: number }
  | { kind: 'give'; at: number };

const moves: fc.Arbitrary<Move[]> = fc.array(
  fc.oneof(
    { weight: 3, arbitrary: fc.record({ kind: fc.constant('worker' as const), worker: workers }) },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant('remove' as const),
        id: fc.constantFrom('w1' as WorkerId, 'w2' as WorkerId),
      }),
    },
    {
      weight: 9,
      arbitrary: fc.record({
        kind: fc.constant('place' as const),
        request: requests,
        times: fc.integer({ min: 1, max: 12 }),
      }),
    },
    { weight: 4, arbitrary: fc.record({ kind: fc.constant('give' as const), at: fc.nat(30) }) },
  ),
  { maxLength: 60 },
);

test('the fleet finds a spot where and only where one is, and never overbooks', () => {
  fc.assert(
    fc.property(moves, (script) => {
      const fleet = new Fleet();
      const naive = new Naive();
      let owners = 0;
      const book = (claim: Claim, request: PlacementRequest): void => {
        const worker = naive.workers.get(claim.worker)!;
        expect(naive.capacity(worker).admits(claim)).toBe(true);
        naive.held.set(claim.owner, { claim, request });
        fleet.take(claim, request);
      };
      for (const move of script) {
        if (move.kind === 'worker') {
          naive.workers.set(move.worker.id, move.worker);
          fleet.setWorker(move.worker);
        } else if (move.kind === 'remove') {
          naive.workers.delete(move.id);
          fleet.removeWorker(move.id);
        } else if (move.kind === 'give') {
          const owner = [...naive.held.keys()][move.at];
          if (owner) naive.held.delete(owner);
          if (owner) fleet.give(owner);
        } else {
          const { request } = move;
          for (let time = 0; time < move.times; time++) {
            const spots = ask(fleet, naive, request);
            for (const spot of spots ?? []) {
              const owner = `a${owners++}` as AttemptUid;
              book(claimOf(owner, spot.worker, request.resources, spot), request);
            }
          }
        }
      }
      comparePictures(fleet, naive);
    }),
    { numRuns: 300 },
  );
});

function ask(fleet: Fleet, naive: Naive, request: PlacementRequest) {
  expect(fleet.rejections(request)).toEqual(rejectionsOf(naive, request));
  if (request.gangSize > 1) {
    const spots = fleet.placeGang(request, request.gangSize);
    expect(spots !== null).toBe(gangFits(naive, request));
    if (spots) checkGang(naive, request, spots);
    return spots;
  }
  const spot = fleet.place(request);
  const fitting = naive.fitting(request);
  expect(spot !== null).toBe(fitting.length > 0);
  if (!spot) return null;
  const chosen = naive.workers.get(spot.worker)!;
  expect(fitting).toContain(chosen);
  const most = Math.max(...fitting.map((worker) => preference(worker, request)));
  expect(preference(chosen, request)).toBe(most);
  return [spot];
}

function rejectionsOf(naive: Naive, request: PlacementRequest): Map<Rejection, number> {
  const counts = new Map<Rejection, number>();
  for (const worker of naive.workers.values()) {
    const why = naive.rejection(worker, request) ?? (request.gangSize > 1 ? 'gang' : null);
    if (why) counts.set(why, (counts.get(why) ?? 0) + 1);
  }
  return counts;
}

/** Fills each group of workers that may go together, one member after the other. */
function gangFits(naive: Naive, request: PlacementRequest): boolean {
  const groups = new Map<string, number>();
  const { locality, exclusive, antiAffinity } = request.placement;
  const apart = exclusive || antiAffinity !== '';
  for (const worker of naive.fitting(request)) {
    const value = locality === '' ? '' : worker.attributes[locality];
    if (value === undefined) continue;
    const capacity = naive.capacity(worker);
    let room = 0;
    for (let fit = capacity.fit(request.resources); fit.fits;) {
      capacity.take(claimOf(`${room}` as AttemptUid, worker.id, request.resources, fit));
      room++;
      fit = capacity.fit(request.resources);
    }
    const key = `${worker.network}|${value}`;
    groups.set(key, (groups.get(key) ?? 0) + (apart ? 1 : room));
  }
  return [...groups.values()].some((room) => room >= request.gangSize);
}

function checkGang(
  naive: Naive,
  { gangSize, placement }: PlacementRequest,
  spots: { worker: WorkerId }[],
): void {
  expect(spots).toHaveLength(gangSize);
  const on = spots.map(({ worker }) => naive.workers.get(worker)!);
  expect(new Set(on.map(({ network }) => network)).size).toBe(1);
  const { locality, exclusive, antiAffinity } = placement;
  if (locality !== '') {
    const same = { attribute: locality, operator: 'EXISTS', values: [], preferred: false } as const;
    expect(new Set(on.map(({ attributes }) => attributes[locality])).size).toBe(1);
    expect(on.every((worker) => satisfies(worker, { ...same, values: [] }))).toBe(true);
  }
  if (exclusive || antiAffinity !== '') expect(new Set(on).size).toBe(gangSize);
}

function comparePictures(fleet: Fleet, naive: Naive): void {
  expect(fleet.size).toBe(naive.workers.size);
  for (const worker of naive.workers.values()) {
    const mine = fleet.worker(worker.id)!;
    const anew = naive.capacity(worker);
    expect(mine.claims.size).toBe(naive.on(worker).length);
    expect(mine.capacity).toMatchObject({
      cpuFree: anew.cpuFree,
      memoryFree: anew.memoryFree,
      deviceFree: anew.deviceFree,
      portsTaken: anew.portsTaken,
      portsFree: anew.portsFree,
    });
  }
}
