/** A job as people describe it, by flags or in a file, made into what the API takes. */
import path from 'node:path';
import type { SubmittedSpec } from '../protocol/jobSpec.ts';
import { UsageError, wholeNumber } from './args.ts';
import { parseDuration } from './durations.ts';
import { envFileEntries, envFromList, type Environment } from './environment.ts';
import { nearest } from '../lib/nearest.ts';
import { ENVIRONMENT_READERS } from './environmentDraft.ts';
import { KEEP_READERS } from './keepDraft.ts';
import { RULE_READERS } from './ruleDraft.ts';
import { PLACEMENT_READERS } from './placementDraft.ts';
import { parseArray, parseCpus, parseGpus, parseMemory } from './resources.ts';
import { asText } from './values.ts';
import { readInputs } from './inputDraft.ts';

/** Keys as in a job file; `run` fills the same ones from its flags. */
export type JobDraft = Record<string, unknown>;

export interface DraftContext {
  cwd: string;
  env: Environment;
  /** How a key is called where the user wrote it: `gpus`, or `--gpus`. */
  label(key: string): string;
}

type Reader = (spec: SubmittedSpec, value: unknown, what: string, context: DraftContext) => void;

const READERS: Record<string, Reader> = {
  command: readCommand,
  name: (spec, value, what) => (spec.name = asText(value, what)),
  pool: (spec, value, what) => (spec.pool = asText(value, what)),
  priority: (spec, value, what) =>
    (spec.priority = asText(value, what) as NonNullable<SubmittedSpec['priority']>),
  // A relative one is a folder here and goes along, see bundle/bringCode.ts.
  workdir: (spec, value, what) => (spec.workdir = asText(value, what)),
  inputs: readInputs,
  retries: (spec, value, what) => (spec.retries = wholeNumber(asText(value, what), what)),
  time: (spec, value, what) => (spec.timeLimitMs = parseDuration(asText(value, what), what)),
  startWithin: (spec, value, what) =>
    (spec.startWithinMs = parseDuration(asText(value, what), what)),
  gpus: (spec, value, what) => (resources(spec).device = parseGpus(asText(value, what), what)),
  cpus: (spec, value, what) => (resources(spec).cpuMillis = parseCpus(asText(value, what), what)),
  mem: (spec, value, what) =>
    (resources(spec).memoryBytes = parseMemory(asText(value, what), what)),
  ports: (spec, value, what) => (resources(spec).ports = wholeNumber(asText(value, what), what)),
  array: (spec, value, what) =>
    (spec.shape = { kind: 'array', ...parseArray(arrayText(value, what), what) }),
  gang: (spec, value, what) =>
    (spec.shape = { kind: 'gang', size: wholeNumber(asText(value, what), what, 1) }),
  ...PLACEMENT_READERS,
  ...ENVIRONMENT_READERS,
  ...KEEP_READERS,
  ...RULE_READERS,
  envFile: readEnvFiles,
  env: readEnv,
  labels: (spec, value, what) => (spec.labels = { ...spec.labels, ...textMap(value, what) }),
};

/** Part of the API's own specification and checked there. */
const PASSED_THROUGH = [
  'resources',
  'shape',
  'timeLimitMs',
  'startWithinMs',
  'graceMs',
  'maxInterruptions',
  'attemptLeaseMs',
  'placement',
  'maxCostMicros',
  'code',
  'environment',
  'secrets',
  'rules',
] as const;

const ALIASES: Record<string, string> = {
  nodes: 'gang',
  label: 'labels',
  input: 'inputs',
  memory: 'mem',
  constraints: 'constraint',
  interruptible: 'spot',
  outputs: 'output',
  modules: 'module',
};

const IN_PLACEMENT = [
  'constraint',
  'prefer',
  'spread',
  'exclusive',
  'antiAffinity',
  'locality',
  'spot',
  'trust',
] as const;

