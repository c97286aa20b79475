/** A Slurm site's accounting as a workload: what was submitted when, and how long it really ran. */
import { DroverError } from '../../lib/errors.ts';
import { PRIORITIES, type JobSpec, type Priority } from '../../model/job.ts';
import { jobSpec } from '../../protocol/jobSpec.ts';
import type { WorkloadSummary } from '../../protocol/simulation.ts';
import {
  sacctDuration,
  sacctGres,
  sacctIdKind,
  sacctMemory,
  sacctTime,
  sacctTres,
} from './sacctFields.ts';
import { Waits } from './waits.ts';
import type { SimulatedJob, Workload } from './workload.ts';

export interface SacctOptions {
  /** A partition is the pool of its name, if the fleet has one. */
  pools: ReadonlySet<string>;
  /** Bands by the names of QOS and partitions, in lower case. */
  bandOf: ReadonlyMap<string, Priority>;
  seed: number;
}

/** What to ask sacct for; without a header this order is expected. */
export const SACCT_FIELDS = [
  'JobID',
  'User',
  'Account',
  'Partition',
  'QOS',
  'Submit',
  'Start',
  'End',
  'Elapsed',
  'State',
  'NNodes',
  'ReqCPUS',
  'ReqMem',
  'ReqTRES',
  'Timelimit',
] as const;

/** Lines named for each reason; the count goes on. */
const LINES_NAMED = 10;
const GANG_AT_MOST = 1024;
const SMALLEST_MS = 1;

type Row = (name: string) => string;
type Read = { job: SimulatedJob; waitedMs: number } | { skip: string };

export async function readSacct(
  source: { name: string; lines: AsyncIterable<string> },
  options: SacctOptions,
): Promise<Workload> {
  const skipped = new Map<string, { count: number; lines: number[] }>();
  const specs = new Map<string, JobSpec>();
  const waits = new Waits();
  const jobs: SimulatedJob[] = [];
  let columns: string[] | null = null;
  let number = 0;
  for await (const line of source.lines) {
    number++;
    if (line.trim() === '') continue;
    if (!columns) {
      columns = headerOf(line, source.name);
      if (columns.length > 0) continue;
      columns = SACCT_FIELDS.map((field) => field.toLowerCase());
    }
    const read = readLine(line, columns, specs, options);
    if ('skip' in read) note(skipped, read.skip, number);
    else {
      jobs.push(read.job);
      waits.submitted(read.job.spec.priority, 1);
      waits.started(read.job.spec.priority, read.waitedMs);
    }
  }
  if (jobs.length === 0) throw nothingIn(source.name, skipped);
  jobs.sort((a, b) => a.atMs - b.atMs);
  const startMs = jobs[0]?.atMs ?? 0;
  for (const job of jobs) job.atMs -= startMs;
  const summary: WorkloadSummary = {
    source: 'sacct',
    name: source.name,
    seed: options.seed,
    jobs: jobs.length,
    skipped: [...skipped].map(([reason, found]) => ({ reason, ...found })),
    recorded: waits.rows(),
  };
  return { startMs, summary, horizonMs: null, jobs: () => jobs.values() };
}

/** Empty when the first line is a job already. */
function headerOf(line: string, file: string): string[] {
  const words = line.split('|').map((word) => word.trim().toLowerCase());
  if (words.includes('jobid')) return words;
  if (sacctIdKind(words[0] ?? '') !== 'bad' && words.length >= SACCT_FIELDS.length) return [];
  throw new DroverError(
    'INVALID_ARGUMENT',
    `${file} is not what sacct prints: its first line has no JobID column, ` +
      `and not the ${SACCT_FIELDS.length} columns expected without a header`,
    { hint: sacctCommand() },
  );
}

function sacctCommand(): string {
  return `Make it by: sacct -a -X -P -S now-30days -o ${SACCT_FIELDS.join(',')} > FILE`;
}

function nothingIn(file: string, skipped: Map<string, { count: number }>): DroverError {
  const why = [...skipped].map(([reason, { count }]) => `${count} lines: ${reason}`);
  const detail = [`${file} holds no job that ran`, ...why].join('\n');
  return new DroverError('INVALID_ARGUMENT', detail, { hint: sacctCommand() });
}

