/** Random explanations, plans, budgets, usage and data sets. */
import * as fc from 'fast-check';
import { AT_LIMIT, BUDGET_MODES } from '../../src/model/budget.ts';
import { DATA_KINDS } from '../../src/model/dataSet.ts';
import { JOB_STATES } from '../../src/model/job.ts';
import { FAULTS } from '../../src/model/receipt.ts';
import { USAGE_BY } from '../../src/protocol/budgets.ts';
import { ms, nullable, small, text, word } from './arbitraries.ts';

const amount = fc.double({ noNaN: true, noDefaultInfinity: true });

export const why = fc.record({
  job: text,
  state: fc.constantFrom(...JOB_STATES),
  code: text,
  sentence: text,
  workers: fc.array(fc.record({ reason: text, count: small, text }), { maxLength: 3 }),
  position: nullable(small),
  ahead: nullable(small),
  aheadSample: fc.array(fc.record({ job: text, name: text, rule: text }), { maxLength: 3 }),
  rule: text,
  quota: nullable(fc.record({ tenant: text, user: text, what: text, limit: amount, used: amount })),
  predictedStartAtMs: nullable(ms),
  suggestions: fc.array(text, { maxLength: 3 }),
  tasks: fc.record({ waiting: small, running: small }),
  atMs: ms,
});

export const receipt = fc.record({
  job: text,
  name: text,
  state: fc.constantFrom(...JOB_STATES),
  reason: text,
  exitCode: nullable(small),
  createdAtMs: ms,
  startedAtMs: nullable(ms),
  endedAtMs: nullable(ms),
  tasks: fc.record({ total: small, succeeded: small }),
  attempts: small,
  ranOn: fc.array(
    fc.record({ worker: text, name: text, pool: text, devices: text, attempts: small, ms }),
    { maxLength: 3 },
  ),
  time: fc.record({ waitingMs: ms, startingMs: ms, runningMs: ms, stoppingMs: ms }),
  lost: fc.array(fc.record({ fault: fc.constantFrom(...FAULTS), attempts: small, ms, why: text }), {
    maxLength: 3,
  }),
  costMicros: ms,
  deviceMs: ms,
  checkpoints: small,
  resumes: small,
  peakMemoryBytes: nullable(ms),
  complete: fc.boolean(),
  next: fc.array(text, { maxLength: 3 }),
  line: text,
  sentences: fc.array(text, { maxLength: 3 }),
});

export const plan = fc.record({
  never: nullable(text),
  options: fc.array(
    fc.record({
      pool: text,
      startsAtMs: nullable(ms),
      worker: nullable(text),
      pricePerHourMicros: ms,
      costMicros: nullable(ms),
      reason: text,
    }),
    { maxLength: 3 },
  ),
});

const hours = fc.nat().map((thousandths) => thousandths / 1000);
const limits = {
  weight: fc.integer({ min: 1, max: 1_000_000 }).map((thousandths) => thousandths / 1000),
  deviceMillis: nullable(fc.nat({ max: 1_000_000_000 })),
  deviceHoursPerDay: nullable(hours),
  deviceHoursPerMonth: nullable(hours),
  microsPerDay: nullable(ms),
  microsPerMonth: nullable(ms),
  mode: fc.constantFrom(...BUDGET_MODES),
  atLimit: fc.constantFrom(...AT_LIMIT),
};

export const budgetInput = fc.record({
  tenant: word,
  user: text,
  ...limits,
  version: nullable(ms),
});

export const budget = fc.record({
  tenant: text,
  user: text,
  ...limits,
  version: ms,
  used: fc.record({
    deviceMillis: ms,
    deviceHoursDay: amount,
    deviceHoursMonth: amount,
    microsDay: ms,
    microsMonth: ms,
    heldMicros: ms,
  }),
});

export const usageQuery = fc.record({
  sinceMs: ms,
  untilMs: ms,
  by: fc.constantFrom(...USAGE_BY),
});

export const usageRow = fc.record({
  key: text,
  deviceHours: amount,
  cpuHours: amount,
  costMicros: ms,
  attempts: ms,
});

const dataContent = {
  kind: fc.constantFrom(...DATA_KINDS),
  hash: fc.stringMatching(/^sha256:[0-9a-f]{64}$/),
  bytes: ms,
  files: ms,
};

export const dataInput = fc.record({
  name: fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._-]{0,50}$/),
  ...dataContent,
});

export const dataSet = fc.record({
  name: text,
  ...dataContent,
  version: ms,
  createdAtMs: ms,
  createdBy: text,
});
