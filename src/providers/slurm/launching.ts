/**
 * One batch submitted: fitted before the next maintenance, rendered, looked up by its name in case
 * an earlier submission was heard after all, and only then given to sbatch.
 */
import type { Clock } from '../../lib/clock.ts';
import type { LaunchBatch, LaunchResult } from '../contract.ts';
import type { SlurmPoolSettings } from '../../model/slurmSettings.ts';
import { accountFor, type Login, type Logins } from './accounts.ts';
import { askQueue, ownJobs } from './listing.ts';
import type { JobNames } from './names.ts';
import { sbatchOptions, type Asked } from './options.ts';
import { refusalOf, refused, submissionRefused, type Refused } from './refusals.ts';
import { nodesOf, readReservations, windowFor, type Reservation } from './reservations.ts';
import type { SlurmSite } from './site.ts';
import { renderTemplate, type Rendered } from './template.ts';

export interface Launching {
  pool: string;
  settings: SlurmPoolSettings;
  site: SlurmSite;
  clusterId: string;
  names: JobNames;
  logins: Logins;
  clock: Clock;
}

/** Less than this is not worth a job where nobody said how long it is wanted. */
const SHORTEST_MS = 10 * 60_000;
/** Between the end of a job and the reservation after it: its time counts from its start. */
const MARGIN_MS = 2 * 60_000;

export function createLaunch(parts: Launching): (batch: LaunchBatch) => Promise<LaunchResult> {
  const { settings, site, logins, clock } = parts;
  /** Batches whose submission may have been heard, and until when it may still be under way. */
  const maybeSent = new Map<string, number>();
  return async (batch) => {
    if (settings.observeOnly) {
      return refused('configuration', 'this pool only observes (slurm.observeOnly)');
    }
    const account = accountFor(batch.runAs, site, settings);
    if (typeof account !== 'string') return account;
    const login = await logins.of(account);
    const sentUntilMs = maybeSent.get(batch.id);
    if ('kind' in login) return maybe(sentUntilMs !== undefined, login);
    const result = await submit(parts, batch, { account, login }, sentUntilMs);
    if (result.kind !== 'unknown') maybeSent.delete(batch.id);
    else if (sentUntilMs === undefined) {
      maybeSent.set(batch.id, clock.bootMs() + site.settings.commandTimeoutMs);
    }
    return result;
  };
}

/** That this call did nothing says nothing about the one before. */
function maybe(wasSent: boolean, result: Refused): LaunchResult {
  return wasSent ? { kind: 'unknown', reason: result.reason } : result;
}

interface As {
  account: string;
  login: Login;
}

async function submit(
  parts: Launching,
  batch: LaunchBatch,
  as: As,
  sentUntilMs: number | undefined,
): Promise<LaunchResult> {
  const wasSent = sentUntilMs !== undefined;
  const { settings, site, names, clock } = parts;
  const asker = { account: as.account, user: as.login.user };
  const [before, surroundings] = await Promise.all([
    askQueue(site, asker, names, names.jobName(batch.id)),
    askSurroundings(site, settings.partition),
  ]);
  if ('problem' in before) return maybe(wasSent, refused('unreachable', before.problem));
  const prepared = 'kind' in surroundings ? surroundings : prepare(parts, batch, as, surroundings);
  const found = new Map(ownJobs(before.jobs, names).map(({ label, job }) => [label, job.id]));
  if (found.size > 0) {
    const handles = batch.intents.map(({ label }) => found.get(label) ?? '');
    const script = 'rendered' in prepared ? prepared.rendered.shown : '';
    return { kind: 'launched', handles, script };
  }
  if ('kind' in prepared) return maybe(wasSent, prepared);
  const { options, rendered } = prepared;
  if (wasSent && clock.bootMs() < sentUntilMs) {
    return { kind: 'unknown', reason: 'an earlier submission may still be under way' };
  }
  const words = [...limited(site), site.path('sbatch'), ...options];
  const result = await site.submit({ words, account: as.account, stdin: rendered.script });
  if (result.kind !== 'ended' || result.code !== 0) return submissionRefused(result);
  return launched(result.stdout, batch, rendered.shown);
}

