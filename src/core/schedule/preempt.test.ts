/** Who makes way for whom, at what cost, and what becomes of the place in prospect. */
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
} from '../../../test/support/planning.ts';
import type { AttemptUid, TaskId } from '../../model/ids.ts';
import { PLAIN_PLACEMENT } from '../../model/placement.ts';
import type { Plan } from './plan.ts';
import type { PlannerDeltas } from './view.ts';

const MIN_MS = 60_000;
const SPOT = { ...PLAIN_PLACEMENT, interruptible: true };
const batch = wantingGpus(1, { key: 'batch', tenant: 'b' });
const spot = wantingGpus(1, { key: 'spot', tenant: 'b', placement: SPOT });
const pair = wantingGpus(1, { key: 'pair', tenant: 'b', gangSize: 2 });
const human = wantingGpus(1, { key: 'human', tenant: 'h', band: 1 });
const urgent = (count: number, more = {}) =>
  wantingGpus(count, { key: `urgent${count}`, tenant: 'p', band: 0, ...more });

const victims = ({ preemptions }: Plan): string[][] =>
  preemptions.map((each) => each.victims.map(({ uid }) => uid.split('.')[0]!).toSorted());
/** What the state says of it when it has applied the plan. */
function applied(made: Plan): Partial<PlannerDeltas> {
  const claims = made.preemptions.flatMap(({ tasks, job }) =>
    tasks.map(({ claim }) => ({ claim, job, classKey: 'urgent1', sinceMs: 0 })),
  );
  return { claims };
}

function full(more: Partial<PlannerDeltas>) {
  const { requests = [], ...rest } = more;
  return viewOf({ requests: [batch, spot, pair, human, ...requests], ...rest });
}

describe('higher work that fits nowhere', () => {
  test('takes the place of lower work, which it gets when that has gone', () => {
    const high = urgent(1);
    const view = full({
      requests: [high],
      workers: [gpus('w1', 1)],
      claims: [heldGpus(batch, 'j1', 'w1')],
      pending: [waiting(high, 'j9')],
    });
    const made = planOf(view);
    expect(made.placements).toEqual([]);
    expect(made.preemptions).toMatchObject([
      {
        job: 'j9',
        reason: 'made room for production work',
        victims: [{ uid: 'j1.0.1.cd' }],
        tasks: [{ task: 'j9.0', version: 1, claim: { worker: 'w1', state: 'NOMINATED' } }],
      },
    ]);
    expect(made.waiting).toMatchObject([
      { why: { code: 'PREEMPTING', sentence: 'gets w1 as soon as 1 task made room' } },
    ]);
    view.update({ ...NOTHING, ...applied(made) });
    // Nobody else gets the place meanwhile, nor is anybody interrupted twice.
    view.update({ ...NOTHING, pending: [waiting(human, 'j5')] });
    expect(planOf(view)).toMatchObject({ placements: [], preemptions: [] });
    view.update({ ...NOTHING, claimsGone: ['j1.0.1.cd' as AttemptUid] });
    const then = planOf(view);
    const { claim } = made.preemptions[0]!.tasks[0]!;
    expect(then.placements).toEqual([
      {
        job: 'j9',
        round: 0,
        tasks: [{ task: 'j9.0', version: 1, claim: { ...claim, state: 'HELD' } }],
      },
    ]);
    expect(then.cleared).toEqual(['urgent1']);
  });

  test('never takes the place of its equals or betters', () => {
    const view = full({
      workers: [gpus('w1', 2)],
      claims: [heldGpus(human, 'j1', 'w1', 0), heldGpus(human, 'j2', 'w1', 1)],
      pending: [waiting(human, 'j3'), waiting(batch, 'j4')],
    });
    expect(planOf(view).preemptions).toEqual([]);
  });

  test('interrupts nobody where it fits, where it is not allowed to, or is over its limit', () => {
    const high = urgent(1);
    const busy = (more: Partial<PlannerDeltas>) =>
      full({
        requests: [high],
        workers: [gpus('w1', 1)],
        claims: [heldGpus(batch, 'j1', 'w1')],
        pending: [waiting(high, 'j9')],
        ...more,
      });
    const free = busy({ workers: [gpus('w1', 1), gpus('w2', 1)] });
    expect(planOf(free)).toMatchObject({ preemptions: [], placements: [{ job: 'j9' }] });
    expect(planOf(busy({}), 0, { preemption: false }).preemptions).toEqual([]);
    for (const mode of ['hard', 'soft'] as const) {
      const over = busy({ accounts: [account('p', { deviceMillis: 0, mode })] });
      expect(planOf(over).preemptions).toEqual([]);
    }
  });

  test('waits for what is stopping anyway', () => {
    const high = urgent(1);
    const view = full({
      requests: [high],
      workers: [gpus('w1', 2)],
      claims: [
        heldGpus(batch, 'j1', 'w1', 0),
        heldGpus(batch, 'j2', 'w1', 1, { state: 'RELEASING' }),
      ],
      pending: [waiting(high, 'j9')],
    });
    const made = planOf(view);
    expect(made.preemptions).toMatchObject([{ victims: [], tasks: [{ claim: { devices: [1] } }] }]);
  });
});

