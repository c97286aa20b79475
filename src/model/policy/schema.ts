/**
 * A site's policy as an operator writes it: what is filled in where a user said nothing, and rules
 * that a job must keep to be accepted. See docs/policy.md.
 */
import { z } from 'zod';
import { readDuration } from '../../lib/durations.ts';
import { Glob } from '../../lib/glob.ts';
import { PRIORITIES } from '../job.ts';
import { TRUSTS } from '../placement.ts';
import { DEVICE_KINDS } from '../resources.ts';
import { ROLE_NAMES } from '../roles.ts';
import { LEAVING_JOBS } from '../tenant.ts';
import { SCOPES } from '../token.ts';
import { fullImageName } from './images.ts';

/** Named limits of the file, each with a test. */
export const POLICY_LIMITS = {
  fileBytes: 1024 * 1024,
  defaults: 200,
  rules: 500,
  patterns: 1000,
  patternLength: 1024,
  poolNames: 32,
} as const;

const SHAPES = ['single', 'array', 'gang'] as const;

/** What a job may hold must stand in its defaults too. */
const text = z
  .string()
  .refine((value) => !value.includes('\0') && value.isWellFormed(), 'holds half a character');
const word = z.string().min(1).max(POLICY_LIMITS.patternLength);
const sentence = z.string().min(1).max(1000);
const glob = word.transform((text) => new Glob(text));
const globs = z.array(glob).min(1).max(POLICY_LIMITS.patterns);
/** Compared with the whole name, registry and all: `ubuntu` alone would match nothing. */
const imageGlob = word.superRefine(checkImagePattern).transform((text) => new Glob(text));
const imageGlobs = z.array(imageGlob).min(1).max(POLICY_LIMITS.patterns);
const names = z.array(z.string().min(1).max(100)).min(1).max(POLICY_LIMITS.poolNames);
const count = z.int().min(0);
const duration = z.union([z.string(), z.int()]).transform((written, context) => {
  const ms = readDuration(String(written));
  if (ms !== undefined && ms > 0) return ms;
  const message = `"${written}" is no duration: write 90s, 45m, 12h, 7d or 1-00:00:00`;
  context.addIssue({ code: 'custom', message });
  return z.NEVER;
});

/** Who calls: any of a list, and every list that is there. */
const whoMatch = {
  tenants: globs.optional(),
  users: globs.optional(),
  /** Roles and scopes: who may do at least as much as one of them. */
  roles: z
    .array(z.enum([...ROLE_NAMES, ...SCOPES]))
    .min(1)
    .optional(),
  /** The job has each of these labels, with such a value. */
  labels: z.record(z.string().min(1).max(63), glob).optional(),
};

const defaultMatch = z.strictObject(whoMatch);
export type DefaultMatch = z.output<typeof defaultMatch>;

const ruleMatch = z.strictObject({
  ...whoMatch,
  pools: globs.optional(),
  priorities: z.array(z.enum(PRIORITIES)).min(1).optional(),
  kinds: z.array(z.enum(DEVICE_KINDS)).min(1).optional(),
  /** It holds at least so many devices at once. */
  leastDevices: z.int().min(1).optional(),
  shapes: z.array(z.enum(SHAPES)).min(1).optional(),
  images: imageGlobs.optional(),
  trusts: z.array(z.enum(TRUSTS)).min(1).optional(),
  interruptible: z.boolean().optional(),
});
export type RuleMatch = z.output<typeof ruleMatch>;

const defaults = z
  .strictObject({
    match: defaultMatch.default({}),
    timeLimit: duration.optional(),
    startWithin: duration.optional(),
    priority: z.enum(PRIORITIES).optional(),
    pool: text.min(1).max(100).optional(),
    retries: z.int().min(0).max(100).optional(),
    trust: z.enum(TRUSTS).optional(),
    image: text
      .regex(/^[^-\s][^\s]*$/, 'is not the name of an image')
      .max(1024)
      .optional(),
    env: z.record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,255}$/), text.max(4096)).optional(),
    labels: z.record(text.min(1).max(63), text.max(256)).optional(),
  })
  .refine((one) => Object.keys(one).length > 1, 'fills in nothing: say for instance timeLimit');