function readLine(
  line: string,
  columns: string[],
  specs: Map<string, JobSpec>,
  options: SacctOptions,
): Read {
  const values = line.split('|');
  if (values.length < columns.length) return { skip: 'too few columns' };
  const row: Row = (name) => (values[columns.indexOf(name)] ?? '').trim();
  const kind = sacctIdKind(row('jobid'));
  if (kind === 'step') return { skip: 'a step of a job (ask sacct for -X)' };
  if (kind === 'unstarted') return { skip: 'it had not started' };
  if (kind === 'bad') return { skip: 'no job id' };
  const submitMs = sacctTime(row('submit'));
  if (submitMs === undefined) return { skip: 'no time of submission' };
  const startMs = sacctTime(row('start'));
  if (startMs === undefined) return { skip: 'it had not started' };
  const durationMs = ranFor(row, startMs);
  if (durationMs === undefined) return { skip: 'no elapsed time' };
  if (durationMs === 0) return { skip: 'it ran for no time' };
  const spec = specOf(row, specs, options);
  if (typeof spec === 'string') return { skip: spec };
  const job: SimulatedJob = {
    atMs: submitMs,
    tenant: row('account') || 'default',
    user: row('user') || 'unknown',
    spec,
    durationMs: Math.max(SMALLEST_MS, durationMs),
    exitCode: /^(COMPLETED|RUNNING|TIMEOUT)/.test(row('state')) || row('state') === '' ? 0 : 1,
    failures: 0,
    checkpointMs: 0,
    remembered: null,
    after: [],
  };
  return { job, waitedMs: Math.max(0, startMs - submitMs) };
}

function ranFor(row: Row, startMs: number): number | undefined {
  const elapsedMs = sacctDuration(row('elapsed'));
  if (elapsedMs !== undefined) return elapsedMs;
  const endMs = sacctTime(row('end'));
  return endMs === undefined ? undefined : Math.max(0, endMs - startMs);
}

/** What the job asked for; text: why that cannot be read. Equal ones share one object. */
function specOf(row: Row, specs: Map<string, JobSpec>, options: SacctOptions): JobSpec | string {
  const asked = sacctTres(row('reqtres') || row('alloctres'));
  const nodes = Number(row('nnodes') || row('allocnodes') || row('reqnodes')) || asked.nodes || 1;
  const cpus = Number(row('reqcpus') || row('alloccpus') || row('ncpus')) || asked.cpus || nodes;
  if (nodes > GANG_AT_MOST) return `more than ${GANG_AT_MOST} nodes`;
  const memory = sacctMemory(row('reqmem') || asked.memory || '', nodes, cpus);
  if (memory === undefined) return 'memory that cannot be read';
  const gres = sacctGres(row('reqgres') || row('allocgres'));
  const gpus = asked.gpus > 0 ? Math.ceil(asked.gpus / nodes) : gres.gpus;
  const model = asked.model || gres.model;
  const partition = row('partition');
  const pool = options.pools.has(partition) ? partition : '';
  const priority = bandOf([row('qos'), partition], options.bandOf);
  const timeLimitMs = sacctDuration(row('timelimit') || row('timelimitraw')) ?? 0;
  const key = [nodes, cpus, memory, gpus, model, pool, priority, timeLimitMs].join('|');
  const known = specs.get(key);
  if (known) return known;
  const parsed = jobSpec.safeParse({
    command: ['simulated'],
    resources: {
      cpuMillis: Math.ceil((cpus / nodes) * 1000),
      memoryBytes: Math.ceil(memory / nodes),
      device: gpus > 0 ? { count: gpus, models: model ? [model] : [] } : null,
    },
    shape: nodes > 1 ? { kind: 'gang', size: nodes } : { kind: 'single' },
    pool,
    priority,
    timeLimitMs,
  });
  if (!parsed.success) return `what it asked for: ${parsed.error.issues[0]?.message}`;
  specs.set(key, parsed.data);
  return parsed.data;
}

function bandOf(names: string[], bands: SacctOptions['bandOf']): Priority {
  for (const name of names.map((one) => one.toLowerCase())) {
    const band = bands.get(name) ?? PRIORITIES.find((one) => one === name);
    if (band) return band;
  }
  return 'batch';
}

function note(
  skipped: Map<string, { count: number; lines: number[] }>,
  reason: string,
  line: number,
): void {
  const found = skipped.get(reason) ?? { count: 0, lines: [] };
  skipped.set(reason, found);
  found.count++;
  if (found.lines.length < LINES_NAMED) found.lines.push(line);
}
