/** Random explanations. */
import * as fc from 'fast-check';
import { JOB_STATES } from '../../src/model/job.ts';
import { ms, nullable, small, text } from './arbitraries.ts';

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