/** Everything that can be said before anything is sent. */
function prepare(
  { settings, site, names, clusterId, pool, clock }: Launching,
  batch: LaunchBatch,
  { login }: As,
  surroundings: Surroundings,
): Refused | { options: string[]; rendered: Extract<Rendered, { kind: 'rendered' }> } {
  if (login.folder === '') {
    const why = `the folder for output cannot be made at ${site.name} as ${login.user}`;
    return refused('configuration', `${why}: set slurm.folder to one on a shared file system`);
  }
  const fitted = fit(batch, settings, surroundings, clock.now());
  if ('kind' in fitted) return fitted;
  const asked: Asked = {
    ...{ batch, settings, pool, ...fitted, folder: login.folder },
    jobName: names.jobName(batch.id),
    account: settings.account || site.settings.account,
  };
  const options = sbatchOptions(asked);
  const { agentCommand, scratch } = settings;
  const { connectorUrl } = site.settings;
  const program = { batch, site: site.name, agentCommand, scratch, connectorUrl };
  const rendered = renderTemplate({ asked, program, clusterId, options });
  if (rendered.kind === 'failed') return refused('configuration', rendered.reason);
  return { options, rendered };
}

/** Also where the connection is lost it ends in time: nothing comes after it was given up. */
function limited({ settings }: SlurmSite): string[] {
  const seconds = Math.max(1, Math.floor(settings.commandTimeoutMs / 1000));
  return ['timeout', '-s', 'KILL', String(seconds)];
}

/** `4711`, or `4711;cluster` where there are several; sites may print more before it. */
function launched(stdout: string, batch: LaunchBatch, script: string): LaunchResult {
  const line = stdout.trim().split('\n').at(-1)?.trim() ?? '';
  const id = /^(\d+)(;\S*)?$/.exec(line)?.[1];
  if (id === undefined) {
    return { kind: 'unknown', reason: `sbatch printed no id but: ${line.slice(0, 200)}` };
  }
  const { intents } = batch;
  const handles = intents.length > 1 ? intents.map((_, place) => `${id}_${place}`) : [id];
  return { kind: 'launched', handles, script };
}

interface Surroundings {
  reservations: Reservation[];
  nodes: string[];
}

const SURROUNDINGS = `
"$1" --oneliner show reservation || exit
echo
"$2" --noheader "--format=%P|%N"
`;

export async function askSurroundings(
  site: SlurmSite,
  partition: string,
): Promise<Surroundings | Refused> {
  const programs = [site.path('scontrol'), site.path('sinfo')];
  const words = ['/bin/sh', '-c', SURROUNDINGS, 'sh', ...programs];
  const result = await site.ask({ words, account: '' });
  if (result.kind !== 'ended' || result.code !== 0) return refusalOf('scontrol', result);
  // The lines of the two look unlike each other, so each takes its own.
  const { stdout } = result;
  return { reservations: readReservations(stdout), nodes: nodesOf(stdout, partition) };
}

/** How long it is asked for, and which nodes it keeps away from. */
function fit(
  batch: LaunchBatch,
  settings: SlurmPoolSettings,
  { reservations, nodes }: Surroundings,
  nowMs: number,
): Refused | { timeMs: number; avoid: string[] } {
  const { timeLimitMs: most, bootMarginMs } = settings;
  const askedMs = batch.timeLimitMs > 0 ? batch.timeLimitMs + batch.noticeMs + bootMarginMs : 0;
  if (most > 0 && batch.timeLimitMs > most) {
    const limit = `this pool's slurm.timeLimitMs is ${most}`;
    return refused('configuration', `it wants ${batch.timeLimitMs} ms of time, and ${limit}`);
  }
  const limits = [askedMs, most].filter((limit) => limit > 0);
  const wantedMs = limits.length > 0 ? Math.min(...limits) : 0;
  const neededMs = batch.timeLimitMs || Math.min(SHORTEST_MS, wantedMs || SHORTEST_MS);
  const here = { own: settings.reservation, nodes, nowMs: nowMs + MARGIN_MS };
  const window = windowFor(reservations, here, { wantedMs, neededMs });
  if (window.kind === 'closed') {
    return refused('capacity', window.reason, Math.max(1000, window.untilMs - nowMs));
  }
  const avoid =
    nodes.length === 0 ? [...batch.avoid] : nodes.filter((n) => batch.avoid.includes(n));
  if (nodes.length > 0 && avoid.length === nodes.length) {
    return refused('capacity', 'every node of the partition is one to be avoided');
  }
  return { timeMs: window.timeMs, avoid };
}
