/** Whose turn it is: bands, age, shares, limits that put one last. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  account,
  gpus,
  heldGpus,
  NOTHING,
  placed,
  planOf,
  viewOf,
  waiting,
  wantingGpus,
  worker,
} from '../../../test/support/planning.ts';
import { Heap } from './heap.ts';

const DAY_MS = 24 * 3_600_000;
/** The job of each placement, in order. */
const jobs = (...[view, nowMs, policy]: Parameters<typeof planOf>): string[] =>
  planOf(view, nowMs, policy).placements.map(({ job }) => job);

describe('shares', () => {
  const of = (tenant: string, user = 'u') => wantingGpus(1, { tenant, user });

  test('tenants with equal weights take turns, whoever came first', () => {
    const [a, b] = [of('a'), of('b')];
    const view = viewOf({
      requests: [a, b],
      workers: [gpus('w1', 4)],
      pending: [
        ...[0, 1, 2, 3].map((index) => waiting(a, 'j1', index)),
        ...[0, 1, 2, 3].map((index) => waiting(b, 'j2', index)),
      ],
    });
    expect(jobs(view)).toEqual(['j1', 'j2', 'j1', 'j2']);
  });

  test('twice the weight, twice the share', () => {
    const [a, b] = [of('a'), of('b')];
    const view = viewOf({
      requests: [a, b],
      workers: [gpus('w1', 6)],
      accounts: [account('b', { weight: 2 })],
      pending: [a, b].flatMap((each, at) =>
        [0, 1, 2, 3, 4, 5].map((index) => waiting(each, `j${at}`, index)),
      ),
    });
    const made = jobs(view);
    expect(made.filter((job) => job === 'j1')).toHaveLength(4);
  });

  test('who holds more waits, and what is freed goes to the other', () => {
    const [a, b] = [of('a'), of('b')];
    const view = viewOf({
      requests: [a, b],
      workers: [gpus('w1', 4)],
      claims: [heldGpus(a, 'j0', 'w1', 0), heldGpus(a, 'j1', 'w1', 1)],
      pending: [waiting(a, 'j2'), waiting(b, 'j3', 0), waiting(b, 'j3', 1)],
    });
    expect(jobs(view)).toEqual(['j3', 'j3']);
  });

  test('the users of a tenant share what is the tenant’s', () => {
    const [ann, bob, carl] = [of('a', 'ann'), of('a', 'bob'), of('b', 'carl')];
    const view = viewOf({
      requests: [ann, bob, carl],
      workers: [gpus('w1', 4)],
      pending: [ann, bob, carl].flatMap((each, at) =>
        [0, 1, 2, 3].map((index) => waiting(each, `j${at}`, index)),
      ),
    });
    expect(jobs(view)).toEqual(['j0', 'j2', 'j1', 'j2']);
  });

  test('the dominant resource counts, not the first', () => {
    const [gpu, cpu] = [of('a'), { ...wantingGpus(1, { tenant: 'b' }), key: 'cpu' }];
    cpu.resources = { cpuMillis: 3000, memoryBytes: 0, device: null, ports: 0 };
    const view = viewOf({
      requests: [gpu, cpu],
      // A device is a tenth of all, three cores are three tenths.
      workers: [gpus('w1', 10)],
      pending: [gpu, cpu].flatMap((each, at) =>
        [0, 1, 2, 3, 4].map((index) => waiting(each, `j${at}`, index)),
      ),
    });
    expect(jobs(view).slice(0, 5)).toEqual(['j0', 'j1', 'j0', 'j0', 'j0']);
  });

  test('past use counts, and is forgotten by half-lives', () => {
    const [a, b] = [of('a'), of('b')];
    // As much as one device all the time, of late.
    const usage = { cpuMillis: 0, memoryMiB: 0, deviceMillis: 1000 * 14 * DAY_MS, asOfMs: 0 };
    const view = () =>
      viewOf({
        requests: [a, b],
        workers: [gpus('w1', 3)],
        accounts: [account('a', { usage })],
        pending: [a, b].flatMap((each, at) =>
          [0, 1, 2].map((index) => waiting(each, `j${at}`, index)),
        ),
      });
    const never = { ageingMs: Number.POSITIVE_INFINITY };
    expect(jobs(view(), 0, never)).toEqual(['j1', 'j1', 'j0']);
    expect(jobs(view(), 70 * DAY_MS, never)).toEqual(['j1', 'j0', 'j1']);
  });
});

