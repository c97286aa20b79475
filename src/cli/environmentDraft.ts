/** What a job runs in: an image, or a lock file and modules of the machine. */
import { existsSync } from 'node:fs';
import path from 'node:path';
import { LOCK_FILES } from '../model/jobParts.ts';
import type { SubmittedSpec } from '../protocol/jobSpec.ts';
import { UsageError, type OptionTable } from './args.ts';
import { parseMemory } from './resources.ts';
import { asText } from './values.ts';

type Environment = NonNullable<SubmittedSpec['environment']>;
type Reader = (spec: SubmittedSpec, value: unknown, what: string) => void;

export const environmentOptions = {
  image: { kind: 'text', value: 'IMAGE', help: 'run in this container image' },
  shm: { kind: 'text', value: 'SIZE', help: 'of /dev/shm in the container: 8G' },
  'registry-secret': { kind: 'text', value: 'S', help: 'a secret user:password for its registry' },
  lock: {
    kind: 'text',
    value: 'FILE',
    help: 'build its environment from this lock file; auto: look for one (as ./DIR does)',
  },
  'no-lock': { kind: 'flag', help: 'leave the lock file of --workdir alone' },
  module: { kind: 'list', value: 'M', help: 'environment module of the worker to load' },
} as const satisfies OptionTable;

export const ENVIRONMENT_READERS: Record<string, Reader> = {
  image: (spec, value, what) => (environment(spec).image = asText(value, what)),
  shm: (spec, value, what) => (environment(spec).shmBytes = parseMemory(asText(value, what), what)),
  registrySecret: (spec, value, what) => (environment(spec).registrySecret = asText(value, what)),
  // `lock: false` and `lock: none` are said so that none is looked for.
  lock: (spec, value, what) => {
    const text = value === false ? 'none' : value === true ? 'auto' : asText(value, what);
    environment(spec).lock = text === 'none' ? '' : text;
  },
  noLock: (spec, _value, what) => {
    const own = environment(spec);
    if (own.lock) throw new UsageError(`${what} and --lock exclude each other`);
    own.lock = '';
  },
  module: (spec, value, what) => {
    const modules = Array.isArray(value) ? value : asText(value, what).split(/\s+/);
    environment(spec).modules = modules.map((one) => asText(one, what));
  },
};

function environment(spec: SubmittedSpec): Environment {
  return (spec.environment ??= {});
}

/** A folder that goes along brings its environment too, unless the job said what it runs in. */
export function withFoundLock(spec: SubmittedSpec, folder: string): SubmittedSpec {
  const { image, lock } = spec.environment ?? {};
  if (image || lock !== undefined) return spec;
  if (!LOCK_FILES.some((name) => existsSync(path.join(folder, name)))) return spec;
  return { ...spec, environment: { ...spec.environment, lock: 'auto' } };
}