/** Pairs that say the same thing: only one may be given. */
const EXCLUSIVE = [
  ['array', 'gang'],
  ['array', 'shape'],
  ['gang', 'shape'],
  ['gpus', 'resources'],
  ['cpus', 'resources'],
  ['mem', 'resources'],
  ['ports', 'resources'],
  ['time', 'timeLimitMs'],
  ['startWithin', 'startWithinMs'],
  ['maxCost', 'maxCostMicros'],
  ['workdir', 'code'],
  ['secret', 'secrets'],
  ...(['image', 'shm', 'registrySecret', 'lock', 'module'] as const).map(
    (key) => [key, 'environment'] as const,
  ),
  ['idleWarn', 'idleStop'],
  ...IN_PLACEMENT.map((key) => [key, 'placement'] as const),
] as const;

const KNOWN = [...Object.keys(READERS), ...PASSED_THROUGH];

export function toSpec(draft: JobDraft, context: DraftContext): SubmittedSpec {
  const values = new Map<string, unknown>();
  for (const [written, value] of Object.entries(draft)) {
    const key = canonicalKey(written);
    if (values.has(key)) throw new UsageError(`${context.label(key)} is given twice`);
    if (value !== undefined && value !== null) values.set(key, value);
  }
  for (const [one, other] of EXCLUSIVE) {
    if (values.has(one) && values.has(other)) {
      throw new UsageError(`${context.label(one)} and ${context.label(other)} exclude each other`);
    }
  }
  const spec: SubmittedSpec = { command: [] };
  for (const key of PASSED_THROUGH) {
    if (values.has(key)) Object.assign(spec, { [key]: values.get(key) });
  }
  for (const [key, read] of Object.entries(READERS)) {
    if (values.has(key)) read(spec, values.get(key), context.label(key), context);
  }
  if (spec.command.length === 0) {
    throw new UsageError(
      'there is no command to run',
      'a job needs `command:`, a line for sh or a list of words',
    );
  }
  return spec;
}

/** start-within, start_within and startWithin are one key. */
function canonicalKey(written: string): string {
  const camel = written.replace(/[-_]([a-z])/g, (_, letter: string) => letter.toUpperCase());
  const key = ALIASES[camel] ?? camel;
  if (KNOWN.includes(key)) return key;
  const close = nearest(camel, KNOWN);
  throw new UsageError(`unknown key ${JSON.stringify(written)}`, close && `did you mean ${close}?`);
}

function readCommand(spec: SubmittedSpec, value: unknown, what: string): void {
  if (typeof value === 'string' && value.trim() !== '') {
    spec.command = ['/bin/sh', '-c', value];
  } else if (Array.isArray(value) && value.length > 0) {
    spec.command = value.map((word) => asText(word, what));
  } else {
    throw new UsageError(`${what} is neither a line for sh nor a list of words`);
  }
}

function readEnv(spec: SubmittedSpec, value: unknown, what: string, { env }: DraftContext): void {
  const entries = Array.isArray(value)
    ? envFromList(
        value.map((entry) => asText(entry, what)),
        what,
        env,
      )
    : textMap(value, what);
  spec.env = { ...spec.env, ...entries };
}

function readEnvFiles(
  spec: SubmittedSpec,
  value: unknown,
  what: string,
  { cwd, env }: DraftContext,
): void {
  for (const file of Array.isArray(value) ? value : [value]) {
    const entries = envFileEntries(path.resolve(cwd, asText(file, what)), what, env);
    spec.env = { ...spec.env, ...entries };
  }
}

function resources(spec: SubmittedSpec): NonNullable<SubmittedSpec['resources']> {
  return (spec.resources ??= {});
}

/** `array: 0-9` is text, `array: [0, 3]` a list of numbers. */
function arrayText(value: unknown, what: string): string {
  if (!Array.isArray(value)) return asText(value, what);
  return value.map((part) => asText(part, what)).join(',');
}

function textMap(value: unknown, what: string): Record<string, string> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new UsageError(`${what} is not a list of names and values`);
  }
  return Object.fromEntries(
    Object.entries(value).map(([key, entry]) => [key, asText(entry, `${what}.${key}`)]),
  );
}
