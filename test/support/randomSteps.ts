/** Random things that can happen to a state, for tests that try any history. */
import fc from 'fast-check';
import { END_CAUSES } from '../../src/model/attempt.ts';
import type { Shape } from '../../src/model/job.ts';
import type { Reseal, Submit } from '../../src/state/mutations.ts';
import { submission } from './testState.ts';

const jobFields = fc.record({
  shape: fc.constantFrom<Shape>(
    { kind: 'single' },
    { kind: 'array', indices: [5, 0, 2], limit: 2 },
    { kind: 'gang', size: 2 },
  ),
  retries: fc.nat(2),
  maxInterruptions: fc.nat(2),
  timeLimitMs: fc.constantFrom(0, 10),
  priority: fc.constantFrom('production' as const, 'batch' as const),
  maxCostMicros: fc.constantFrom(0, 5),
  resources: fc.record({
    cpuMillis: fc.constantFrom(1000, 3000),
    ports: fc.nat(2),
    device: fc.constantFrom(null, { share: 500 }, { count: 2 }),
  }),
});
const pick = fc.nat(100);
export const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('submit' as const), fields: jobFields, pick }),
  },
  { weight: 8, arbitrary: fc.record({ do: fc.constant('plan' as const) }) },
  {
    weight: 12,
    arbitrary: fc.record({
      do: fc.constant('observe' as const),
      pick,
      what: fc.constantFrom('STARTING', 'RUNNING', 'STOPPING', 'ok', ...END_CAUSES),
      complete: fc.boolean(),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('join' as const), pick, boot: fc.nat(1) }) },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constantFrom(
        'cancel',
        'give-up',
        'stop',
        'lose',
        'drain',
        'token',
        'revoke',
        'charge',
        'people',
        'priority',
      ),
      pick,
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('move' as const),
      pick,
      move: fc.constantFrom('suspect', 'recover', 'lose'),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constantFrom('preempt' as const, 'withdraw' as const, 'take-over' as const),
      pick,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('budget' as const),
      pick,
      devices: fc.constantFrom(null, 500, 2000),
      micros: fc.constantFrom(null, 0, 3_000_000),
      mode: fc.constantFrom('soft' as const, 'hard' as const),
    }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('commit' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('restart' as const) }) },
);
export type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;

const DOWNSTREAM = {
  ...{ issuer: 'https://login.example.org', subject: 'ada', audiences: ['storage'] },
  ...{ sealed: 'v1.k.a.b', refused: [{ audience: 'registry', reason: 'no' }] },
};
export const RESEAL: Reseal = { kind: 'reseal', from: 'v1.k.a.b', to: 'v1.k.c.d' };

/** Some with a key, some as a chain of two, some with tokens of other services. */
export function submissionOf({ pick: at, fields }: Extract<Step, { do: 'submit' }>): Submit {
  const key = at % 3 === 0 ? `k${at}` : null;
  const chain = at % 4 === 0;
  return submission(chain ? [fields, fields] : [fields], {
    idempotencyKey: key,
    bodyHash: key,
    links: chain ? [{ waits: 1, after: 0, when: 'any' }] : [],
    downstream: at % 5 === 0 ? DOWNSTREAM : undefined,
  });
}
