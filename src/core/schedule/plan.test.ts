/** What is placed where, in which order, and what is said of what is not. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { NOTHING, waiting, wanting, worker } from '../../../test/support/planning.ts';
import { DEFAULT_POLICY, plan as planWith, type Plan } from './plan.ts';
import { PlannerView, type PendingTask, type PlannerDeltas } from './view.ts';

function viewOf(deltas: Partial<PlannerDeltas>): PlannerView {
  const view = new PlannerView();
  view.update({ ...NOTHING, ...deltas });
  return view;
}

let uids = 0;
const plan = (view: PlannerView, nowMs = 1000): Plan =>
  planWith(view, nowMs, () => `ab${uids++}`, DEFAULT_POLICY);
/** `task>worker` of every placement. */
const placed = ({ placements }: Plan): string[] =>
  placements.map(({ tasks }) =>
    tasks.map(({ task, claim }) => `${task}>${claim.worker}`).join(' '),
  );

describe('a plan', () => {
  test('fills one worker, then the next, the oldest job first', () => {
    const two = wanting(2000);
    const view = viewOf({
      requests: [two],
      workers: [worker('w1'), worker('w2')],
      pending: [waiting(two, 'j2'), waiting(two, 'j1', 1), waiting(two, 'j1'), waiting(two, 'j3')],
    });
    const made = plan(view);
    expect(placed(made).map((each) => each.split('>')[0])).toEqual([
      'j1.0',
      'j1.1',
      'j2.0',
      'j3.0',
    ]);
    const [a, b, c, d] = placed(made).map((each) => each.split('>')[1]);
    expect([a === b, c === d, a === c]).toEqual([true, true, false]);
    const [first] = made.placements;
    expect(first).toMatchObject({ job: 'j1', round: 0, tasks: [{ version: 1 }] });
    expect(first?.tasks[0]?.claim).toMatchObject({
      owner: expect.stringMatching(/^j1\.0\.1\.ab/),
      cpuMillis: 2000,
      state: 'HELD',
    });
    expect(placed(plan(view))).toEqual([]);
  });

  test('a band goes before a lower one, however old that is', () => {
    const [low, high] = [wanting(3000, { band: 2 }), wanting(3000, { band: 0 })];
    const view = viewOf({
      requests: [low, high],
      workers: [worker('w1')],
      pending: [waiting(low, 'j1'), waiting(high, 'j9')],
    });
    const made = plan(view);
    expect(placed(made)).toEqual(['j9.0>w1']);
    expect(made.waiting).toEqual([
      {
        classKey: low.key,
        why: expect.objectContaining({
          sentence: 'no room on 1 worker: 1 with too few free CPUs',
        }),
      },
    ]);
  });

  test('a head that does not fit does not hold up others', () => {
    const [large, small] = [wanting(9000), wanting(1000)];
    const view = viewOf({
      requests: [large, small],
      workers: [worker('w1')],
      pending: [waiting(large, 'j1'), waiting(small, 'j2')],
    });
    expect(placed(plan(view))).toEqual(['j2.0>w1']);
  });

  test('only workers of the pool, and only those that take work', () => {
    const lab = wanting(1000, { pool: 'lab' });
    const view = viewOf({
      requests: [lab],
      workers: [
        worker('w1'),
        worker('w2', { pool: 'lab', open: false }),
        worker('w3', { pool: 'lab' }),
      ],
      pending: [waiting(lab, 'j1')],
    });
    expect(placed(plan(view))).toEqual(['j1.0>w3']);
  });

  test('the attempt after three tries is the fourth', () => {
    const one = wanting(1000);
    const view = viewOf({
      requests: [one],
      workers: [worker('w1')],
      pending: [waiting(one, 'j1', 0, { attempts: 3 })],
    });
    expect(plan(view).placements[0]?.tasks[0]?.claim.owner).toMatch(/^j1\.0\.4\./);
  });

  test('what backs off is placed when its time has come, which the plan tells', () => {
    const one = wanting(1000);
    const view = viewOf({
      requests: [one],
      workers: [worker('w1')],
      pending: [waiting(one, 'j1', 0, { notBeforeMs: 5000 })],
    });
    expect(plan(view, 4000)).toMatchObject({ placements: [], waiting: [], nextAtMs: 5000 });
    expect(placed(plan(view, 5000))).toEqual(['j1.0>w1']);
  });

  test('one plan stays short and says that there is more', () => {
    const none = wanting(0);
    const { placementsPerPlan } = DEFAULT_POLICY;
    const pending = Array.from({ length: placementsPerPlan + 5 }, (_, i) => waiting(none, 'j', i));
    const view = viewOf({ requests: [none], workers: [worker('w1')], pending });
    const first = plan(view);
    expect([first.placements.length, first.more]).toEqual([placementsPerPlan, true]);
    const second = plan(view);
    expect([second.placements.length, second.more]).toEqual([5, false]);
  });
});

