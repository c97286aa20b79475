/**
 * The workload file: jobs as `drover submit -f` takes them, each with when and how often it comes,
 * how long it runs and whose it is.
 */
import { z } from 'zod';
import { seededRandom, type Random } from '../../lib/random.ts';
import { nearest } from '../../lib/nearest.ts';
import type { JobSpec } from '../../model/job.ts';
import { parsedJobSpec } from '../../protocol/jobSpec.ts';
import type { NamedText } from '../../protocol/simulation.ts';
import { badFile, checked, parseYaml, readAt, ReadProblem } from './checked.ts';
import { durationReader, durationSchema, exponential, type DrawDuration } from './durations.ts';
import type { Readers } from './readers.ts';
import { USUAL_START_MS, type SimulatedJob, type Workload } from './workload.ts';

/** A stream without an end in the file must not run for ever. */
const JOBS_AT_MOST = 100_000_000;

const written = z.union([z.string(), z.number()]).transform(String);

/** The keys of the simulation; all others are the job's. */
const stream = z.strictObject({
  tenant: z.string().min(1).max(100).default('default'),
  user: z.string().min(1).max(200).default('user'),
  at: written.default('0s'),
  every: written.optional(),
  poisson: written.optional(),
  count: z.int().min(1).max(JOBS_AT_MOST).optional(),
  duration: durationSchema,
  exitCode: z.int().min(0).max(255).default(0),
  failures: z.number().min(0).max(1).default(0),
  checkpoint: written.default('0s'),
});
const STREAM_KEYS = Object.keys(stream.shape);

const workloadFile = z.strictObject({
  seed: z.int().min(0).optional(),
  for: written.optional(),
  until: written.optional(),
  jobs: z.array(z.record(z.string(), z.unknown())).min(1),
});

interface Stream {
  tenant: string;
  user: string;
  spec: JobSpec;
  remembered: SimulatedJob['remembered'];
  after: SimulatedJob['after'];
  tasks: number;
  atMs: number;
  /** Time to the next one; null: there is only this one. */
  gap: ((random: Random) => number) | null;
  count: number;
  duration: DrawDuration;
  exitCode: number;
  failures: number;
  checkpointMs: number;
}

export function readWorkload(file: NamedText, seed: number | null, readers: Readers): Workload {
  const content = checked(workloadFile, parseYaml(file), file.name);
  const usedSeed = seed ?? content.seed ?? 1;
  const problems: string[] = [];
  const attempt = <Value>(read: () => Value): Value | undefined => {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof ReadProblem)) throw error;
      problems.push(error.message);
      return undefined;
    }
  };
  const msOf = (text: string | undefined, what: string): number | null =>
    text === undefined
      ? null
      : (attempt(() => readAt(what, () => readers.durationMs(text, what))) ?? null);
  const forMs = msOf(content.for, 'for');
  const horizonMs = msOf(content.until, 'until');
  const streams = content.jobs.flatMap((job, at) => {
    const found = attempt(() => streamOf(job, `jobs[${at}]`, forMs ?? horizonMs, readers));
    return found ? [found] : [];
  });
  problems.push(...rememberAwaited(streams));
  if (problems.length > 0) throw badFile(file.name, problems);
  return {
    startMs: USUAL_START_MS,
    horizonMs,
    summary: {
      source: 'file',
      name: file.name,
      seed: usedSeed,
      jobs: null,
      skipped: [],
      recorded: null,
    },
    jobs: () => merged(streams, forMs ?? horizonMs ?? Number.POSITIVE_INFINITY, usedSeed),
  };
}

function streamOf(
  job: Record<string, unknown>,
  where: string,
  forMs: number | null,
  readers: Readers,
): Stream {
  const own: Record<string, unknown> = {};
  const draft: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(job)) {
    (STREAM_KEYS.includes(key) ? own : draft)[key] = value;
  }
  const spec = specOf(draft, where, readers);
  const parsed = stream.safeParse(own);
  if (!parsed.success) throw firstProblem(parsed.error, where);
  const given = parsed.data;
  const ms = (text: string, what: string): number =>
    readAt(`${where}.${what}`, () => readers.durationMs(text, what));
  const gap = gapOf(given, where, ms);
  if (gap && given.count === undefined && forMs === null) {
    const why = 'it comes again and again: say how often by count, or how long by `for` at the top';
    throw new ReadProblem(`${where}: ${why}`, undefined);
  }
  return {
    tenant: given.tenant,
    user: given.user,
    // The names are resolved when it is submitted.
    spec: { ...spec, after: [] },
    remembered: null,
    after: spec.after.map(({ job: name, when }) => ({ name, when })),
    tasks: spec.shape.kind === 'array' ? spec.shape.indices.length : 1,
    atMs: ms(given.at, 'at'),
    gap,
    count: given.count ?? (gap ? JOBS_AT_MOST : 1),
    duration: durationReader(given.duration, `${where}.duration`, readers),
    exitCode: given.exitCode,
    failures: given.failures,
    checkpointMs: ms(given.checkpoint, 'checkpoint'),
  };
}

