/** Where, when and for how much a job may run, as flags and job files say it. */
import { AFTER_CONDITIONS } from '../model/job.ts';
import { CONSTRAINT_OPERATORS, TRUSTS } from '../model/placement.ts';
import type { SubmittedSpec } from '../protocol/jobSpec.ts';
import { oneOf, UsageError } from './args.ts';
import { parseConstraint } from './constraints.ts';
import { parseMoney } from './money.ts';
import { asBoolean, asText } from './values.ts';

type Placement = NonNullable<SubmittedSpec['placement']>;
type SubmittedConstraint = NonNullable<Placement['constraints']>[number];
type SubmittedAfter = NonNullable<SubmittedSpec['after']>[number];
type Reader = (spec: SubmittedSpec, value: unknown, what: string) => void;

export const PLACEMENT_READERS: Record<string, Reader> = {
  constraint: (spec, value, what) => addConstraints(spec, value, what, false),
  prefer: (spec, value, what) => addConstraints(spec, value, what, true),
  spread: (spec, value, what) =>
    (placement(spec).arrangement = asBoolean(value, what) ? 'spread' : 'pack'),
  exclusive: (spec, value, what) => (placement(spec).exclusive = asBoolean(value, what)),
  antiAffinity: (spec, value, what) => (placement(spec).antiAffinity = asText(value, what)),
  locality: readLocality,
  spot: (spec, value, what) => (placement(spec).interruptible = asBoolean(value, what)),
  trust: (spec, value, what) => (placement(spec).trust = oneOf(asText(value, what), TRUSTS, what)),
  after: (spec, value, what) => (spec.after = listOf(value).map((entry) => readAfter(entry, what))),
  maxCost: (spec, value, what) => (spec.maxCostMicros = parseMoney(asText(value, what), what)),
};

function placement(spec: SubmittedSpec): Placement {
  return (spec.placement ??= {});
}

function addConstraints(
  spec: SubmittedSpec,
  value: unknown,
  what: string,
  preferred: boolean,
): void {
  const read = listOf(value).map((entry) => ({ ...readConstraint(entry, what), preferred }));
  placement(spec).constraints = [...(placement(spec).constraints ?? []), ...read];
}

/** A text, or in a file also the API's own form; what is wrong in that, the server says. */
function readConstraint(entry: unknown, what: string): SubmittedConstraint {
  if (typeof entry !== 'object' || entry === null) {
    return parseConstraint(asText(entry, what), what);
  }
  const { attribute, operator } = entry as Partial<SubmittedConstraint>;
  if (typeof attribute !== 'string' || typeof operator !== 'string') {
    const hint = `${what}: [rack=b12], or {attribute: rack, operator: EQ, values: [b12]}`;
    throw new UsageError(`${what} has an entry without attribute and operator`, hint);
  }
  oneOf(operator, CONSTRAINT_OPERATORS, `${what} ${attribute}: operator`);
  return entry as SubmittedConstraint;
}

function readLocality(spec: SubmittedSpec, value: unknown, what: string): void {
  if (spec.shape?.kind !== 'gang') {
    const hint = 'add a gang (--gang N), or use a constraint such as rack=b12';
    throw new UsageError(`${what} keeps the members of a gang together; this job has none`, hint);
  }
  placement(spec).locality = asText(value, what);
}

/** JOB, JOB:ok, JOB:failed or JOB:any; a name that holds a colon needs {job, when}. */
function readAfter(entry: unknown, what: string): SubmittedAfter {
  if (typeof entry === 'object' && entry !== null) {
    const { job, when } = entry as { job?: unknown; when?: unknown };
    if (job === undefined) {
      throw new UsageError(`${what} has an entry without job`, `${what}: [{job: ID, when: ok}]`);
    }
    const condition = when === undefined ? 'ok' : asText(when, `${what}.when`);
    return { job: asText(job, what), when: oneOf(condition, AFTER_CONDITIONS, `${what}.when`) };
  }
  const text = asText(entry, what);
  const colon = text.lastIndexOf(':');
  const job = colon < 0 ? text : text.slice(0, colon);
  if (job.trim() === '') {
    const hint = 'write JOB, JOB:failed or JOB:any';
    throw new UsageError(`${what} ${JSON.stringify(text)} names no job`, hint);
  }
  if (colon < 0) return { job, when: 'ok' };
  return { job, when: oneOf(text.slice(colon + 1), AFTER_CONDITIONS, `${what} ${job}: how`) };
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [value];
}
