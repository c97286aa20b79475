/** Our jobs at a site, and for those who look, everybody's: asked of squeue, told as machines. */
import type { Listing, Machine, OtherWork } from '../contract.ts';
import type { JobNames } from './names.ts';
import { DETAIL_FORMAT, QUEUE_FORMAT, readDetails, readQueue } from './queue.ts';
import type { JobDetail, QueuedJob } from './queue.ts';
import { refusalOf } from './refusals.ts';
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

export interface Answer {
  jobs: QueuedJob[];
  /** By id; empty where this Slurm cannot tell, or nothing is ours. */
  details: Map<string, JobDetail>;
}

/** Printed between the parts; stands in no name. */
const PART = '\u001E';
/** One call for both, and the second only where something is ours: squeue costs the site. */
const LOOK = `
prefix=$1 format=$2 details=$3
shift 3
found=$("$@" "--format=$format") || exit
printf '%s\\n' "$found"
case $found in
*"$prefix"*)
  printf '\\036\\n'
  "$@" --noheader "--Format=$details"
  printf '\\036%s\\n' $?
  ;;
esac
`;

/** Never by id: an id that is gone would be an error. */
export async function askQueue(
  site: SlurmSite,
  { account, user }: Asker,
  names: JobNames,
  jobName = '',
): Promise<Answer | { problem: string }> {
  const filters = [...(user ? [`--user=${user}`] : []), ...(jobName ? [`--name=${jobName}`] : [])];
  const squeue = [site.path('squeue'), '--array', '--states=all', ...filters];
  const formats = [names.prefix, QUEUE_FORMAT, DETAIL_FORMAT];
  const words = ['/bin/sh', '-c', LOOK, 'sh', ...formats, ...squeue];
  const result = await site.ask({ words, account });
  if (result.kind !== 'ended' || result.code !== 0) {
    return { problem: refusalOf('squeue', result).reason };
  }
  const [first = '', second = '', code = '0'] = result.stdout.split(PART);
  const queue = readQueue(first, names.prefix);
  if ('problem' in queue) return queue;
  // An older Slurm says that it has no such columns; anything else is a failure of the whole.
  const isOld = /format|invalid|unrecognized/i.test(result.stderr);
  if (Number(code) !== 0 && !isOld) {
    return { problem: refusalOf('squeue', { ...result, code: Number(code) }).reason };
  }
  return { jobs: queue.jobs, details: readDetails(second) };
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