describe('a gang', () => {
  const gang = wanting(3000, { gangSize: 2 });
  const members = [waiting(gang, 'j1', 0), waiting(gang, 'j1', 1)];

  test('is placed whole, over several workers of one network', () => {
    const view = viewOf({
      requests: [gang],
      pending: members,
      workers: [
        worker('w1', { network: 'a' }),
        worker('w2', { network: 'b' }),
        worker('w3', { network: 'b' }),
      ],
    });
    const [whole] = plan(view).placements;
    const used = whole?.tasks.map(({ claim }) => claim.worker);
    expect(used?.toSorted()).toEqual(['w2', 'w3']);
  });

  test('or not at all, and then holds nothing', () => {
    const view = viewOf({
      requests: [gang],
      pending: members,
      workers: [worker('w1', { network: 'a' }), worker('w2', { network: 'b' })],
    });
    const made = plan(view);
    expect(made.placements).toEqual([]);
    expect(made.waiting[0]?.why.sentence).toBe(
      'it needs room for 2 members on one network; the largest holds 1, ' +
        'even when nothing else runs',
    );
    expect([...view.fleet.workers()].map(({ capacity }) => capacity.cpuFree)).toEqual([4000, 4000]);
  });

  test('several members share a worker that has room', () => {
    const pair = wanting(2000, { gangSize: 2 });
    const view = viewOf({
      requests: [pair],
      pending: [waiting(pair, 'j1', 0), waiting(pair, 'j1', 1)],
      workers: [worker('w1')],
    });
    expect(placed(plan(view))).toEqual(['j1.0>w1 j1.1>w1']);
  });
});

describe('a class that did not fit', () => {
  const large = wanting(4000);

  test('is tried again only when something was freed', () => {
    const view = viewOf({
      requests: [large],
      workers: [worker('w1')],
      pending: [waiting(large, 'j1'), waiting(large, 'j2')],
    });
    const [first] = plan(view).placements;
    const claim = first!.tasks[0]!.claim;
    expect(plan(view)).toMatchObject({ placements: [], waiting: [] });
    view.update({ ...NOTHING, pending: [waiting(large, 'j3')] });
    expect(plan(view)).toMatchObject({ placements: [], waiting: [] });
    view.update({ ...NOTHING, claimsGone: [claim.owner] });
    expect(placed(plan(view))).toEqual(['j2.0>w1']);
  });

  test('is tried again when a worker comes or opens', () => {
    const closed = worker('w1', { open: false });
    const view = viewOf({ requests: [large], workers: [closed], pending: [waiting(large, 'j1')] });
    expect(plan(view).waiting[0]?.why.sentence).toBe(
      'the only worker is draining or out of contact',
    );
    view.update({ ...NOTHING, workers: [{ ...closed, open: true }] });
    expect(placed(plan(view))).toEqual(['j1.0>w1']);
  });

  test('what was planned but refused is planned again', () => {
    const view = viewOf({
      requests: [large],
      workers: [worker('w1')],
      pending: [waiting(large, 'j1')],
    });
    const task = plan(view).placements[0]!.tasks[0]!;
    // As the schedule loop tells it: the task still waits, there is no such claim.
    view.update({ ...NOTHING, pending: [waiting(large, 'j1')], claimsGone: [task.claim.owner] });
    expect(placed(plan(view))).toEqual(['j1.0>w1']);
  });
});

test('plans never overbook, keep gangs whole on one network, and leave nothing that fits', () => {
  const workers = fc.array(
    fc.record({ cpus: fc.integer({ min: 1, max: 6 }), network: fc.constantFrom('a', 'b') }),
    { maxLength: 5 },
  );
  const jobs = fc.array(
    fc.record({
      cpus: fc.integer({ min: 1, max: 4 }),
      gangSize: fc.constantFrom(1, 1, 2, 3),
      band: fc.nat(2),
    }),
    { maxLength: 12 },
  );
  fc.assert(
    fc.property(workers, jobs, (machines, wanted) => {
      const requests = new Map(
        wanted.map(({ cpus, gangSize, band }) => {
          const request = wanting(cpus * 1000, { gangSize, band });
          return [request.key, request];
        }),
      );
      const pending = wanted.flatMap(({ cpus, gangSize, band }, at) => {
        const request = wanting(cpus * 1000, { gangSize, band });
        return Array.from({ length: gangSize }, (_, i) => waiting(request, `j${10 + at}`, i));
      });
      const view = viewOf({
        requests: [...requests.values()],
        pending,
        workers: machines.map(({ cpus, network }, at) =>
          worker(`w${at}`, {
            network,
            resources: { ...worker('').resources, cpuMillis: cpus * 1000 },
          }),
        ),
      });
      const made = plan(view);
      checkPlan(view, made, pending);
    }),
    { numRuns: 300 },
  );
});

function checkPlan(view: PlannerView, made: Plan, pending: PendingTask[]): void {
  const used = new Map<string, number>();
  for (const { job, tasks } of made.placements) {
    const request = view.classes.get(pending.find((task) => task.job === job)!.classKey).request;
    expect(tasks).toHaveLength(request.gangSize);
    const networks = tasks.map(({ claim }) => view.fleet.worker(claim.worker)!.info.network);
    expect(new Set(networks).size).toBe(1);
    for (const { claim } of tasks) {
      used.set(claim.worker, (used.get(claim.worker) ?? 0) + claim.cpuMillis);
    }
  }
  for (const { info, capacity } of view.fleet.workers()) {
    expect(capacity.cpuFree).toBe(info.resources.cpuMillis - (used.get(info.id) ?? 0));
    expect(capacity.cpuFree).toBeGreaterThanOrEqual(0);
  }
  // Whoever still waits is a class that was told why, and a single one of it fits nowhere.
  const told = new Set(made.waiting.map(({ classKey }) => classKey));
  for (const { request, queue } of view.classes.values()) {
    expect(queue.peek() !== null).toBe(told.has(request.key));
    if (!queue.peek() || request.gangSize > 1) continue;
    const fits = [...view.fleet.workers()].some(
      ({ capacity }) => capacity.fit(request.resources).fits,
    );
    expect(fits).toBe(false);
  }
}
