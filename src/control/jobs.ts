/** The job half of the Coordinator: submit, look, list, cancel, wait. */
import type { Explanation } from '../core/explain.ts';
import { neverFits, type PoolPolicy } from '../core/placement/admission.ts';
import { jobState } from '../core/lifecycle/job.ts';
import type { Clock } from '../lib/clock.ts';
import { DroverError } from '../lib/errors.ts';
import type { JobId } from '../model/ids.ts';
import type { Job, JobSpec, Priority } from '../model/job.ts';
import type { Principal } from '../model/token.ts';
import { refuseChange } from '../model/policy/refusal.ts';
import type { Coordinator, Page, SubmitReply, SubmitRequest } from '../protocol/coordinator.ts';
import type { JobView, ListJobsQuery } from '../protocol/jobs.ts';
import type { PolicySource } from '../protocol/policy.ts';
import { idempotencyKey, type LiveJob } from '../state/live.ts';
import type { State } from '../state/state.ts';
import type { History } from '../store/contract.ts';
import type { Committer } from './committer.ts';
import { cutPage, decodeText } from './cursors.ts';
import { allToCome, resolveAfter, type Resolved } from './after.ts';
import { resolveData } from './dataSets.ts';
import { downstreamOf } from './downstream.ts';
import { createJobLists } from './jobLists.ts';
import type { Mutate } from './mutate.ts';
import { checkChannels, type Channels } from './notices.ts';
import { underPolicy } from './policy.ts';
import { checkQuotas } from './quotas.ts';
import { endedJobView, liveJobView } from './views.ts';

export interface JobsOptions {
  state: State;
  mutate: Mutate;
  committer: Committer;
  history: History;
  clock: Clock;
  pools: readonly PoolPolicy[];
  reasons: ReadonlyMap<string, Explanation>;
  channels?: Channels | undefined;
  policy: PolicySource;
}

const NO_CHANNELS: Channels = new Map();

type JobCalls = Pick<
  Coordinator,
  | 'submit'
  | 'getJob'
  | 'listJobs'
  | 'cancelJob'
  | 'setPriority'
  | 'waitJob'
  | 'listTasks'
  | 'listAttempts'
  | 'listEvents'
  | 'listCheckpoints'
  | 'queue'
>;

export interface Jobs extends JobCalls {
  /** Wakes waiters of jobs whose end was committed. */
  wakeWaiters(ended: Iterable<Job>): void;
  /** Null while it lives: known at once, without waiting for anybody's commit. */
  endedAt(who: Principal, id: string): Promise<number | null>;
  /** Resolves when the job has ended or the time is over. */
  ended(job: JobId, waitMs: number): Promise<void>;
}

