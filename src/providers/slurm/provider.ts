/**
 * Slurm as a source of machines: an instance is a job that boots agents. What there is to remember
 * is in the jobs' names, so that any controller finds them again.
 */
import type { Clock } from '../../lib/clock.ts';
import type { Log } from '../../lib/log.ts';
import type { SlurmPoolSettings } from '../../model/slurmSettings.ts';
import type { Capabilities, DestroyRequest, DestroyResult } from '../contract.ts';
import type { Listing, MachineRef, Provider } from '../contract.ts';
import { accountsOf, createLogins, type Logins } from './accounts.ts';
import { askSurroundings, createLaunch } from './launching.ts';
import { askQueue, machineOf, othersOf, ownJobs, unknown } from './listing.ts';
import type { Asker, OwnJob } from './listing.ts';
import { batchOf, createJobNames, type JobNames } from './names.ts';
import type { JobDetail, QueuedJob } from './queue.ts';
import { problemOf, refusalOf, type Refused } from './refusals.ts';
import { coming, told } from './reservations.ts';
import type { SlurmSite } from './site.ts';
import { meaningOf } from './states.ts';

export interface SlurmProviderOptions {
  pool: string;
  settings: SlurmPoolSettings;
  /** Shared with the other pools there; whoever opened it closes it. */
  site: SlurmSite;
  clusterId: string;
  clock: Clock;
  log: Log;
}

const CAPABILITIES: Capabilities = {
  noun: 'Slurm job',
  batches: true,
  gangs: true,
  sized: true,
  queues: true,
  labels: true,
};

/** Ids in one command line. */
const CANCELLED_AT_ONCE = 500;
/** Of a job's output, for a person. */
const OUTPUT_BYTES = 16 * 1024;
/** Maintenance is announced days ahead. */
const NOTICE_MS = 60_000;

export function createSlurmProvider(options: SlurmProviderOptions): Provider {
  const { pool, settings, site, clusterId } = options;
  const names = createJobNames(clusterId, pool);
  const logins = createLogins(site, settings.folder, options.log);
  const queue = createQueueReader(options, names, logins);
  const notice = createNotice(options);
  return {
    capabilities: CAPABILITIES,
    launch: createLaunch({ ...options, names, logins }),
    async list(): Promise<Listing> {
      const [found, words] = await Promise.all([queue.read(), notice()]);
      if ('problem' in found) return unknown(found.problem);
      const { own, jobs, details } = found;
      const machines = own.map((one) => machineOf(one, details.get(one.job.id)));
      return {
        ...{ kind: 'known', machines },
        ...(settings.observeOnly ? { others: othersOf(jobs, names) } : {}),
        ...(words ? { notice: words } : {}),
      };
    },
    destroy: (request) => destroy(options, queue, logins, request),
    logs: (machine) => output(options, queue, logins, names, machine),
    async close() {},
  };
}

interface Found {
  jobs: QueuedJob[];
  own: OwnJob[];
  details: Map<string, JobDetail>;
}

interface QueueReader {
  read(): Promise<Found | { problem: string }>;
}

function createQueueReader(
  { settings, site }: SlurmProviderOptions,
  names: JobNames,
  logins: Logins,
): QueueReader {
  /** Where jobs are private, ours of another account are shown to that one alone. */
  let arePublic: boolean | undefined;
  const askers = async (): Promise<Asker[] | Refused> => {
    const accounts = accountsOf(site, settings);
    const own = await logins.of('');
    if ('kind' in own) return own;
    if (settings.observeOnly) return [{ account: '', user: '' }];
    if (accounts.length === 1) return [{ account: '', user: own.user }];
    if (arePublic === undefined) {
      const words = [site.path('scontrol'), 'show', 'config'];
      const all = await site.ask({ words, account: '' });
      if (all.kind !== 'ended' || all.code !== 0) return refusalOf('scontrol', all);
      arePublic = !/^\s*PrivateData\s*=.*\bjobs\b/m.test(all.stdout);
    }
    if (arePublic) return [{ account: '', user: '' }];
    return accounts.map((account) => ({ account, user: account || own.user }));
  };
  return {
    async read() {
      const all = await askers();
      if ('kind' in all) return { problem: all.reason };
      const jobs: QueuedJob[] = [];
      const details = new Map<string, JobDetail>();
      for (const one of await Promise.all(all.map((asker) => askQueue(site, asker, names)))) {
        if ('problem' in one) return one;
        jobs.push(...one.jobs);
        for (const [id, detail] of one.details) details.set(id, detail);
      }
      return { jobs, own: ownJobs(jobs, names), details };
    },
  };
}

