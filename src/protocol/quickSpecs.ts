/**
 * Submissions checked quickly. Jobs of one mostly differ in name, command, env and labels alone:
 * these are checked by hand, by the schema's own rules, and the rest once for all neighbours that
 * share it. What is not plainly right gives null, and the schema says what is wrong with it.
 */
import type { JobSpec } from '../model/job.ts';
import {
  checkOwn,
  checkTexts,
  ENV_RULE,
  JOB_LIMITS,
  jobSpec,
  LABEL_RULE,
  type OwnFields,
} from './jobSpec.ts';
import { isClean } from './texts.ts';

type Fields = Record<string, unknown>;

export function quickBatch(body: unknown): { jobs: JobSpec[] } | null {
  if (!isObject(body)) return null;
  const { jobs, ...others } = body;
  if (!Array.isArray(jobs) || Object.keys(others).length > 0) return null;
  if (jobs.length === 0 || jobs.length > JOB_LIMITS.batchJobs) return null;
  const specs: JobSpec[] = [];
  for (const job of jobs) {
    const spec = quickSpec(job);
    if (!spec) return null;
    specs.push(spec);
  }
  return { jobs: specs };
}

export function quickSpec(job: unknown): JobSpec | null {
  if (!isObject(job)) return null;
  const shared = sharedOf(job);
  if (!shared) return null;
  const { name = shared.name, command, env = shared.env, labels = shared.labels } = job;
  if (!isText(name, JOB_LIMITS.nameLength) || !isCommand(command)) return null;
  let isRight = true;
  const fail = (): void => {
    isRight = false;
  };
  if (env !== shared.env) checkTexts(env, ENV_RULE, fail);
  if (labels !== shared.labels) checkTexts(labels, LABEL_RULE, fail);
  if (!isRight) return null;
  const own = { name, command, env, labels } as OwnFields;
  checkOwn(own, fail);
  if (!isRight) return null;
  return { ...shared, name: own.name, command, env: own.env, labels: own.labels };
}

const PLAIN = jobSpec.parse({ command: ['true'] });
/** Longer ones are left to the schema rather than kept. */
const SHARED_CHARACTERS = 16 * 1024;
let last: { text: string; spec: JobSpec } = { text: '{}', spec: PLAIN };

/** A right spec with all that is not the job's own; null when that is not right. */
function sharedOf(job: Fields): JobSpec | null {
  let others: Fields | null = null;
  for (const key in job) {
    if (key === 'name' || key === 'command' || key === 'env' || key === 'labels') continue;
    // Would set what the schema must see.
    if (key === '__proto__') return null;
    others ??= {};
    others[key] = job[key];
  }
  if (!others) return PLAIN;
  const text = JSON.stringify(others);
  if (text === last.text) return last.spec;
  if (text.length > SHARED_CHARACTERS) return null;
  const { success, data } = jobSpec.safeParse({ ...others, command: PLAIN.command });
  if (!success) return null;
  last = { text, spec: data };
  return data;
}

function isCommand(value: unknown): value is string[] {
  if (!Array.isArray(value) || value.length > JOB_LIMITS.commandWords) return false;
  for (const word of value) if (!isText(word, JOB_LIMITS.commandBytes)) return false;
  return true;
}

function isText(value: unknown, limit: number): value is string {
  return typeof value === 'string' && value.length <= limit && isClean(value);
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
