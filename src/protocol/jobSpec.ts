/** REST schemas of a submission: what a user may ask for, and the limits of it. */
import { z } from 'zod';
import { AFTER_CONDITIONS, PRIORITIES } from '../model/job.ts';
import type { After, JobSpec } from '../model/job.ts';
import { ARRANGEMENTS, CONSTRAINT_OPERATORS, TRUSTS } from '../model/placement.ts';
import { DEVICE_KINDS } from '../model/resources.ts';
import { DEFAULT_PARTS } from '../model/spec.ts';
import { jobParts } from './jobParts.ts';
import { clean, DAY_MS, durationMs, isClean, NOT_CLEAN } from './texts.ts';

/** Named limits of a submission, each with a test. */
export const JOB_LIMITS = {
  nameLength: 200,
  commandWords: 4096,
  commandBytes: 128 * 1024,
  envEntries: 4096,
  envBytes: 256 * 1024,
  arrayTasks: 10_000,
  gangTasks: 1024,
  batchJobs: 1000,
  labels: 64,
  retries: 100,
  ports: 64,
  constraints: 64,
  constraintValues: 256,
  after: 100,
} as const;

/** Names and texts: which names, and how long both may be. */
interface TextRule {
  name: RegExp;
  nameLength: number;
  textLength: number;
}

type Fail = (path: (string | number)[], message: string) => void;

/**
 * Names and texts, checked by hand: a record of schemas costs more than all the rest of a spec, and
 * a call may bring a thousand.
 */
const texts = (rule: TextRule) =>
  z
    .custom<Record<string, string>>()
    .superRefine((value, context) => checkTexts(value, rule, issues(context)))
    .meta({
      type: 'object',
      propertyNames: {
        type: 'string',
        minLength: 1,
        maxLength: rule.nameLength,
        // The description is read by many languages; not all of them know Unicode's classes.
        pattern: rule.name.source.replace(String.raw`\0\p{Surrogate}`, String.raw`\u0000`),
      },
      additionalProperties: { type: 'string', maxLength: rule.textLength },
    });

export function checkTexts(value: unknown, rule: TextRule, fail: Fail): void {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return fail([], 'Invalid input: expected record');
  }
  const { name, nameLength, textLength } = rule;
  const record = value as Record<string, unknown>;
  for (const key of Object.keys(record)) {
    const text = record[key];
    if (key.length > nameLength || !name.test(key)) fail([key], 'Invalid key in record');
    if (typeof text !== 'string') fail([key], 'Invalid input: expected string');
    else if (text.length > textLength) fail([key], `is longer than ${textLength} characters`);
    else if (!isClean(text)) fail([key], NOT_CLEAN);
  }
}

function issues(context: z.RefinementCtx): Fail {
  return (path, message) => context.addIssue({ code: 'custom', path, message });
}

export const ENV_RULE: TextRule = {
  name: /^[A-Za-z_][A-Za-z0-9_]*$/,
  nameLength: 256,
  textLength: JOB_LIMITS.envBytes,
};

/** Any text, in whole characters and without a NUL. */
const LABEL_NAME = /^[^\0\p{Surrogate}]+$/u;
export const LABEL_RULE: TextRule = { name: LABEL_NAME, nameLength: 63, textLength: 256 };

export const deviceRequest = z.strictObject({
  kind: z.enum(DEVICE_KINDS).default('gpu'),
  count: z.int().min(1).max(1024).default(1),
  share: z.int().min(1).max(1000).default(1000),
  models: z.array(clean(100)).max(100).default([]),
  memoryBytes: z.int().min(0).default(0),
});

export const resourceRequest = z.strictObject({
  cpuMillis: z.int().min(1).max(1_024_000).default(1000),
  memoryBytes: z.int().min(0).default(0),
  device: deviceRequest.nullable().default(null),
  ports: z.int().min(0).max(JOB_LIMITS.ports).default(0),
});

export const shape = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('single') }),
  z.strictObject({
    kind: z.literal('array'),
    indices: z.array(z.int().min(0).max(1_000_000_000)).min(1).max(JOB_LIMITS.arrayTasks),
    limit: z.int().min(0).max(JOB_LIMITS.arrayTasks).default(0),
  }),
  z.strictObject({ kind: z.literal('gang'), size: z.int().min(1).max(JOB_LIMITS.gangTasks) }),
]);

export const constraint = z
  .strictObject({
    attribute: clean(63).min(1),
    operator: z.enum(CONSTRAINT_OPERATORS),
    values: z.array(clean(256)).max(JOB_LIMITS.constraintValues).default([]),
    preferred: z.boolean().default(false),
  })
  .superRefine(({ operator, values }, context) => {
    const least = operator === 'EXISTS' ? 0 : 1;
    const most = { EXISTS: 0, IN: JOB_LIMITS.constraintValues }[operator as string] ?? 1;
    if (values.length < least || values.length > most) {
      const wanted = most === 0 ? 'no value' : most === 1 ? 'one value' : 'at least one value';
      context.addIssue({
        code: 'custom',
        path: ['values'],
        message: `${operator} takes ${wanted}, there are ${values.length}`,
      });
    } else if ((operator === 'GT' || operator === 'LT') && !isNumber(values[0] ?? '')) {
      context.addIssue({
        code: 'custom',
        path: ['values', 0],
        message: `${operator} compares numbers, "${values[0]}" is none`,
      });
    }
  });

