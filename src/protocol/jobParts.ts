/** REST schemas of what a job may bring, need and leave beside its command, and their limits. */
import { z } from 'zod';
import { BLOB_HASH } from '../model/blob.ts';
import {
  CHECKPOINT_SIGNALS,
  IDLE_ACTIONS,
  NAME_RULES,
  NOTICES,
  SECRET_FORMS,
} from '../model/jobParts.ts';
import { clean, durationMs } from './texts.ts';

/** Named limits of these parts, each with a test. */
export const PART_LIMITS = {
  inputs: 256,
  uriLength: 4096,
  modules: 64,
  checkpointsKept: 100,
  secrets: 64,
  notifyRules: 16,
  outputs: 64,
  patternLength: 1024,
  annotations: 16,
  /** All of them together, names included. */
  annotationLength: 64 * 1024,
} as const;

const hash = z.string().regex(BLOB_HASH, 'is not sha256: and 64 hexadecimal digits');
const hashOrNone = z.union([z.literal(''), hash]);
/** One name in a directory: neither a path nor hidden. */
const fileName = clean(200).regex(
  /^[^./][^/]*$/,
  'is a file name without / and not beginning with .',
);
const below = (path: string): boolean => !path.startsWith('/') && !path.split('/').includes('..');
/** A path that stays below the directory it is taken from. */
const pathBelow = clean(4096).refine(below, 'must stay below the working directory');

const code = z.strictObject({
  bundle: hash,
  folder: pathBelow.default(''),
  commit: clean(200).default(''),
  diff: hashOrNone.default(''),
});

const SCHEMES =
  /^((blob|tree):sha256:[0-9a-f]{64}$|data:.|(file|pool):\/\/\/|(s3|https?|hf):\/\/.)/;

const input = z.strictObject({
  name: fileName,
  uri: clean(PART_LIMITS.uriLength).regex(
    SCHEMES,
    'is none of blob:HASH, tree:HASH, data:NAME, file:///PATH, pool:///PATH, s3://…, ' +
      'http(s)://…, hf://…',
  ),
  hash: hashOrNone.default(''),
});

const environment = z
  .strictObject({
    image: clean(1024)
      .regex(/^([^-\s][^\s]*)?$/, 'is not the name of an image')
      .default(''),
    shmBytes: z.int().min(0).default(0),
    registrySecret: clean(200).default(''),
    modules: z.array(clean(256).min(1)).max(PART_LIMITS.modules).default([]),
    lock: pathBelow.default(''),
  })
  .superRefine(({ image, shmBytes, registrySecret, modules, lock }, context) => {
    const refuse = (name: string, message: string): void =>
      context.addIssue({ code: 'custom', path: [name], message });
    // What an image holds is not the machine's: neither its modules nor its Python reach into it.
    if (image && lock) refuse('lock', 'excludes an image, which brings its own environment');
    if (image && modules.length > 0)
      refuse('modules', 'excludes an image, which brings its own programs');
    if (!image && registrySecret) refuse('registrySecret', 'is for an image, and there is none');
    if (!image && shmBytes > 0) refuse('shmBytes', 'is for an image, and there is none');
  });

const checkpoint = z.strictObject({
  dir: pathBelow.default(''),
  everyMs: durationMs.min(1000).default(60_000),
  signal: z.enum(CHECKPOINT_SIGNALS).default(''),
  beforeDeadlineMs: durationMs.default(120_000),
  keep: z.int().min(1).max(PART_LIMITS.checkpointsKept).default(3),
});

const secret = z
  .strictObject({
    name: clean(200).min(1),
    as: z.enum(SECRET_FORMS).default('env'),
    target: clean(200).default(''),
  })
  .superRefine(({ name, as, target }, context) => {
    const end = target || name;
    const fits = as === 'env' ? /^[A-Za-z_][A-Za-z0-9_]*$/ : /^[^./][^/]*$/;
    if (fits.test(end)) return;
    const wanted = as === 'env' ? 'name of a variable' : 'file name';
    context.addIssue({
      code: 'custom',
      path: ['target'],
      message: `"${end}" is no ${wanted}; name one with target`,
    });
  });

const rules = z.strictObject({
  keepOnFailureMs: durationMs.default(0),
  idle: z
    .strictObject({
      belowPercent: z.number().min(0).max(100).default(5),
      forMs: durationMs.min(1000).default(1_800_000),
      action: z.enum(IDLE_ACTIONS).default('warn'),
    })
    .nullable()
    .default(null),
  notify: z
    .array(
      z.strictObject({
        to: clean(200).min(1),
        on: z.array(z.enum(NOTICES)).min(1).max(NOTICES.length).default(['failed', 'done']),
      }),
    )
    .max(PART_LIMITS.notifyRules)
    .default([]),
  nameTaken: z.enum(NAME_RULES).default('allow'),
  maySubmit: z.boolean().default(false),
  outliveParent: z.boolean().default(false),
  outputs: z
    .array(clean(PART_LIMITS.patternLength).min(1).refine(below, 'must stay below it'))
    .max(PART_LIMITS.outputs)
    .default([]),
  requeueExitCode: z.int().min(0).max(255).default(0),
});

const annotations = z
  .record(clean(200).min(1), clean(PART_LIMITS.annotationLength))
  .superRefine((texts, context) => {
    const entries = Object.entries(texts);
    const length = entries.reduce((sum, [name, text]) => sum + name.length + text.length, 0);
    if (entries.length <= PART_LIMITS.annotations && length <= PART_LIMITS.annotationLength) return;
    const message =
      `${entries.length} of ${length} characters; ` +
      `at most ${PART_LIMITS.annotations} of ${PART_LIMITS.annotationLength} together`;
    context.addIssue({ code: 'custom', message });
  });

const distinct = <Item>(name: string, keyOf: (item: Item) => string) => {
  return (items: readonly Item[], context: z.RefinementCtx): void => {
    const seen = new Set<string>();
    for (const [at, item] of items.entries()) {
      const key = keyOf(item);
      if (seen.has(key)) {
        context.addIssue({ code: 'custom', path: [at], message: `${name} "${key}" appears twice` });
      }
      seen.add(key);
    }
  };
};

/** Spread into the schema of a spec. */
export const jobParts = {
  code: code.optional(),
  inputs: z
    .array(input)
    .max(PART_LIMITS.inputs)
    .superRefine(distinct<{ name: string }>('the input', ({ name }) => name))
    .optional(),
  environment: environment.optional(),
  checkpoint: checkpoint.optional(),
  secrets: z
    .array(secret)
    .max(PART_LIMITS.secrets)
    .superRefine(
      distinct<{ name: string; as: string; target: string }>(
        'the target',
        ({ name, as, target }) => `${as} ${target || name}`,
      ),
    )
    .optional(),
  rules: rules.optional(),
  annotations: annotations.optional(),
};
