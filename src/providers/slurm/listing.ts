/** Our jobs at a site, and for those who look, everybody's: asked of squeue, told as machines. */
import type { Listing, Machine, OtherWork } from '../contract.ts';
import type { RunResult } from '../remote/contract.ts';
import type { JobNames } from './names.ts';
import { DETAIL_FORMAT, QUEUE_FORMAT, readDetails, readQueue } from './queue.ts';
import type { JobDetail, Queue, QueuedJob } from './queue.ts';
import { problemOf } from './refusals.ts';
import type { SlurmSite } from './site.ts';
import { meaningOf } from './states.ts';

/** Of the site's own jobs, for people. */
export const OTHERS_LISTED = 1000;
const UNKNOWN_RETRY_MS = 10_000;

/** Whose jobs are asked for, and as whom. */
export interface Asker {
  account: string;
  /** Of one user alone; empty: everybody's. */
  user: string;
}

const ALL_STATES = ['squeue', '--array', '--states=all'];

/** Never by id: an id that is gone would be an error. */
export async function askQueue(
  site: SlurmSite,
  { account, user }: Asker,
  names: JobNames,
  jobName = '',
): Promise<Queue> {
  const filters = [...(user ? [`--user=${user}`] : []), ...(jobName ? [`--name=${jobName}`] : [])];
  const words = [...ALL_STATES, ...filters, `--format=${QUEUE_FORMAT}`];
  const result = await site.ask({ words, account });
  const problem = problemOf('squeue', result);
  if (problem !== undefined) return { problem };
  return readQueue(stdoutOf(result), names.prefix);
}

/** Empty where this Slurm cannot tell; a failure is one of the whole list. */
export async function askDetails(
  site: SlurmSite,
  { account, user }: Asker,
): Promise<Map<string, JobDetail> | { problem: string }> {
  const whose = user ? [`--user=${user}`] : [];
  const words = [...ALL_STATES, '--noheader', ...whose, `--Format=${DETAIL_FORMAT}`];
  const result = await site.ask({ words, account });
  const problem = problemOf('squeue', result);
  if (problem === undefined) return readDetails(stdoutOf(result));
  const isOld = result.kind === 'ended' && /format|invalid|unrecognized/i.test(result.stderr);
  return isOld ? new Map() : { problem };
}

function stdoutOf(result: RunResult): string {
  return result.kind === 'ended' ? result.stdout : '';
}

export interface OwnJob {
  label: string;
  job: QueuedJob;
}

export function ownJobs(jobs: readonly QueuedJob[], names: JobNames): OwnJob[] {
  return jobs.flatMap((job) => {
    const label = names.labelOf(job.name, job.place);
    return label === undefined ? [] : [{ label, job }];
  });
}

export function machineOf({ label, job }: OwnJob, detail: JobDetail | undefined): Machine {
  const { phase, reason, failure } = meaningOf(job, detail);
  return {
    ...{ label, handle: job.id, phase, reason, failure },
    host: phase === 'queued' ? '' : job.host,
    startsAtMs: job.startsAtMs,
    leftMs: phase === 'running' || phase === 'booting' ? job.leftMs : null,
    restarts: detail?.restarts ?? 0,
    billed: phase === 'running' || phase === 'booting' || phase === 'ending',
    priceHourMicros: null,
  };
}

/** Work of others that waits or runs; what has ended is nobody's matter. */
export function othersOf(jobs: readonly QueuedJob[], names: JobNames): OtherWork[] {
  return jobs
    .filter((job) => names.labelOf(job.name, job.place) === undefined)
    .filter((job) => meaningOf(job, undefined).phase !== 'gone')
    .slice(0, OTHERS_LISTED)
    .map(({ id, name, user, state, reason, nodes, nodeCount, devices, partition }) => {
      const place = nodes || `${nodeCount} ${nodeCount === '1' ? 'node' : 'nodes'}`;
      const where = [partition, place, devices === 'N/A' ? '' : devices].filter(Boolean).join(', ');
      return { handle: id, name, user, state, reason: reason === 'None' ? '' : reason, where };
    });
}

export function unknown(reason: string): Listing {
  return { kind: 'unknown', reason, retryAfterMs: UNKNOWN_RETRY_MS };
}