function isNumber(text: string): boolean {
  return text.trim() !== '' && Number.isFinite(Number(text));
}

export const placementSpec = z.strictObject({
  constraints: z.array(constraint).max(JOB_LIMITS.constraints).default([]),
  arrangement: z.enum(ARRANGEMENTS).default('pack'),
  exclusive: z.boolean().default(false),
  antiAffinity: clean(100).default(''),
  locality: clean(63).default(''),
  interruptible: z.boolean().default(false),
  trust: z.enum(TRUSTS).default('normal'),
});

/** `job` is an id, or the name of another job in the same submission. */
const after = z.strictObject({
  // The same text: what it is called is of no matter at run time.
  job: clean(JOB_LIMITS.nameLength).min(1) as unknown as z.ZodType<After['job'], string>,
  when: z.enum(AFTER_CONDITIONS).default('ok'),
});

/** Of a job that needs a GPU for an hour at most. */
const EXAMPLE = {
  name: 'train',
  command: ['python3', 'train.py', '--epochs', '10'],
  resources: { cpuMillis: 4000, device: { kind: 'gpu', count: 1 } },
  timeLimitMs: 3_600_000,
};

/** Defaults are given by functions: zod copies values, and they are shared by all specs. */
export const jobSpec = z
  .strictObject({
    name: clean(JOB_LIMITS.nameLength).default(''),
    command: z.array(clean(JOB_LIMITS.commandBytes)).min(1).max(JOB_LIMITS.commandWords),
    env: texts(ENV_RULE).default(() => DEFAULT_PARTS.env),
    workdir: clean(4096).default(''),
    resources: resourceRequest.default(() => DEFAULT_PARTS.resources),
    shape: shape.default(() => DEFAULT_PARTS.shape),
    pool: clean(100).default(''),
    priority: z.enum(PRIORITIES).default('batch'),
    placement: placementSpec.default(() => DEFAULT_PARTS.placement),
    after: z
      .array(after)
      .max(JOB_LIMITS.after)
      .default(() => DEFAULT_PARTS.after),
    maxCostMicros: z.int().min(0).default(0),
    retries: z.int().min(0).max(JOB_LIMITS.retries).default(0),
    maxInterruptions: z.int().min(0).max(10_000).default(100),
    timeLimitMs: durationMs.default(0),
    startWithinMs: durationMs.default(0),
    graceMs: z.int().min(0).max(600_000).default(10_000),
    attemptLeaseMs: z
      .int()
      .max(DAY_MS)
      .refine((ms) => ms === 0 || ms >= 60_000, 'is 0 (the cluster default) or at least 60000')
      .meta({ anyOf: [{ const: 0 }, { minimum: 60_000 }] })
      .default(0),
    labels: texts(LABEL_RULE).default(() => DEFAULT_PARTS.labels),
    ...jobParts,
  })
  .superRefine(checkTogether)
  .meta({ id: 'JobSpec', examples: [EXAMPLE] });

/** The schema's output is exactly the model's JobSpec. */
export type SubmittedSpec = z.input<typeof jobSpec>;
export const parsedJobSpec: z.ZodType<JobSpec, SubmittedSpec> = jobSpec;

/** What mostly differs between the jobs of one submission; quickSpecs.ts checks it apart. */
export type OwnFields = Pick<JobSpec, 'name' | 'command' | 'env' | 'labels'>;

/** Two halves, so that no rule looks at both: what many jobs share is checked once for all. */
function checkTogether(spec: JobSpec, context: z.RefinementCtx): void {
  checkOwn(spec, issues(context));
  checkShared(spec, issues(context));
}

export function checkOwn(spec: OwnFields, fail: Fail): void {
  if (!spec.command[0]) fail(['command', 0], 'the program to run is empty');
  let commandBytes = 0;
  for (const word of spec.command) commandBytes += word.length;
  if (commandBytes > JOB_LIMITS.commandBytes) {
    fail(['command'], `is ${commandBytes} characters, the limit is ${JOB_LIMITS.commandBytes}`);
  }
  let envBytes = 0;
  let envEntries = 0;
  for (const key in spec.env) {
    envBytes += key.length + (spec.env[key]?.length ?? 0);
    envEntries++;
  }
  if (envBytes > JOB_LIMITS.envBytes || envEntries > JOB_LIMITS.envEntries) {
    fail(
      ['env'],
      `has ${envEntries} entries of ${envBytes} characters; ` +
        `at most ${JOB_LIMITS.envEntries} of ${JOB_LIMITS.envBytes} together`,
    );
  }
}

function checkShared(spec: Omit<JobSpec, keyof OwnFields>, fail: Fail): void {
  const device = spec.resources.device;
  if (device && device.share < 1000 && device.count !== 1) {
    fail(['resources', 'device', 'share'], 'a share is of one device: count must be 1');
  }
  if (
    spec.shape.kind === 'array' &&
    new Set(spec.shape.indices).size !== spec.shape.indices.length
  ) {
    fail(['shape', 'indices'], 'an index appears twice');
  }
}

export const submitBatch = z
  .strictObject({ jobs: z.array(jobSpec).min(1).max(JOB_LIMITS.batchJobs) })
  .meta({ examples: [{ jobs: [EXAMPLE] }] });
