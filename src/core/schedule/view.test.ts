/** The planner's copy: after any deltas it is what a copy made from scratch would be. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { held, NOTHING, waiting, wanting, worker } from '../../../test/support/planning.ts';
import type { Claim } from '../../model/claim.ts';
import type { AttemptUid, TaskId, WorkerId } from '../../model/ids.ts';
import type { PlannerWorker } from '../placement/request.ts';
import type { PendingClass } from './classes.ts';
import { PlannerView, type PendingTask, type PlannerDeltas } from './view.ts';

/** Of the claims here. */
const OWN = wanting(1, { key: '' });

const claim = (owner: string, on: string, cpuMillis: number): Claim => ({
  owner: owner as AttemptUid,
  worker: on as WorkerId,
  cpuMillis,
  memoryBytes: 1,
  devices: [],
  share: 1000,
  ports: [cpuMillis],
  state: 'HELD',
});

/** Everything a plan depends on. Takes the queues apart. */
function picture(view: PlannerView) {
  const waits = [...view.classes.values()].filter(({ waiting }) => waiting > 0);
  const queues = waits.toSorted(byKey).map(({ request: { key }, queue, waiting }) => {
    queue.mature(Number.MAX_SAFE_INTEGER);
    const order: unknown[] = [];
    for (let head = queue.peek(); head; head = queue.peek()) {
      order.push(head);
      queue.skip();
    }
    return [key, waiting, queue.size, order];
  });
  return {
    queues,
    pending: view.pendingCount(),
    held: view.accounts.owner('t', 'u').user.held,
    heldByAll: view.accounts.owner('t', 'u').tenant.held,
    nominated: [...view.nominations.values()].flatMap(({ claims }) => [...claims.keys()]),
    claims: [...view.claims.keys()].toSorted(),
    workers: [...view.fleet.workers()].map(({ info, capacity }) => ({
      info,
      cpuFree: capacity.cpuFree,
      memoryFree: capacity.memoryFree,
      ports: [...capacity.portsTaken].toSorted((a, b) => a - b),
    })),
  };
}

function byKey(a: PendingClass, b: PendingClass): number {
  return a.request.key < b.request.key ? -1 : 1;
}

describe('the copy', () => {
  test('books a claim once, however often it hears of it', () => {
    const view = new PlannerView();
    view.update({
      ...NOTHING,
      requests: [OWN],
      workers: [worker('w1')],
      claims: [held(claim('a', 'w1', 1000))],
    });
    view.update({ ...NOTHING, claims: [held({ ...claim('a', 'w1', 1000), state: 'RELEASING' })] });
    view.book(held(claim('a', 'w1', 1000)));
    expect(picture(view).workers[0]?.cpuFree).toBe(3000);
    view.update({ ...NOTHING, claimsGone: ['a' as AttemptUid, 'a' as AttemptUid] });
    expect(picture(view).workers[0]?.cpuFree).toBe(4000);
  });

  test('a worker that comes back with other resources keeps what is held on it', () => {
    const view = new PlannerView();
    const small = { ...worker('w1').resources, cpuMillis: 1500 };
    view.update({
      ...NOTHING,
      requests: [OWN],
      workers: [worker('w1')],
      claims: [held(claim('a', 'w1', 1000))],
    });
    view.update({ ...NOTHING, workers: [worker('w1', { resources: small })] });
    expect(picture(view).workers[0]?.cpuFree).toBe(500);
  });

  test('a claim may be heard of after its worker has gone', () => {
    const view = new PlannerView();
    view.update({
      ...NOTHING,
      requests: [OWN],
      workers: [worker('w1')],
      claims: [held(claim('a', 'w1', 1000))],
    });
    view.update({ ...NOTHING, workersGone: ['w1' as WorkerId] });
    view.update({ ...NOTHING, claimsGone: ['a' as AttemptUid] });
    expect(picture(view)).toMatchObject({ claims: [], workers: [] });
  });

  test('a task it never heard of can stop waiting', () => {
    const view = new PlannerView();
    view.update({ ...NOTHING, notPending: ['j.0' as TaskId] });
    expect(view.pendingCount()).toBe(0);
  });
});

const requests = [OWN, wanting(1000), wanting(2000), wanting(1000, { gangSize: 2 })];
const step = fc.record({
  what: fc.constantFrom('wait', 'leave', 'join', 'part', 'hold', 'free'),
  a: fc.nat(5),
  b: fc.nat(3),
  open: fc.boolean(),
});

test('after any deltas it equals a copy made from scratch', () => {
  fc.assert(
    fc.property(fc.array(fc.array(step, { maxLength: 6 }), { maxLength: 12 }), (batches) => {
      const fed = new PlannerView();
      const workers = new Map<string, PlannerWorker>();
      const claims = new Map<string, Claim>();
      const pending = new Map<string, PendingTask>();
      fed.update({ ...NOTHING, requests });
      for (const batch of batches) {
        const touched = { workers: new Set<string>(), claims: new Set<string>() };
        const tasks = new Set<string>();
        for (const { what, a, b, open } of batch) {
          const request = requests[1 + (a % 3)]!;
          const task = waiting(request, `j${a}`, b % request.gangSize, { version: b });
          if (what === 'wait') pending.set(task.task, task);
          if (what === 'leave') pending.delete(task.task);
          if (what === 'wait' || what === 'leave') tasks.add(task.task);
          if (what === 'join') workers.set(`w${b}`, worker(`w${b}`, { open }));
          if (what === 'part') {
            workers.delete(`w${b}`);
            for (const [owner, one] of claims) {
              if (one.worker !== `w${b}`) continue;
              claims.delete(owner);
              touched.claims.add(owner);
            }
          }
          if (what === 'join' || what === 'part') touched.workers.add(`w${b}`);
          if (what === 'hold' && workers.has(`w${b}`) && !claims.has(`a${a}${b}`)) {
            claims.set(`a${a}${b}`, claim(`a${a}${b}`, `w${b}`, a * 10 + b));
            touched.claims.add(`a${a}${b}`);
          }
          if (what === 'free' && claims.delete(`a${a}${b}`)) touched.claims.add(`a${a}${b}`);
        }
        fed.update(deltasOf(tasks, touched, { workers, claims, pending }));
      }
      const scratch = new PlannerView();
      scratch.update({
        ...NOTHING,
        requests,
        workers: [...fed.fleet.workers()].map(({ info }) => info),
        claims: [...claims.values()].map((each) => held(each)),
        pending: [...pending.values()],
      });
      expect(picture(fed)).toEqual(picture(scratch));
    }),
    { numRuns: 300 },
  );
});

/** Marks become deltas the way the state makes them: by what is there when they are sent. */
function deltasOf(
  tasks: Set<string>,
  touched: { workers: Set<string>; claims: Set<string> },
  now: {
    workers: Map<string, PlannerWorker>;
    claims: Map<string, Claim>;
    pending: Map<string, PendingTask>;
  },
): PlannerDeltas {
  const there = <Value>(ids: Set<string>, of: Map<string, Value>): Value[] =>
    [...ids].flatMap((id) => of.get(id) ?? []);
  const gone = <Id>(ids: Set<string>, of: Map<string, unknown>): Id[] =>
    [...ids].filter((id) => !of.has(id)) as Id[];
  return {
    requests,
    pending: there(tasks, now.pending),
    notPending: gone(tasks, now.pending),
    workers: there(touched.workers, now.workers),
    workersGone: gone(touched.workers, now.workers),
    claims: there(touched.claims, now.claims).map((each) => held(each)),
    claimsGone: gone(touched.claims, now.claims),
    accounts: [],
  };
}
