/** For whom attempts of live jobs get tokens of other services; most jobs have no entry. */
import type { JobId } from '../model/ids.ts';
import type { Job } from '../model/job.ts';
import { DONE, type Reseal, type Result, type Submit } from './mutations.ts';
import type { State } from './state.ts';

/** What a running job submits is for whom that job is. */
export function addDownstream(state: State, mutation: Submit, job: Job, nowMs: number): void {
  const given = mutation.downstream;
  const whose = given ?? (job.parent === null ? undefined : state.downstream.get(job.parent));
  if (whose && whose.audiences.length > 0) {
    const { issuer, subject, audiences, sealed } = whose;
    const entry = { job: job.id, tenant: job.tenant, issuer, subject, audiences, sealed };
    state.downstream.set(job.id, entry);
    state.changes.downstream.set(entry, 'insert');
  }
  for (const { audience, reason } of given?.refused ?? []) {
    const data = { audience, reason };
    state.note(nowMs, { kind: 'tokens.refused', tenant: job.tenant, job: job.id, data });
  }
}

/** A job that has ended needs no tokens, and what could get some must not lie about. */
export function dropDownstream(state: State, job: JobId): void {
  const entry = state.downstream.get(job);
  if (!entry) return;
  state.downstream.delete(job);
  const pending = state.changes.downstream.get(entry);
  if (pending === 'insert') state.changes.downstream.delete(entry);
  else state.changes.downstream.set(entry, 'delete');
}

/** Jobs of one submission have one envelope, and a server may take each refresh token only once. */
export function reseal(state: State, { from, to }: Reseal): Result {
  for (const entry of state.downstream.values()) {
    if (entry.sealed !== from) continue;
    entry.sealed = to;
    if (!state.changes.downstream.has(entry)) state.changes.downstream.set(entry, 'update');
  }
  return DONE;
}