describe('the cheapest are interrupted', () => {
  const since = (minutes: number) => ({ sinceMs: -minutes * MIN_MS });

  test('those that lose least', () => {
    const high = urgent(1);
    const view = full({
      requests: [high],
      workers: [gpus('w1', 1), gpus('w2', 1), gpus('w3', 1)],
      claims: [
        heldGpus(batch, 'j1', 'w1', 0, since(90)),
        heldGpus(batch, 'j2', 'w2', 0, since(5)),
        heldGpus(batch, 'j3', 'w3', 0, since(40)),
      ],
      pending: [waiting(high, 'j9')],
    });
    expect(victims(planOf(view, 0))).toEqual([['j2']]);
  });

  test('what agreed to it, and lower bands, first', () => {
    const high = urgent(1);
    const view = full({
      requests: [high],
      workers: [gpus('w1', 3)],
      claims: [
        heldGpus(human, 'j1', 'w1', 0, since(1)),
        heldGpus(batch, 'j2', 'w1', 1, since(10)),
        heldGpus(spot, 'j3', 'w1', 2, since(60)),
      ],
      pending: [waiting(high, 'j7'), waiting(high, 'j8'), waiting(high, 'j9')],
    });
    expect(victims(planOf(view, 0))).toEqual([['j3'], ['j2'], ['j1']]);
  });

  test('as few as are needed', () => {
    const high = urgent(4);
    const three = wantingGpus(3, { key: 'three' });
    const view = full({
      requests: [high, three],
      workers: [gpus('w1', 4), gpus('w2', 8)],
      claims: [
        ...[0, 1, 2, 3].map((at) => heldGpus(batch, `j1${at}`, 'w1', at, since(1))),
        heldGpus(batch, 'j2', 'w2', 0, since(2)),
        heldGpus(three, 'j3', 'w2', 1, since(10)),
        heldGpus(wantingGpus(3, { key: 'three' }), 'j4', 'w2', 4, since(200)),
      ],
      pending: [waiting(high, 'j9')],
    });
    // One device of w2 is free: three more suffice there, of which the cheap single is none.
    expect(victims(planOf(view, 0))).toEqual([['j3']]);
  });

  test('a gang ends as a whole, and is counted so', () => {
    const high = urgent(1);
    const members = [0, 1].map((index) =>
      heldGpus(pair, 'j1', `w${index + 1}`, 0, { index, ...since(20) }),
    );
    const view = (alone: number) =>
      full({
        requests: [high],
        workers: [gpus('w1', 1), gpus('w2', 1), gpus('w3', 1)],
        claims: [...members, heldGpus(batch, 'j2', 'w3', 0, since(alone))],
        pending: [waiting(high, 'j9')],
      });
    expect(victims(planOf(view(30), 0))).toEqual([['j2']]);
    expect(victims(planOf(view(90), 0))).toEqual([['j1', 'j1']]);
  });

  test('a gang that makes way on one worker makes way on all', () => {
    const team = urgent(1, { gangSize: 2, key: 'team' });
    const view = full({
      requests: [team],
      workers: [gpus('w1', 1), gpus('w2', 2)],
      claims: [
        heldGpus(pair, 'j1', 'w1', 0, { index: 0, ...since(1) }),
        heldGpus(pair, 'j1', 'w2', 0, { index: 1, ...since(1) }),
        heldGpus(batch, 'j2', 'w2', 1, since(1)),
      ],
      pending: [waiting(team, 'j9', 0), waiting(team, 'j9', 1)],
    });
    const made = planOf(view, 0);
    expect(made.preemptions).toHaveLength(1);
    expect(made.preemptions[0]!.tasks).toHaveLength(2);
    expect(victims(made)).toEqual([['j1', 'j1']]);
  });

  test('in its own band only what agreed to it, for what did not', () => {
    const other = wantingGpus(1, { key: 'other', tenant: 'o' });
    const otherSpot = { ...other, key: 'otherSpot', placement: SPOT };
    const view = (wanted: typeof other) =>
      full({
        requests: [other, otherSpot],
        workers: [gpus('w1', 2)],
        claims: [heldGpus(batch, 'j1', 'w1', 0), heldGpus(spot, 'j2', 'w1', 1)],
        pending: [waiting(wanted, 'j9')],
      });
    expect(victims(planOf(view(other)))).toEqual([['j2']]);
    expect(victims(planOf(view(otherSpot)))).toEqual([]);
  });
});