describe('what has waited too long', () => {
  test('goes before shares, the oldest first, within its band only', () => {
    const high = wantingGpus(1, { tenant: 'a', band: 1 });
    const [old, older, young] = ['b', 'c', 'd'].map((tenant) => wantingGpus(1, { tenant }));
    const view = viewOf({
      requests: [high, old!, older!, young!],
      workers: [gpus('w1', 4)],
      claims: [heldGpus(older!, 'j0', 'w1', 0)],
      pending: [
        waiting(young!, 'j1', 0, { sinceMs: 5 * DAY_MS }),
        waiting(old!, 'j2', 0, { sinceMs: 3 * DAY_MS }),
        waiting(older!, 'j3', 0, { sinceMs: 2 * DAY_MS }),
        waiting(high, 'j4', 0, { sinceMs: 5 * DAY_MS }),
      ],
    });
    expect(jobs(view, 5 * DAY_MS)).toEqual(['j4', 'j3', 'j2']);
  });

  test('a class whose next job is young takes its turn by share', () => {
    const [a, b] = ['a', 'b'].map((tenant) => wantingGpus(1, { tenant }));
    const view = viewOf({
      requests: [a!, b!],
      workers: [gpus('w1', 2)],
      pending: [
        waiting(a!, 'j1', 0, { sinceMs: 0 }),
        waiting(a!, 'j2', 0, { sinceMs: 5 * DAY_MS }),
        waiting(b!, 'j3', 0, { sinceMs: 5 * DAY_MS }),
      ],
    });
    expect(jobs(view, 5 * DAY_MS)).toEqual(['j1', 'j3']);
  });
});

test('an array has no more tasks at once than its limit, and others of its class go on', () => {
  const limited = wantingGpus(1, { arrayLimit: 2, key: 'limited' });
  const view = viewOf({
    requests: [limited],
    workers: [gpus('w1', 8)],
    pending: ['j1', 'j2'].flatMap((job) =>
      [0, 1, 2, 3].map((index) => waiting(limited, job, index)),
    ),
  });
  const made = planOf(view);
  expect(placed(made).map((each) => each.slice(0, 4))).toEqual(['j1.0', 'j1.1', 'j2.0', 'j2.1']);
  expect(made.waiting).toMatchObject([
    {
      classKey: 'limited',
      why: { code: 'ARRAY_LIMIT', sentence: '2 tasks of the array run, as many as may at once' },
    },
  ]);
  expect(placed(planOf(view))).toEqual([]);
  const owner = made.placements[3]!.tasks[0]!.claim.owner;
  view.update({ ...NOTHING, claimsGone: [owner] });
  expect(placed(planOf(view))).toEqual(['j2.2>w1']);
});

test('a band goes first even where it has the larger share', () => {
  const [high, low] = [wantingGpus(1, { tenant: 'a', band: 0 }), wantingGpus(1, { tenant: 'b' })];
  const view = viewOf({
    requests: [high, low],
    workers: [gpus('w1', 3), worker('w2')],
    claims: [heldGpus(high, 'j0', 'w1', 0)],
    pending: [waiting(low, 'j1'), waiting(high, 'j2'), waiting(high, 'j3')],
  });
  expect(jobs(view)).toEqual(['j2', 'j3']);
});

test('a heap gives what a sort would, also when the top changes its rank', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(50)), fc.array(fc.nat(50)), (first, ranks) => {
      const heap = new Heap<{ rank: number }>((a, b) => a.rank < b.rank);
      for (const rank of first) heap.push({ rank });
      for (const rank of ranks) {
        const top = heap.top();
        if (!top || rank < top.rank) continue;
        top.rank = rank;
        heap.settleTop();
      }
      const all = heap.items().map(({ rank }) => rank);
      const out: number[] = [];
      for (let top = heap.pop(); top; top = heap.pop()) out.push(top.rank);
      expect(out).toEqual(all.toSorted((a, b) => a - b));
    }),
  );
});
