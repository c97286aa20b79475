/** Submission: jobs and their tasks appear, once per idempotency key. */
import type { JobId } from '../model/ids.ts';
import type { Job, JobSpec } from '../model/job.ts';
import { waitForOthers } from './after.ts';
import { idempotencyKey, type LiveJob } from './live.ts';
import type { Result, Submit, SubmitLink } from './mutations.ts';
import type { State } from './state.ts';
import { newTasks, taskCount } from './tasks.ts';

/** How long a key is remembered. */
export const IDEMPOTENCY_MS = 24 * 3600 * 1000;

export function submit(state: State, mutation: Submit, nowMs: number): Result {
  const { idempotencyKey: key, bodyHash } = mutation;
  if (key !== null) {
    forgetOldKeys(state, nowMs);
    const known = state.idempotency.get(idempotencyKey(mutation.tenant, key));
    if (known) {
      if (known.bodyHash !== bodyHash) return { kind: 'key-mismatch' };
      return { kind: 'submitted', ids: known.ids, replayed: true };
    }
  }
  const ids = mutation.specs.map(() => state.mint('j') as JobId);
  const jobs = mutation.specs.map((spec, at) =>
    addJob(
      state,
      mutation,
      ids[at] as JobId,
      mutation.links.length > 0 ? linked(spec, at, mutation.links, ids) : spec,
      nowMs,
    ),
  );
  for (const live of jobs) if (live.job.spec.after.length > 0) waitForOthers(state, live, nowMs);
  if (key !== null) {
    const entry = { bodyHash: bodyHash ?? '', ids, createdAtMs: nowMs };
    state.addKey({ tenant: mutation.tenant, key, entry });
  }
  return { kind: 'submitted', ids, replayed: false };
}

function linked(spec: JobSpec, at: number, links: SubmitLink[], ids: JobId[]): JobSpec {
  const mine = links.filter(({ waits }) => waits === at);
  if (mine.length === 0) return spec;
  const more = mine.map(({ after, when }) => ({ job: ids[after] as JobId, when }));
  return { ...spec, after: [...spec.after, ...more] };
}

function addJob(state: State, mutation: Submit, id: JobId, spec: JobSpec, nowMs: number): LiveJob {
  const job: Job = {
    id,
    cluster: 'local',
    tenant: mutation.tenant,
    owner: mutation.owner,
    submittingPrincipal: mutation.submittingPrincipal,
    kind: 'batch',
    spec,
    taskCount: taskCount(spec),
    round: 0,
    createdAtMs: nowMs,
    cancelRequestedAtMs: null,
    cancelledBy: null,
    endedAtMs: null,
    spentMicros: 0,
    version: 1,
  };
  const live = state.addJob(job, newTasks(job));
  state.note(nowMs, {
    kind: 'job.submitted',
    tenant: job.tenant,
    job: id,
    data: { by: mutation.submittingPrincipal, tasks: job.taskCount },
  });
  return live;
}

/** Entries are in order of time, so this stops at the first young one. */
function forgetOldKeys(state: State, nowMs: number): void {
  for (const [key, entry] of state.idempotency) {
    if (entry.createdAtMs > nowMs - IDEMPOTENCY_MS) return;
    state.idempotency.delete(key);
  }
}
