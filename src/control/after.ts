/** What a submission waits for: ids of live and ended jobs, names within the submission. */
import { AFTER_MEANINGS, findCycle } from '../core/lifecycle/after.ts';
import { DroverError } from '../lib/errors.ts';
import type { After, JobSpec, JobState } from '../model/job.ts';
import type { SubmitLink } from '../state/mutations.ts';
import type { State } from '../state/state.ts';
import type { TenantHistory } from '../store/contract.ts';
import type { Committer } from './committer.ts';

export interface Resolved {
  specs: JobSpec[];
  links: SubmitLink[];
}

interface Read {
  state: State;
  committer: Committer;
  history: TenantHistory;
}

export async function resolveAfter(
  read: Read,
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
      else if (await mayStillCome(read, tenant, one)) after.push(one);
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
  { state, committer, history }: Read,
  tenant: string,
  { job, when }: After,
): Promise<boolean> {
  const live = state.jobs.get(job);
  if (live?.job.tenant === tenant && live.job.endedAtMs === null) return true;
  // Its end may be on its way to the disk.
  await committer.durable();
  const row = await history.job(job);
  if (!row) {
    throw new DroverError('NOT_FOUND', `there is no job ${job} to wait for`, {
      hint: 'see your jobs with: drover jobs',
    });
  }
  if (row.end_state === null) return true;
  if (AFTER_MEANINGS[when](row.end_state as JobState)) return false;
  throw invalid(`job ${job} has ended ${row.end_state}, so "after: ${when}" can never hold`);
}

/** Whether what they wait for still lives: if not, how it ended must be read first. */
export function allToCome(state: State, specs: readonly JobSpec[]): boolean {
  return specs.every(({ after }) =>
    after.every(({ job }) => state.jobs.get(job)?.job.endedAtMs === null),
  );
}

function invalid(detail: string): DroverError {
  return new DroverError('INVALID_ARGUMENT', detail, {
    hint: 'name jobs that still run or have ended as wanted, in an order without circles',
  });
}
