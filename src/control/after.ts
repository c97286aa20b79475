/** What a submission waits for: ids of live and ended jobs, names within the submission. */
import { jobState } from '../core/lifecycle/job.ts';
import { AFTER_MEANINGS, findCycle } from '../core/lifecycle/after.ts';
import { DroverError } from '../lib/errors.ts';
import type { JobId } from '../model/ids.ts';
import type { After, JobSpec, JobState } from '../model/job.ts';
import type { SubmitLink } from '../state/mutations.ts';
import type { State } from '../state/state.ts';
import type { TenantHistory } from '../store/contract.ts';

interface Resolved {
  specs: JobSpec[];
  links: SubmitLink[];
}

export async function resolveAfter(
  state: State,
  history: TenantHistory,
  tenant: string,
  specs: JobSpec[],
): Promise<Resolved> {
  const links: SubmitLink[] = [];
  const byName = namesOf(specs);
  const resolved: JobSpec[] = [];
  for (const [waits, spec] of specs.entries()) {
    const after: After[] = [];
    for (const one of spec.after) {
      const named = byName.get(one.job);
      if (named === 'twice') throw invalid(`two jobs of this submission are named "${one.job}"`);
      if (named !== undefined) links.push({ waits, after: named, when: one.when });
      else if (await mayStillCome(state, history, tenant, one)) after.push(one);
    }
    resolved.push({ ...spec, after });
  }
  const cycle = findCycle(links);
  if (cycle) {
    const names = cycle.map((at) => `"${specs[at]?.name}"`).join(' after ');
    throw invalid(`these jobs wait for each other: ${names}`);
  }
  return { specs: resolved, links };
}

function namesOf(specs: readonly JobSpec[]): Map<string, number | 'twice'> {
  const names = new Map<string, number | 'twice'>();
  for (const [at, { name }] of specs.entries()) {
    if (name !== '') names.set(name, names.has(name) ? 'twice' : at);
  }
  return names;
}

/** False when it has ended as wanted already; throws when it never can. */
async function mayStillCome(
  state: State,
  history: TenantHistory,
  tenant: string,
  { job, when }: After,
): Promise<boolean> {
  const live = state.jobs.get(job);
  if (live?.job.tenant === tenant) {
    if (live.job.endedAtMs === null) return true;
    return hasEnded(job, when, jobState(live.counts));
  }
  const row = await history.job(job);
  if (!row) {
    throw new DroverError('NOT_FOUND', `there is no job ${job} to wait for`, {
      hint: 'see your jobs with: drover jobs',
    });
  }
  return hasEnded(job, when, row.end_state as JobState);
}

function hasEnded(job: JobId, when: After['when'], how: JobState): false {
  if (AFTER_MEANINGS[when](how)) return false;
  throw invalid(`job ${job} has ended ${how}, so "after: ${when}" can never hold`);
}

function invalid(detail: string): DroverError {
  return new DroverError('INVALID_ARGUMENT', detail, {
    hint: 'name jobs that still run or have ended as wanted, in an order without circles',
  });
}
