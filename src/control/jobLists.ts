/** Lists below a job, and the queue. */
import { indexOfTask, type JobId, type TaskId } from '../model/ids.ts';
import { PRIORITIES, type Job } from '../model/job.ts';
import type { Principal } from '../model/token.ts';
import type { Coordinator } from '../protocol/coordinator.ts';
import type { JobView, QueueEntry, TaskPageQuery, TaskView } from '../protocol/jobs.ts';
import type { LiveJob } from '../state/live.ts';
import type { State } from '../state/state.ts';
import type { History } from '../store/contract.ts';
import { decodeTask } from '../store/decode.ts';
import type { Committer } from './committer.ts';
import { cutPage, decodeNumbers, encodeCursor } from './cursors.ts';
import { attemptView, checkpointView, eventView, taskView } from './views.ts';

interface ListOptions {
  state: State;
  committer: Committer;
  history: History;
  getJob: (who: Principal, id: string) => Promise<JobView>;
  viewOf: (live: LiveJob) => JobView;
  mine: (who: Principal, job: Job) => boolean;
}

export function createJobLists(
  options: ListOptions,
): Pick<Coordinator, 'listTasks' | 'listAttempts' | 'listEvents' | 'listCheckpoints' | 'queue'> {
  const { state, committer, history, getJob } = options;
  return {
    async listTasks(who, job, page) {
      const [after = -1] = decodeNumbers(page.cursor, [-1]);
      const live = state.jobs.get(job as JobId);
      // Before the wait for the commit: afterwards an ended job may have left the memory.
      const alive = live?.job.tenant === who.tenant ? liveTaskViews(live, after, page.limit) : null;
      await getJob(who, job);
      const items = alive ?? (await endedTaskViews(history, who, job, after, page.limit));
      return cutPage(items, page.limit, (task) => [task.index]);
    },
    async listAttempts(who, job, page) {
      await getJob(who, job);
      const after = startOf(page);
      const rows = await history.forTenant(who.tenant).attempts(job, after, page.limit + 1);
      return cutPage(rows.map(attemptView).filter(isOf(page)), page.limit, positionOf);
    },
    async listCheckpoints(who, job, page) {
      await getJob(who, job);
      const after = startOf(page);
      const rows = await history.forTenant(who.tenant).checkpoints(job, after, page.limit + 1);
      return cutPage(rows.map(checkpointView).filter(isOf(page)), page.limit, positionOf);
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
        const { job, counts } = live;
        if (counts.PENDING > 0 && job.tenant === who.tenant && options.mine(who, job)) {
          waiting.push(live);
        }
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

/** Lists are in the order of (task, n): those of one task are a stretch of them. */
function startOf({ cursor, task }: TaskPageQuery): [number, number] {
  const [index = -1, n = -1] = decodeNumbers(cursor, task === undefined ? [-1, -1] : [task, -1]);
  return [index, n];
}

const isOf =
  ({ task: wanted }: TaskPageQuery) =>
  ({ task }: { task: string }): boolean =>
    wanted === undefined || indexOfTask(task as TaskId) === wanted;

const positionOf = ({ task, n }: { task: string; n: number }): number[] => [
  indexOfTask(task as TaskId),
  n,
];

function liveTaskViews(live: LiveJob, after: number, limit: number): TaskView[] {
  const first = live.tasks.findIndex((task) => task.index > after);
  if (first < 0) return [];
  return live.tasks
    .slice(first, first + limit + 1)
    .map((task) => taskView(task, live.attempts.get(task.index)?.worker ?? null));
}

async function endedTaskViews(
  history: History,
  who: Principal,
  job: string,
  after: number,
  limit: number,
): Promise<TaskView[]> {
  const rows = await history.forTenant(who.tenant).tasks(job, after, limit + 1);
  return rows.map((row) => taskView(decodeTask(row), null));
}

/** Bands first, then age: job ids sort in the order they were minted. */
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
