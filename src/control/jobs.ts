/** The job half of the Coordinator: submit, look, list, cancel, wait. */
import { neverFits, type PoolLimits } from '../core/placement/admission.ts';
import { jobState } from '../core/lifecycle/job.ts';
import type { Clock } from '../lib/clock.ts';
import { DroverError } from '../lib/errors.ts';
import { indexOfTask, type JobId, type TaskId } from '../model/ids.ts';
import { PRIORITIES, type Job } from '../model/job.ts';
import type { Principal } from '../model/token.ts';
import type { Page, SubmitReply, SubmitRequest } from '../protocol/coordinator.ts';
import type { Coordinator } from '../protocol/coordinator.ts';
import type {
  AttemptView,
  JobView,
  ListJobsQuery,
  QueueEntry,
  TaskView,
} from '../protocol/jobs.ts';
import type { LiveJob } from '../state/live.ts';
import type { State } from '../state/state.ts';
import type { History } from '../store/contract.ts';
import type { Committer } from './committer.ts';
import { cutPage, decodeNumbers, decodeText, encodeCursor } from './cursors.ts';
import type { Mutate } from './mutate.ts';
import { attemptView, endedJobView, eventView, liveJobView, taskView } from './views.ts';

export interface JobsOptions {
  state: State;
  mutate: Mutate;
  committer: Committer;
  history: History;
  clock: Clock;
  pools: readonly PoolLimits[];
  reasons: Map<string, string>;
}

type JobCalls = Pick<
  Coordinator,
  | 'submit'
  | 'getJob'
  | 'listJobs'
  | 'cancelJob'
  | 'waitJob'
  | 'listTasks'
  | 'listAttempts'
  | 'listEvents'
  | 'queue'
>;

export interface Jobs extends JobCalls {
  /** Wakes waiters of jobs whose end was committed. */
  wakeWaiters(ended: Iterable<Job>): void;
  /** Resolves when the job has ended or the time is over. */
  ended(job: JobId, waitMs: number): Promise<void>;
}

export function createJobs(options: JobsOptions): Jobs {
  const { state, mutate, committer, history, clock, reasons } = options;
  const waiters = new Map<JobId, Set<() => void>>();

  async function submit(who: Principal, request: SubmitRequest): Promise<SubmitReply> {
    for (const spec of request.specs) {
      const reason = neverFits(spec, options.pools, state.pools);
      if (reason === null) continue;
      throw new DroverError('NEVER_FITS', reason, {
        hint: 'ask for less, or see what there is with: drover workers',
      });
    }
    const result = mutate({
      kind: 'submit',
      tenant: who.tenant,
      owner: who.user,
      submittingPrincipal: who.user,
      ...request,
    });
    if (result.kind !== 'submitted') {
      throw new DroverError(
        'IDEMPOTENCY_MISMATCH',
        `Idempotency-Key "${request.idempotencyKey}" was used for another body`,
        { hint: 'use a new key for a new submission' },
      );
    }
    await committer.durable();
    return { ids: result.ids, replayed: result.replayed };
  }

  /** A live job of this tenant; another tenant's is not there at all. */
  function liveOf(who: Principal, id: string): LiveJob | undefined {
    const live = state.jobs.get(id as JobId);
    return live?.job.tenant === who.tenant ? live : undefined;
  }

  function viewOf(live: LiveJob): JobView {
    return liveJobView(live, reasons.get(live.classKey));
  }

  async function getJob(who: Principal, id: string): Promise<JobView> {
    const live = liveOf(who, id);
    const view = live && viewOf(live);
    await committer.durable();
    if (view) return view;
    const row = await history.forTenant(who.tenant).job(id);
    if (!row) throw notFound(id);
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
    });
    return rows.map((row) => {
      const live = row.end_state === null ? liveOf(who, row.id) : undefined;
      return live ? viewOf(live) : endedJobView(row);
    });
  }

  async function cancelJob(who: Principal, id: string): Promise<JobView> {
    if (liveOf(who, id)) mutate({ kind: 'cancel', job: id as JobId, by: who.user });
    return getJob(who, id);
  }

  async function waitJob(who: Principal, id: string, waitMs: number): Promise<JobView> {
    if (liveOf(who, id)) await ended(id as JobId, waitMs);
    return getJob(who, id);
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
    waitJob,
    ended,
    wakeWaiters,
    ...createJobLists({ state, committer, history, getJob, viewOf }),
  };
}

interface ListOptions {
  state: State;
  committer: Committer;
  history: History;
  getJob: (who: Principal, id: string) => Promise<JobView>;
  viewOf: (live: LiveJob) => JobView;
}

/** Lists below a job come from rows, which the commit before has made current. */
function createJobLists(
  options: ListOptions,
): Pick<Coordinator, 'listTasks' | 'listAttempts' | 'listEvents' | 'queue'> {
  const { state, committer, history, getJob } = options;
  return {
    async listTasks(who, job, page) {
      await getJob(who, job);
      const [after = -1] = decodeNumbers(page.cursor, [-1]);
      const rows = await history.forTenant(who.tenant).tasks(job, after, page.limit + 1);
      const live = state.jobs.get(job as JobId);
      const items = rows.map((row): TaskView =>
        taskView(row, live?.attempts.get(row.task_index)?.worker ?? null),
      );
      return cutPage(items, page.limit, (task) => [task.index]);
    },
    async listAttempts(who, job, page) {
      await getJob(who, job);
      const [index = -1, n = -1] = decodeNumbers(page.cursor, [-1, -1]);
      const rows = await history.forTenant(who.tenant).attempts(job, [index, n], page.limit + 1);
      const position = ({ task, n }: AttemptView) => [indexOfTask(task as TaskId), n];
      return cutPage(rows.map(attemptView), page.limit, position);
    },
    async listEvents(who, job, page) {
      await getJob(who, job);
      const [epoch = 0, seq = 0] = decodeNumbers(page.cursor, [0, 0]);
      const rows = await history.forTenant(who.tenant).events(job, [epoch, seq], page.limit + 1);
      return cutPage(rows.map(eventView), page.limit, (event) => [event.epoch, event.seq]);
    },
    async queue(who, page) {
      const [start = 0] = decodeNumbers(page.cursor, [0]);
      const waiting: LiveJob[] = [];
      for (const live of state.jobs.values()) {
        if (live.counts.PENDING > 0 && live.job.tenant === who.tenant) waiting.push(live);
      }
      waiting.sort(inOrder);
      const shown = waiting.slice(start, start + page.limit);
      const items = shown.map((live, at) => queueEntry(live, start + at + 1, options.viewOf(live)));
      await committer.durable();
      const more = start + shown.length < waiting.length;
      return { items, nextCursor: more ? encodeCursor([start + shown.length]) : null };
    },
  };
}

function inOrder(a: LiveJob, b: LiveJob): number {
  const bands = PRIORITIES.indexOf(a.job.spec.priority) - PRIORITIES.indexOf(b.job.spec.priority);
  if (bands !== 0) return bands;
  return a.job.id < b.job.id ? -1 : 1;
}

function queueEntry(live: LiveJob, position: number, view: JobView): QueueEntry {
  return {
    job: live.job.id,
    name: live.job.spec.name,
    owner: live.job.owner,
    priority: live.job.spec.priority,
    position,
    pendingTasks: live.counts.PENDING,
    createdAtMs: live.job.createdAtMs,
    reason: view.reason,
  };
}

function notFound(id: string): DroverError {
  return new DroverError('NOT_FOUND', `there is no job ${id.slice(0, 100)}`, {
    hint: 'list them with: drover jobs',
  });
}
