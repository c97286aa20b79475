/** Candidates kept up to date by what is new are those that a look at everything finds. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { AttemptUid } from '../../model/ids.ts';
import { claimOf } from './capacity.ts';
import { Candidates } from './candidates.ts';
import { Demand } from './demand.ts';
import { Holdings } from './holdings.ts';
import { Kinds } from './kinds.ts';
import { Member } from './member.ts';
import type { PlacementRequest } from './request.ts';
import { Score } from './score.ts';
import { Shape } from './shape.ts';
import { States } from './states.ts';
import { gpus, testRequest, testWorker, wants } from './testFleet.ts';

const sizes = [
  wants({ cpuMillis: 500 }),
  wants({}, { share: 300 }),
  wants({ cpuMillis: 2000 }, { share: 700 }),
  wants({ cpuMillis: 1500 }, { count: 1 }),
  wants({ cpuMillis: 4000 }, { count: 4 }),
];
const requests = sizes.map((resources) => testRequest({}, { resources }));

function mixOf(weights: number[]): Score {
  const demand = new Demand();
  for (const [at, request] of requests.entries()) {
    const asked = demand.classOf(request);
    if (asked) demand.asked(asked, 1 + (weights[at] ?? 0));
  }
  return new Score(demand.mix);
}

test('after any takes, gives and changes of the mix', () => {
  const step = fc.record({
    what: fc.constantFrom('take', 'take', 'take', 'give', 'mix', 'ask'),
    at: fc.nat(40),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
      const kinds = new Kinds();
      const states = new States();
      const held: (() => void)[] = [];
      for (let at = 0; at < 6; at++) {
        const info = testWorker(`w${at}`, {}, { devices: gpus(at % 2 ? 4 : 2) });
        states.enter(new Member(info, kinds.join(info), new Holdings()));
      }
      let score = mixOf([]);
      const kept = requests.map((request) => new Candidates(new Shape(request), false));
      for (const { what, at } of steps) {
        const candidates = kept[at % kept.length]!;
        const { request } = candidates.shape;
        if (what === 'give') held.splice(at % Math.max(1, held.length), 1)[0]?.();
        if (what === 'mix') score = mixOf([at, 10 * at, 40 - at, 0, at * at]);
        if (what === 'give' || what === 'mix') continue;
        candidates.update(states, score);
        const best = candidates.best(states, score);
        const anew = new Candidates(new Shape(request), false);
        anew.update(states, score);
        const other = anew.best(states, score);
        expect(best === null).toBe(other === null);
        if (!best || !other) continue;
        expect(candidates.shape.score(best, score)).toBe(anew.shape.score(other, score));
        if (what === 'take') held.push(take(states, best.members[0]!, candidates.shape, score));
      }
    }),
    { numRuns: 200 },
  );
});

/** A fleet of so many states that not each is looked at, and how many were scored. */
function largeFleet(request: PlacementRequest) {
  const kinds = new Kinds();
  const states = new States();
  const score = mixOf([]);
  const shape = new Shape(request);
  let scored = 0;
  const scoreOf = shape.score.bind(shape);
  shape.score = (...asked) => {
    scored++;
    return scoreOf(...asked);
  };
  const candidates = new Candidates(shape, false);
  const enter = (at: number, attributes: Record<string, string> = {}, hourMicros = 0): Member => {
    const resources = { cpuMillis: 1000 + at };
    const info = { ...testWorker(`w${at}`, { attributes }, resources), cpuHourMicros: hourMicros };
    const member = new Member(info, kinds.join(info), new Holdings());
    states.enter(member);
    return member;
  };
  for (const { attribute } of request.placement.constraints) kinds.name(attribute);
  for (let at = 0; at < 2500; at++) enter(at);
  candidates.update(states, score);
  const update = (): number => {
    const before = scored;
    candidates.update(states, score);
    return scored - before;
  };
  return { states, enter, update, best: () => candidates.best(states, score) };
}

test('in a large fleet not every new state is scored, but none is lost', () => {
  const { states, enter, update, best } = largeFleet(requests[0]!);
  for (let round = 1; round <= 20; round++) {
    for (let at = 0; at < 600; at++) enter(10_000 * round + at);
    expect(update()).toBe(256);
  }
  let found = 0;
  for (let next = best(); next; next = best()) {
    for (const member of [...next.members]) {
      states.leave(member);
      found++;
    }
  }
  expect(found).toBe(2500 + 20 * 600);
  expect(states.size).toBe(0);
});

test('of many states the best is found, though only some are kept', () => {
  const { states, update, enter, best } = largeFleet(requests[0]!);
  const left: number[] = [];
  for (let at = 0; at < 2000; at++) {
    const [member] = best()!.members;
    left.push(member!.info.resources.cpuMillis);
    states.leave(member!);
  }
  // Of workers without devices the one with the least CPU left, as a part of all.
  expect(left).toEqual(left.toSorted((a, b) => a - b));
  enter(-400);
  expect(update()).toBe(1);
  expect(best()!.members[0]!.info.resources.cpuMillis).toBe(600);
});

test('what is preferred is found however many new states there are', () => {
  const fast = { attribute: 'disk', operator: 'EQ' as const, values: ['fast'], preferred: true };
  const { enter, update, best } = largeFleet(testRequest({ constraints: [fast] }));
  // The oldest of those that are new: it would be passed over.
  enter(10_000, { disk: 'fast' });
  for (let at = 1; at < 1000; at++) enter(10_000 + at);
  expect(update()).toBe(1000);
  expect(best()!.members[0]!.info.id).toBe('w10000');
});

test('what is cheaper is found however many new states there are', () => {
  const { states, enter, update, best } = largeFleet(requests[0]!);
  const dear = enter(5000, {}, 7);
  update();
  for (const state of [...states.all()]) {
    for (const member of [...state.members]) if (member !== dear) states.leave(member);
  }
  for (let at = 0; at < 3000; at++) enter(10_000 + at, {}, 7);
  enter(9000);
  for (let at = 3000; at < 4000; at++) enter(10_000 + at, {}, 7);
  update();
  expect(best()!.members[0]!.info.id).toBe('w9000');
});

/** What gives it back again. */
function take(states: States, member: Member, shape: Shape, score: Score): () => void {
  const { resources } = shape.request;
  const devices = shape.pickDevices(member.state!, member.capacity, score);
  const claim = claimOf('a' as AttemptUid, member.info.id, resources, { devices, ports: [] });
  const change = (how: 'take' | 'give') => () => {
    states.leave(member);
    member.capacity[how](claim);
    states.enter(member);
  };
  change('take')();
  return change('give');
}