export type PolicyDefaults = z.output<typeof defaults>;

/** Denied wins; where nothing is said to be allowed, all else is. */
const lists = <Item extends z.ZodType>(item: Item) => ({
  allow: item.optional(),
  deny: item.optional(),
});

const demands = z
  .strictObject({
    timeLimitRequired: z.literal(true).optional(),
    longestTimeLimit: duration.optional(),
    images: z
      .strictObject({
        ...lists(imageGlobs),
        /** Named by what it holds, which cannot be another tomorrow. */
        digestRequired: z.boolean().default(false),
        required: z.boolean().default(false),
      })
      .optional(),
    /** By name, not by pattern: what names no pool is kept to these. */
    pools: z.strictObject(lists(names)).optional(),
    trusts: z.array(z.enum(TRUSTS)).min(1).optional(),
    priorities: z.array(z.enum(PRIORITIES)).min(1).optional(),
    mostDevices: count.optional(),
    mostDevicesPerTask: count.optional(),
    mostArrayTasks: count.optional(),
    mostGangTasks: count.optional(),
    mostRetries: count.optional(),
    secrets: z.strictObject(lists(globs)).optional(),
    inputs: z.strictObject(lists(globs)).optional(),
    workdirs: z.strictObject(lists(globs)).optional(),
    /** Labels it must have, each with values that fit. */
    labels: z.record(z.string().min(1).max(63), globs).optional(),
    /** Nothing is allowed; the text says why. */
    refuse: sentence.optional(),
  })
  .refine((one) => Object.keys(one).length > 0, 'demands nothing');
export type Demands = z.output<typeof demands>;

const rule = z.strictObject({
  name: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/, 'is no name (letters, digits, . _ -)'),
  /** Shown with each refusal: why, and where to ask. */
  because: sentence.optional(),
  match: ruleMatch.default({}),
  /** Whoever and whatever fits this is exempt. */
  unless: ruleMatch
    .refine((one) => Object.keys(one).length > 0, 'exempts everything: say whom')
    .optional(),
  require: demands,
});
export type PolicyRule = z.output<typeof rule>;

const leaving = z.strictObject({ jobs: z.enum(LEAVING_JOBS).default('keep') });

export const policySchema = z
  .strictObject({
    defaults: z.array(defaults).max(POLICY_LIMITS.defaults).default([]),
    rules: z.array(rule).max(POLICY_LIMITS.rules).default([]),
    leaving: leaving.prefault({}),
  })
  .superRefine(checkTogether);
export type Policy = z.output<typeof policySchema>;

function checkTogether({ defaults: fills, rules }: Policy, context: z.RefinementCtx): void {
  const fail = (path: (string | number)[], message: string): void =>
    context.addIssue({ code: 'custom', path, message });
  const seen = new Set<string>();
  for (const [at, { name }] of rules.entries()) {
    if (seen.has(name)) fail(['rules', at, 'name'], `two rules have the name "${name}"`);
    seen.add(name);
  }
  // Else what is filled in would depend on whether it was filled in before.
  const filled = new Set(fills.flatMap(({ labels = {} }) => Object.keys(labels)));
  for (const [at, { match }] of fills.entries()) {
    for (const name of Object.keys(match.labels ?? {})) {
      if (!filled.has(name)) continue;
      fail(['defaults', at, 'match', 'labels', name], 'is itself filled in by a default');
    }
  }
}

function checkImagePattern(pattern: string, context: z.RefinementCtx): void {
  const [first = '', ...rest] = pattern.split('/');
  const hasRegistry = rest.length > 0 && /[.:*]|^localhost$/.test(first);
  if (pattern.startsWith('*') || pattern.startsWith('/') || hasRegistry) return;
  const full = fullImageName(pattern);
  const message = `names no registry and would match nothing; did you mean ${full}?`;
  context.addIssue({ code: 'custom', message });
}
