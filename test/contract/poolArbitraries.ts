/** Random pools, instances and hosts, and what the calls about them take and give. */
import * as fc from 'fast-check';
import { HOST_VERDICTS } from '../../src/model/host.ts';
import { FAILURE_CLASSES, INSTANCE_STATES } from '../../src/model/instance.ts';
import { HOST_WORDS } from '../../src/protocol/pools.ts';
import { bytes, defined, ms, nullable, page, pageOf, principal } from './arbitraries.ts';
import { small, text, word } from './arbitraries.ts';

const money = fc.record({ hour: bytes, day: bytes, month: bytes });
const pool = fc.record({
  ...{ name: text, provider: text, mode: fc.constantFrom('agents' as const, 'job' as const) },
  ...{ min: small, max: small, workers: small, coming: small, joined: small, leaving: small },
  ...{ error: text, notBeforeMs: nullable(ms), listedAtMs: nullable(ms), listError: text },
  ...{ notice: text, deviceHourMicros: bytes, cpuHourMicros: bytes, instanceHourMicros: bytes },
  spent: fc.record({ hour: bytes, day: bytes, month: bytes, total: bytes }),
  spendLimits: money,
  others: fc.array(
    fc.record({
      ...{ handle: text, name: text, user: text, state: text, reason: text, where: text },
    }),
    { maxLength: 2 },
  ),
});

const instance = defined(
  fc.record({
    ...{ id: text, pool: text, provider: text, state: fc.constantFrom(...INSTANCE_STATES) },
    failure: nullable(fc.constantFrom(...FAILURE_CLASSES)),
    ...{ reason: text, handle: text, host: text, size: small, runAs: text, restarts: small },
    workers: fc.array(text, { maxLength: 2 }),
    tasks: fc.array(text, { maxLength: 2 }),
    ...{ priceHourMicros: bytes, spentMicros: bytes, createdAtMs: ms },
    ...{ startsAtMs: nullable(ms), endsAtMs: nullable(ms), requestedAtMs: nullable(ms) },
    ...{ runningAtMs: nullable(ms), joinedAtMs: nullable(ms), destroyAtMs: nullable(ms) },
    endedAtMs: nullable(ms),
    script: fc.option(text, { nil: undefined }),
  }),
);

const host = fc.record({
  ...{ id: text, pool: text, name: text, verdict: fc.constantFrom(...HOST_VERDICTS) },
  ...{ avoided: text, penalty: fc.constantFrom(0, 0.5, 1.25), faults: small, good: small },
  ...{ evidence: text, lastFaultAtMs: nullable(ms), lastSeenAtMs: ms, workers: small },
});

const hostWord = fc.record({ host: word, word: fc.constantFrom(...HOST_WORDS) });

const instanceQuery = page.chain((one) =>
  fc.record({ pool: word, ended: fc.boolean() }).map((more) => ({ ...one, ...more })),
);

const who = principal;
export const ARGUMENTS = {
  listPools: fc.tuple(who),
  lookAtPool: fc.tuple(who, text),
  listInstances: fc.tuple(who, instanceQuery),
  getInstance: fc.tuple(who, text),
  destroyInstance: fc.tuple(who, text),
  listHosts: fc.tuple(who),
  setHost: fc.tuple(who, hostWord),
};

export const RESULTS = {
  listPools: fc.array(pool, { maxLength: 3 }),
  lookAtPool: pool,
  listInstances: pageOf(instance),
  getInstance: instance,
  destroyInstance: instance,
  listHosts: fc.array(host, { maxLength: 3 }),
  setHost: host,
};
