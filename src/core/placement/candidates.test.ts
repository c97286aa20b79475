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
        const best = candidates.best();
        const anew = new Candidates(new Shape(request), false);
        anew.update(states, score);
        const other = anew.best();
        expect(best === null).toBe(other === null);
        if (!best || !other) continue;
        expect(candidates.shape.score(best, score)).toBe(anew.shape.score(other, score));
        if (what === 'take') held.push(take(states, best.members[0]!, candidates.shape, score));
      }
    }),
    { numRuns: 200 },
  );
});

test('in a large fleet not every new state is scored, but none is lost', () => {
  const kinds = new Kinds();
  const states = new States();
  const enter = (at: number): Member => {
    const info = testWorker(`w${at}`, {}, { cpuMillis: 1000 + at });
    const member = new Member(info, kinds.join(info), new Holdings());
    states.enter(member);
    return member;
  };
  const score = mixOf([]);
  const candidates = new Candidates(new Shape(testRequest({}, { resources: sizes[0]! })), false);
  const members = Array.from({ length: 2500 }, (_, at) => enter(at));
  candidates.update(states, score);
  for (let round = 1; round <= 40; round++) {
    for (let at = 0; at < 300; at++) members.push(enter(10_000 * round + at));
    candidates.update(states, score);
  }
  let found = 0;
  const takeAll = (): void => {
    for (let best = candidates.best(); best; best = candidates.best()) {
      for (const member of [...best.members]) {
        states.leave(member);
        found++;
      }
    }
  };
  takeAll();
  expect(found).toBeLessThan(members.length);
  expect(candidates.catchUp(states)).toBe(true);
  takeAll();
  expect(found).toBe(members.length);
  expect(candidates.catchUp(states)).toBe(false);
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
