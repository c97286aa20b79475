/** Submission: jobs and their tasks appear, once per idempotency key. */
import type { Event } from '../model/event.ts';
import type { JobId } from '../model/ids.ts';
import type { Job, JobSpec } from '../model/job.ts';
import { waitForOthers } from './after.ts';
import { cancel } from './cancel.ts';
import { addDownstream } from './downstream.ts';
import { mindsNames, takenNames, type Taken } from './family.ts';
import { idempotencyKey, type LiveJob } from './live.ts';
import { stale, type Result, type Submit, type SubmitLink } from './mutations.ts';
import type { State } from './state.ts';
import { newTasks, taskCount } from './tasks.ts';

const NONE_TAKEN: Taken = new Map();
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
  const { specs, parent } = mutation;
  if (parent !== undefined && !mayHaveChildren(state.jobs.get(parent))) {
    return stale(`job ${parent} is ending`);
  }
  const taken = mindsNames(specs) ? takenNames(state, mutation) : NONE_TAKEN;
  if ('refused' in taken) return { kind: 'name-taken', name: taken.refused, job: taken.job };
  const kept = replaceOthers(state, taken, nowMs);
  const ids = specs.map((_spec, at) => kept.get(at) ?? (state.mint('j') as JobId));
  const fresh: LiveJob[] = [];
  for (const [at, spec] of specs.entries()) {
    if (kept.has(at)) continue;
    const whole = mutation.links.length > 0 ? linked(spec, at, mutation.links, ids) : spec;
    fresh.push(addJob(state, mutation, ids[at] as JobId, whole, nowMs, fresh.length === 0));
  }
  for (const live of fresh) if (live.job.spec.after.length > 0) waitForOthers(state, live, nowMs);
  if (key !== null) {
    const entry = { bodyHash: bodyHash ?? '', ids, createdAtMs: nowMs };
    state.addKey({ tenant: mutation.tenant, key, entry });
  }
  return { kind: 'submitted', ids, replayed: false };
}

function mayHaveChildren(parent: LiveJob | undefined): boolean {
  return parent?.job.endedAtMs === null && parent.job.cancelRequestedAtMs === null;
}

/** Those that stay in the place of a new one, by its position; those that must go are asked to. */
function replaceOthers(state: State, taken: Taken, nowMs: number): Map<number, JobId> {
  const kept = new Map<number, JobId>();
  for (const [at, { rule, live }] of taken) {
    if (rule === 'keep') kept.set(at, live.job.id);
    else {
      const by = 'a new job of the same name';
      cancel(state, { kind: 'cancel', job: live.job.id, by }, nowMs);
    }
  }
  return kept;
}

function linked(spec: JobSpec, at: number, links: SubmitLink[], ids: JobId[]): JobSpec {
  const mine = links.filter(({ waits }) => waits === at);
  if (mine.length === 0) return spec;
  const more = mine.map(({ after, when }) => ({ job: ids[after] as JobId, when }));
  return { ...spec, after: [...spec.after, ...more] };
}

/** `first` of its submission: it stands for all of them in the record of who did what. */
function addJob(
  state: State,
  mutation: Submit,
  id: JobId,
  spec: JobSpec,
  nowMs: number,
  first: boolean,
): LiveJob {
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
    parent: mutation.parent ?? null,
    root: rootOf(state, mutation.parent),
    cancelRequestedAtMs: null,
    cancelledBy: null,
    endedAtMs: null,
    spentMicros: 0,
    newPriority: null,
    // The first version's row has no parent.
    version: mutation.parent === undefined ? 1 : 2,
  };
  const live = state.addJob(job, newTasks(job));
  state.note(nowMs, {
    kind: 'job.submitted',
    tenant: job.tenant,
    job: id,
    data: submitted(mutation, job, first),
    audited: first,
  });
  addDownstream(state, mutation, job, nowMs);
  return live;
}

function submitted(mutation: Submit, job: Job, first: boolean): Event['data'] {
  const { submittingPrincipal: by, specs } = mutation;
  const data: Event['data'] = { by, tasks: job.taskCount };
  if (first && specs.length > 1) data['jobs'] = specs.length;
  return data;
}

function rootOf(state: State, parent: JobId | undefined): JobId | null {
  return parent === undefined ? null : (state.jobs.get(parent)?.job.root ?? parent);
}

/** Entries are in order of time, so this stops at the first young one. */
function forgetOldKeys(state: State, nowMs: number): void {
  for (const [key, entry] of state.idempotency) {
    if (entry.createdAtMs > nowMs - IDEMPOTENCY_MS) return;
    state.idempotency.delete(key);
  }
}
