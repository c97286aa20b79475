/** What rules demand of a job: each demand says which value breaks it and what would be allowed. */
import { anyMatches, type Glob } from '../../lib/glob.ts';
import { shortDuration } from '../../lib/show.ts';
import type { JobSpec } from '../job.ts';
import { fullImageName, fullInputName, fullPath, hasDigest } from './images.ts';
import { devicesAtOnce, devicesPerTask, poolsOf } from './match.ts';
import type { Demands } from './schema.ts';

type Check<Wanted> = (wanted: Wanted, spec: JobSpec, fail: (what: string) => void) => void;

/** One line for each demand that a rule can make. Pools that a job leaves open: see pools.ts. */
const CHECKS: { [Name in keyof Demands]-?: Check<NonNullable<Demands[Name]>> } = {
  timeLimitRequired(_, { timeLimitMs }, fail) {
    if (timeLimitMs === 0) fail('it has no time limit; say one with --time');
  },
  longestTimeLimit(longestMs, { timeLimitMs }, fail) {
    const longest = shortDuration(longestMs);
    if (timeLimitMs === 0) fail(`it has no time limit; at most ${longest} is allowed`);
    else if (timeLimitMs > longestMs) {
      fail(`the time limit ${shortDuration(timeLimitMs)} is over the longest allowed, ${longest}`);
    }
  },
  images(wanted, { environment }, fail) {
    const image = environment?.image ?? '';
    if (image === '') {
      if (wanted.required) fail(`it names no image; ${allowedOf(wanted.allow, 'any image')}`);
      return;
    }
    checkLists(wanted, [[`the image ${show(image)}`, fullImageName(image)]], fail);
    if (wanted.digestRequired && !hasDigest(image)) {
      fail(`the image ${show(image)} is not named by its digest (NAME@sha256:…)`);
    }
  },
  pools({ allow, deny }, spec, fail) {
    for (const pool of poolsOf(spec) ?? []) {
      if (deny?.includes(pool)) fail(`the pool ${show(pool)} is not allowed`);
      else if (allow && !allow.includes(pool)) {
        fail(`the pool ${show(pool)} is not allowed; allowed are ${list(allow)}`);
      }
    }
  },
  trusts: (allowed, { placement }, fail) => oneOf('the trust', placement.trust, allowed, fail),
  priorities: (allowed, { priority }, fail) => oneOf('the priority', priority, allowed, fail),
  mostDevices: (most, spec, fail) => atMost(devicesAtOnce(spec), most, 'devices at once', fail),
  mostDevicesPerTask: (most, spec, fail) =>
    atMost(devicesPerTask(spec), most, 'devices for each task', fail),
  mostArrayTasks: (most, { shape }, fail) =>
    atMost(shape.kind === 'array' ? shape.indices.length : 0, most, 'array tasks', fail),
  mostGangTasks: (most, { shape }, fail) =>
    atMost(shape.kind === 'gang' ? shape.size : 0, most, 'tasks of a gang', fail),
  mostRetries: (most, { retries }, fail) => atMost(retries, most, 'retries', fail),
  secrets(lists, { secrets = [], environment }, fail) {
    const names = secrets.map(({ name }) => name);
    if (environment?.registrySecret) names.push(environment.registrySecret);
    checkLists(
      lists,
      names.map((name) => [`the secret ${show(name)}`, name]),
      fail,
    );
  },
  inputs(lists, { inputs = [] }, fail) {
    const named = inputs.map(
      ({ uri }) => [`the input ${show(withoutLogin(uri))}`, fullInputName(uri)] as const,
    );
    checkLists(lists, named, fail);
  },
  workdirs(lists, { workdir }, fail) {
    if (workdir === '') return;
    checkLists(lists, [[`the directory ${show(workdir)}`, fullPath(workdir)]], fail);
  },
  labels(wanted, { labels }, fail) {
    for (const [name, globs] of Object.entries(wanted)) {
      const values = list(globs.map(({ text }) => text));
      const value = Object.hasOwn(labels, name) ? labels[name] : undefined;
      if (value === undefined) fail(`the label ${name} is missing; allowed are ${values}`);
      else if (!anyMatches(globs, value)) {
        fail(`the label ${name}=${show(value)} is not allowed; allowed are ${values}`);
      }
    }
  },
  refuse: (sentence, _, fail) => fail(sentence),
};

/** Calls back with a sentence for each demand that the job does not meet. */
export function checkDemands(demands: Demands, spec: JobSpec, fail: (what: string) => void): void {
  let name: keyof Demands;
  for (name in demands) {
    const wanted = demands[name];
    if (wanted !== undefined) (CHECKS[name] as Check<unknown>)(wanted, spec, fail);
  }
}

type Lists = { allow?: Glob[] | undefined; deny?: Glob[] | undefined };

/** Pairs of how a thing is called and what is compared; null can be compared with nothing. */
function checkLists(
  { allow, deny }: Lists,
  named: readonly (readonly [string, string | null])[],
  fail: (what: string) => void,
): void {
  for (const [called, name] of named) {
    const denied = name === null ? undefined : deny?.find((glob) => glob.matches(name));
    if (denied) fail(`${called} is not allowed: ${denied.text} is denied`);
    else if (name === null || (allow && !anyMatches(allow, name))) {
      fail(`${called} is not allowed; ${allowedOf(allow, 'it can be read by nobody')}`);
    }
  }
}

function allowedOf(allow: readonly Glob[] | undefined, otherwise: string): string {
  return allow ? `allowed are ${list(allow.map(({ text }) => text))}` : otherwise;
}

function oneOf(
  called: string,
  value: string,
  allowed: readonly string[],
  fail: (what: string) => void,
): void {
  if (!allowed.includes(value)) fail(`${called} is ${value}; allowed are ${list(allowed)}`);
}

function atMost(value: number, most: number, of: string, fail: (what: string) => void): void {
  if (value > most) fail(`it has ${value} ${of}, at most ${most} are allowed`);
}

const LISTED = 10;

function list(values: readonly string[]): string {
  const more = values.length - LISTED;
  return values.slice(0, LISTED).join(', ') + (more > 0 ? ` and ${more} more` : '');
}

/** An address may hold a password, and an error is passed on. */
function withoutLogin(uri: string): string {
  return uri.replace(/^(https?:\/\/)[^/@]*@/i, '$1');
}

const SHOWN_CHARACTERS = 120;

/** What a user wrote may be long, and has no line breaks in a sentence of ours. */
function show(value: string): string {
  const text = JSON.stringify(value);
  return text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…"` : text;
}