export function createJobs(options: JobsOptions): Jobs {
  const { state, mutate, committer, history, clock, reasons } = options;
  const waiters = new Map<JobId, Set<() => void>>();

  async function submit(who: Principal, request: SubmitRequest): Promise<SubmitReply> {
    const { idempotencyKey: key, bodyHash } = request;
    let resolved = await resolve(who, request);
    // What it waits for may have ended while we read of it: then that is read, once for each.
    while (!isKnown(who, key) && !allToCome(state, resolved.specs)) {
      resolved = await resolve(who, request);
    }
    const result = mutate({
      kind: 'submit',
      tenant: who.tenant,
      owner: who.user,
      submittingPrincipal: who.user,
      idempotencyKey: key,
      bodyHash,
      ...(who.job && { parent: who.job }),
      ...downstreamOf(who, request),
      ...resolved,
    });
    if (result.kind === 'stale') {
      throw new DroverError('CONFLICT', `${result.reason}: it cannot submit jobs any more`);
    }
    if (result.kind === 'name-taken') throw nameTaken(result.name, result.job);
    if (result.kind !== 'submitted') {
      throw new DroverError(
        'IDEMPOTENCY_MISMATCH',
        `Idempotency-Key "${key}" was used for another body`,
        { hint: 'use a new key for a new submission' },
      );
    }
    await committer.durable();
    return { ids: result.ids, replayed: result.replayed };
  }

  function isKnown({ tenant }: Principal, key: string | null): boolean {
    return key !== null && state.idempotency.has(idempotencyKey(tenant, key));
  }

  /** A known key decides alone: what was accepted once is answered the same for ever. */
  async function resolve(who: Principal, request: SubmitRequest): Promise<Resolved> {
    const { idempotencyKey: key } = request;
    if (isKnown(who, key)) return { specs: request.specs, links: [] };
    const specs = resolveData(state, who.tenant, underPolicy(options, who, request.specs));
    checkFits(who, specs);
    if (specs.every((spec) => spec.after.length === 0)) return { specs, links: [] };
    try {
      const read = { state, committer, history: history.forTenant(who.tenant) };
      return await resolveAfter(read, who.tenant, specs);
    } catch (error) {
      if (isKnown(who, key)) return { specs, links: [] };
      throw error;
    }
  }

  function checkFits(who: Principal, specs: readonly JobSpec[]): void {
    checkChannels(options.channels ?? NO_CHANNELS, who.tenant, specs);
    checkQuotas(state, who, specs);
    for (const spec of differentRequests(specs)) {
      const reason = neverFits(spec, options.pools, state.pools);
      if (reason === null) continue;
      throw new DroverError('NEVER_FITS', reason, {
        hint: 'ask for less, or see what there is with: drover workers',
      });
    }
  }

  /** A live job of this tenant; another tenant's is not there at all. */
  function liveOf(who: Principal, id: string): LiveJob | undefined {
    const live = state.jobs.get(id as JobId);
    return live?.job.tenant === who.tenant && mine(who, live.job) ? live : undefined;
  }

  /** A running job sees the line of jobs it belongs to; everybody else his tenant's. */
  function mine(who: Principal, job: { id: string; root: string | null }): boolean {
    if (who.job === undefined) return true;
    const root = state.jobs.get(who.job)?.job.root ?? who.job;
    return (job.root ?? job.id) === root;
  }

  function viewOf(live: LiveJob): JobView {
    return liveJobView(live, reasons.get(live.classKey)?.sentence);
  }

  async function getJob(who: Principal, id: string): Promise<JobView> {
    const live = liveOf(who, id);
    const view = live && viewOf(live);
    await committer.durable();
    if (view) return view;
    const row = await history.forTenant(who.tenant).job(id);
    if (!row || !mine(who, row)) throw notFound(id);
    return endedJobView(row);
  }

  /** Newest first. Rows give the order; what is live is shown as it is now. */
  async function listJobs(who: Principal, query: ListJobsQuery): Promise<Page<JobView>> {
    const before = decodeText(query.cursor);
    await committer.durable();
    const onlyLive = query.state === 'PENDING' || query.state === 'RUNNING';
    const found = onlyLive ? listLive(who, query, before) : await listRows(who, query, before);
    const items = found.map(({ spec: _spec, ...item }) => item);
    return cutPage(items, query.limit, (last) => [last.id]);
  }

  function listLive(who: Principal, query: ListJobsQuery, before: string | undefined): JobView[] {
    const found: LiveJob[] = [];
    for (const live of state.jobs.values()) {
      const { job } = live;
      if (job.tenant !== who.tenant || (before !== undefined && job.id >= before)) continue;
      if (query.name !== undefined && job.spec.name !== query.name) continue;
      if (query.owner !== undefined && job.owner !== query.owner) continue;
      if (query.parent !== undefined && job.parent !== query.parent) continue;
      if (!mine(who, job)) continue;
      if (jobState(live.counts) === query.state) found.push(live);
    }
    found.sort((a, b) => (a.job.id < b.job.id ? 1 : -1));
    return found.slice(0, query.limit + 1).map(viewOf);
  }

  async function listRows(
    who: Principal,
    query: ListJobsQuery,
    before: string | undefined,
  ): Promise<JobView[]> {
    const rows = await history.forTenant(who.tenant).jobs({
      limit: query.limit + 1,
      ...(before !== undefined && { before }),
      ...(query.state !== undefined && { endState: query.state }),
      ...(query.name !== undefined && { name: query.name }),
      ...(query.owner !== undefined && { owner: query.owner }),
      ...(query.parent !== undefined && { parent: query.parent }),
      ...(who.job !== undefined && { root: state.jobs.get(who.job)?.job.root ?? who.job }),
    });
    return Promise.all(
      rows.map(async (row) => {
        if (row.end_state !== null) return endedJobView(row);
        const live = liveOf(who, row.id);
        // Neither ended nor live: it has ended since its row was read.
        return live ? viewOf(live) : getJob(who, row.id);
      }),
    );
  }

  async function cancelJob(who: Principal, id: string): Promise<JobView> {
    if (liveOf(who, id)) mutate({ kind: 'cancel', job: id as JobId, by: who.user });
    return getJob(who, id);
  }

  async function setPriority(who: Principal, id: string, priority: Priority): Promise<JobView> {
    const live = liveOf(who, id);
    // One that has ended stays live until that is written.
    if (live?.job.endedAtMs !== null) {
      const { state: ended } = await getJob(who, id);
      throw new DroverError('CONFLICT', `job ${id} is ${ended}: its priority matters no more`);
    }
    const { spec } = live.job;
    refuseChange(options.policy.current(), who, spec, { ...spec, priority });
    mutate({ kind: 'set-priority', job: id as JobId, priority, by: who.user });
    return getJob(who, id);
  }

  async function waitJob(who: Principal, id: string, waitMs: number): Promise<JobView> {
    if (liveOf(who, id)) await ended(id as JobId, waitMs);
    return getJob(who, id);
  }

  async function endedAt(who: Principal, id: string): Promise<number | null> {
    if (liveOf(who, id)?.job.endedAtMs === null) return null;
    return (await getJob(who, id)).endedAtMs;
  }

  function ended(id: JobId, waitMs: number): Promise<void> {
    const live = state.jobs.get(id);
    if (!live || live.job.endedAtMs !== null) return committer.durable();
    return new Promise<void>((resolve) => {
      const waiting = waiters.get(id) ?? new Set();
      waiters.set(id, waiting);
      const done = (): void => {
        timer.cancel();
        waiting.delete(done);
        if (waiting.size === 0) waiters.delete(id);
        resolve();
      };
      const timer = clock.setTimer(waitMs, done);
      waiting.add(done);
    });
  }

  function wakeWaiters(jobs: Iterable<Job>): void {
    if (waiters.size === 0) return;
    for (const job of jobs) for (const wake of [...(waiters.get(job.id) ?? [])]) wake();
  }

  return {
    submit,
    getJob,
    listJobs,
    cancelJob,
    setPriority,
    waitJob,
    endedAt,
    ended,
    wakeWaiters,
    ...createJobLists({ state, committer, history, getJob, viewOf, mine }),
  };
}

/** One of each run of specs that ask for the same: admission looks at nothing else. */
function* differentRequests(specs: readonly JobSpec[]): Generator<JobSpec> {
  let last: JobSpec | undefined;
  for (const spec of specs) {
    if (spec.resources !== last?.resources || spec.pool !== last.pool) yield spec;
    last = spec;
  }
}

function nameTaken(name: string, job: JobId | null): DroverError {
  const detail = job
    ? `the job ${job} has the name "${name}" and has not ended`
    : `two jobs of this submission have the name "${name}"`;
  return new DroverError('CONFLICT', detail, {
    hint: 'choose another name, or what shall happen with: --if-named keep|replace|allow',
  });
}

function notFound(id: string): DroverError {
  return new DroverError('NOT_FOUND', `there is no job ${id.slice(0, 100)}`, {
    hint: 'list them with: drover jobs',
  });
}