describe('a place in prospect', () => {
  const high = urgent(1);
  function nominated(more: Partial<PlannerDeltas> = {}) {
    const view = full({
      requests: [high],
      workers: [gpus('w1', 1)],
      claims: [heldGpus(batch, 'j1', 'w1')],
      pending: [waiting(high, 'j9')],
      ...more,
    });
    const made = planOf(view);
    return { view, owner: made.preemptions[0]!.tasks[0]!.claim.owner };
  }

  test('is given up when there is room elsewhere first', () => {
    const { view, owner } = nominated();
    view.update({ ...NOTHING, workers: [gpus('w2', 1)] });
    const made = planOf(view);
    expect(made.withdrawals).toEqual([{ owner, reason: 'there is room elsewhere by now' }]);
    expect(placed(made)).toEqual(['j9.0>w2']);
    expect(made.placements[0]!.tasks[0]!.claim.owner).not.toBe(owner);
    expect(planOf(view)).toMatchObject({ withdrawals: [], placements: [], preemptions: [] });
  });

  test('is void when its worker closes, and another is sought', () => {
    const { view, owner } = nominated({
      workers: [gpus('w1', 1), gpus('w2', 1)],
      claims: [heldGpus(batch, 'j1', 'w1'), heldGpus(batch, 'j2', 'w2', 0, { sinceMs: -MIN_MS })],
    });
    view.update({ ...NOTHING, workers: [gpus('w1', 1, { open: false })] });
    const made = planOf(view);
    expect(made.withdrawals).toEqual([{ owner, reason: 'worker w1 does not take it any more' }]);
    expect(victims(made)).toEqual([['j2']]);
  });

  test('that is void lets a retry go on at once, also where it had a back-off', () => {
    const { view } = nominated({ pending: [waiting(high, 'j9', 0, { notBeforeMs: 500 })] });
    const closed = gpus('w1', 1, { open: false });
    view.update({ ...NOTHING, workers: [closed] });
    expect(planOf(view).withdrawals).toHaveLength(1);
    view.update({ ...NOTHING, claimsGone: ['j1.0.1.cd' as AttemptUid], workers: [gpus('w1', 1)] });
    expect(placed(planOf(view))).toEqual(['j9.0>w1']);
  });

  test('is void when its task waits no more', () => {
    const { view, owner } = nominated();
    view.update({ ...NOTHING, notPending: ['j9.0' as TaskId] });
    expect(planOf(view).withdrawals).toMatchObject([{ owner }]);
    expect(view.claims.has(owner)).toBe(false);
  });

  test('that was refused is forgotten, and its victims are left in peace', () => {
    const { view, owner } = nominated();
    // As the schedule loop tells it: there is no such claim, the victim has not moved.
    view.update({ ...NOTHING, claimsGone: [owner], claims: [heldGpus(batch, 'j1', 'w1')] });
    expect(victims(planOf(view))).toEqual([['j1']]);
  });

  test('is known again after a restart', () => {
    const claim = heldGpus(high, 'j9', 'w1', 0, { state: 'NOMINATED' });
    const view = full({
      requests: [high],
      workers: [gpus('w1', 1)],
      claims: [heldGpus(batch, 'j1', 'w1', 0, { state: 'RELEASING' }), claim],
      pending: [waiting(high, 'j9')],
    });
    expect(planOf(view)).toMatchObject({ placements: [], preemptions: [], withdrawals: [] });
    view.update({ ...NOTHING, claimsGone: ['j1.0.1.cd' as AttemptUid] });
    expect(placed(planOf(view))).toEqual(['j9.0>w1']);
  });
});