/** Only what somebody waits for is kept in mind. Says who waits for nobody. */
function rememberAwaited(streams: Stream[]): string[] {
  const names = streams.map(({ spec }) => spec.name);
  const problems: string[] = [];
  for (const [at, { after }] of streams.entries()) {
    for (const { name } of after) {
      const other = streams.find(({ spec }) => spec.name === name);
      if (other) other.remembered = name;
      else problems.push(`jobs[${at}].after: there is no job named "${name}"${meant(name, names)}`);
    }
  }
  return problems;
}

function meant(name: string, known: string[]): string {
  const guess = nearest(name, known);
  return guess ? `; did you mean "${guess}"?` : '';
}

function specOf(draft: Record<string, unknown>, where: string, readers: Readers): JobSpec {
  const submitted = readAt(where, () => {
    try {
      return readers.spec({ command: ['simulated'], ...draft });
    } catch (error) {
      // The reader of jobs does not know the simulation's own keys.
      const unknown = /^unknown key "(.*)"$/.exec((error as Error).message)?.[1];
      const guess = unknown === undefined ? undefined : nearest(unknown, STREAM_KEYS);
      if (guess === undefined) throw error;
      throw new Error(`unknown key "${unknown}"; did you mean ${guess}?`, { cause: error });
    }
  });
  const parsed = parsedJobSpec.safeParse(submitted);
  if (!parsed.success) throw firstProblem(parsed.error, where);
  return parsed.data;
}

function firstProblem(error: z.ZodError, where: string): ReadProblem {
  const issue = error.issues[0];
  const path = issue?.path.length ? `${where}.${issue.path.join('.')}` : where;
  return new ReadProblem(`${path}: ${issue?.message ?? 'does not fit'}`, error);
}

/** `every: 10m` or `poisson: 6/h`; neither: all `count` of them at once. */
function gapOf(
  given: z.output<typeof stream>,
  where: string,
  ms: (text: string, what: string) => number,
): Stream['gap'] {
  if (given.every !== undefined && given.poisson !== undefined) {
    throw new ReadProblem(`${where}: every and poisson exclude each other`, undefined);
  }
  if (given.every !== undefined) {
    const everyMs = ms(given.every, 'every');
    if (everyMs < 1) throw new ReadProblem(`${where}.every: must be longer than 0`, undefined);
    return () => everyMs;
  }
  if (given.poisson === undefined) {
    return given.count !== undefined && given.count > 1 ? () => 0 : null;
  }
  const [, amount, unit] = /^(\d+(?:\.\d+)?)\s*\/\s*(\S+)$/.exec(given.poisson) ?? [];
  if (amount === undefined || Number(amount) <= 0) {
    const why = `${JSON.stringify(given.poisson)} is not a rate: write 6/h, 2/s or 100/d`;
    throw new ReadProblem(`${where}.poisson: ${why}`, undefined);
  }
  const meanMs = ms(`1${unit}`, 'poisson') / Number(amount);
  return (random) => exponential(random, meanMs);
}

/** Streams in order of time. Each has its own dice, so that one more changes none of the others. */
function* merged(streams: Stream[], untilMs: number, seed: number): Generator<SimulatedJob> {
  const open = streams.map((one, at) => ({
    stream: one,
    random: seededRandom(seed * 1_000_003 + at),
    nextMs: one.atMs,
    left: one.count,
  }));
  for (;;) {
    let first: (typeof open)[number] | null = null;
    for (const one of open) {
      if (one.left > 0 && one.nextMs < untilMs && (!first || one.nextMs < first.nextMs)) {
        first = one;
      }
    }
    if (!first) return;
    yield jobOf(first.stream, Math.round(first.nextMs), first.random);
    first.left--;
    if (first.left > 0) first.nextMs += first.stream.gap?.(first.random) ?? 0;
  }
}

function jobOf(stream: Stream, atMs: number, random: Random): SimulatedJob {
  const { tenant, user, spec, tasks, duration, exitCode, failures, checkpointMs } = stream;
  const { remembered, after } = stream;
  const durationMs =
    tasks === 1 ? duration(random) : Array.from({ length: tasks }, () => duration(random));
  const what = { spec, durationMs, exitCode, failures, checkpointMs, remembered, after };
  return { atMs, tenant, user, ...what };
}