/**
 * Only what is listed under our name is cancelled: an id that we remember may be somebody else's
 * job by now. Whatever has the label goes, also a second job of a submission that was sent twice.
 */
async function destroy(
  { site }: SlurmProviderOptions,
  queue: QueueReader,
  logins: Logins,
  { machines }: DestroyRequest,
): Promise<DestroyResult> {
  const found = await queue.read();
  if ('problem' in found) return { kind: 'unknown', reason: found.problem };
  const me = await logins.of('');
  if ('kind' in me) return { kind: 'unknown', reason: me.reason };
  const labels = new Set(machines.map(({ label }) => label));
  const handles = new Set(machines.map(({ handle }) => handle));
  const idsOf = new Map<string, string[]>();
  for (const { label, job } of found.own) {
    if (!labels.has(label) && !handles.has(job.id)) continue;
    if (meaningOf(job, undefined).phase === 'gone') continue;
    const account = job.user === me.user ? '' : job.user;
    idsOf.set(account, [...(idsOf.get(account) ?? []), job.id]);
  }
  for (const [account, ids] of idsOf) {
    for (let at = 0; at < ids.length; at += CANCELLED_AT_ONCE) {
      const words = [site.path('scancel'), ...ids.slice(at, at + CANCELLED_AT_ONCE)];
      const result = await site.ask({ words, account });
      const problem = problemOf('scancel', result);
      // One that ended meanwhile is what was wanted.
      const isGone = result.kind === 'ended' && /already|Invalid job id/i.test(result.stderr);
      if (problem !== undefined && !isGone) return { kind: 'unknown', reason: problem };
    }
  }
  return { kind: 'asked' };
}

/** The end of what the job printed, also after it is gone. */
async function output(
  { site }: SlurmProviderOptions,
  queue: QueueReader,
  logins: Logins,
  names: JobNames,
  { label, handle }: MachineRef,
): Promise<string> {
  const found = await queue.read();
  const own = 'problem' in found ? undefined : found.own.find((one) => one.label === label);
  const me = await logins.of('');
  if ('kind' in me) return me.reason;
  const account = !own || own.job.user === me.user ? '' : own.job.user;
  const login = await logins.of(account);
  if ('kind' in login) return login.reason;
  const id = own?.job.id ?? handle;
  const file = `${login.folder}/${names.jobName(batchOf(label))}-${id}.out`;
  const words = ['tail', '-c', String(OUTPUT_BYTES), '--', file];
  const result = await site.ask({ words, account });
  return problemOf('tail', result) ?? (result.kind === 'ended' ? result.stdout : '');
}

/** Maintenance that comes or is, said with the list; asked for now and then. */
function createNotice({ site, settings, clock }: SlurmProviderOptions): () => Promise<string> {
  let [words, askedAtMs] = ['', Number.NEGATIVE_INFINITY];
  return async () => {
    if (clock.bootMs() - askedAtMs < NOTICE_MS) return words;
    askedAtMs = clock.bootMs();
    const found = await askSurroundings(site, settings.partition);
    if ('kind' in found) return words;
    const next = coming(found.reservations, found.nodes, clock.now());
    words = next
      .filter(({ name }) => name !== settings.reservation)
      .map((one) => told(one))
      .join('; ');
    return words;
  };
}
