/** Random values of what a job brings, needs and leaves beside its command, within the limits. */
import * as fc from 'fast-check';
import { CHECKPOINT_SIGNALS, IDLE_ACTIONS, NAME_RULES } from '../../src/model/jobParts.ts';
import { NOTICES, SECRET_FORMS, type JobParts } from '../../src/model/jobParts.ts';

const word = fc
  .string({ minLength: 1, maxLength: 8, unit: fc.constantFrom('a', 'b', 'X', '9', '_') })
  .map((letters) => `w${letters}`);
const duration = fc.integer({ min: 60_000, max: 86_400_000 });
const bytes = fc.maxSafeNat();
export const blobHash = fc
  .string({ minLength: 64, maxLength: 64, unit: fc.constantFrom('0', '9', 'a', 'f') })
  .map((digits) => `sha256:${digits}`);
const hashOrNone = fc.oneof(fc.constant(''), blobHash);
const maybe = <Value>(value: fc.Arbitrary<Value>): fc.Arbitrary<Value | undefined> =>
  fc.option(value, { nil: undefined });
const someOf = <Value>(value: fc.Arbitrary<Value>, by: (value: Value) => string) =>
  fc.uniqueArray(value, { minLength: 1, maxLength: 3, selector: by });

const secret = fc.record({ name: word, as: fc.constantFrom(...SECRET_FORMS), target: word });
const secrets = maybe(someOf(secret, ({ as, target }) => `${as} ${target}`));
const files = {
  code: maybe(fc.record({ bundle: blobHash, folder: word, commit: word, diff: hashOrNone })),
  inputs: maybe(
    someOf(
      fc.record({ name: word, uri: word.map((key) => `s3://bucket/${key}`), hash: hashOrNone }),
      ({ name }) => name,
    ),
  ),
  environment: maybe(
    fc.oneof(
      fc.record({
        image: word,
        shmBytes: bytes,
        registrySecret: word,
        modules: fc.constant<string[]>([]),
        lock: fc.constant(''),
      }),
      fc.record({
        image: fc.constant(''),
        shmBytes: fc.constant(0),
        registrySecret: fc.constant(''),
        modules: fc.array(word, { maxLength: 2 }),
        lock: word,
      }),
    ),
  ),
  checkpoint: maybe(
    fc.record({
      dir: word,
      everyMs: duration,
      signal: fc.constantFrom(...CHECKPOINT_SIGNALS),
      beforeDeadlineMs: duration,
      keep: fc.integer({ min: 1, max: 100 }),
    }),
  ),
};

const idle = fc.record({
  belowPercent: fc.integer({ min: 0, max: 100 }),
  forMs: duration,
  action: fc.constantFrom(...IDLE_ACTIONS),
});

export const jobParts: fc.Arbitrary<JobParts> = fc.record({
  ...files,
  secrets,
  rules: maybe(
    fc.record({
      keepOnFailureMs: duration,
      idle: fc.option(idle),
      notify: fc.array(
        fc.record({ to: word, on: fc.uniqueArray(fc.constantFrom(...NOTICES), { minLength: 1 }) }),
        { maxLength: 2 },
      ),
      nameTaken: fc.constantFrom(...NAME_RULES),
      maySubmit: fc.boolean(),
      outliveParent: fc.boolean(),
      outputs: fc.array(word, { maxLength: 2 }),
      requeueExitCode: fc.nat({ max: 255 }),
    }),
  ),
  annotations: maybe(fc.dictionary(word, word, { minKeys: 1, maxKeys: 3, noNullPrototype: true })),
});

export const orderParts = fc.record({
  ...files,
  restore: maybe(fc.array(blobHash, { minLength: 1, maxLength: 3 })),
  secrets,
  outputs: maybe(fc.array(word, { minLength: 1, maxLength: 2 })),
  idle: maybe(idle),
  maySubmit: fc.constantFrom(true, undefined),
  downstream: fc.constantFrom(true, undefined),
  keepOnFailureMs: maybe(duration),
  timeLimitMs: maybe(duration),
});
