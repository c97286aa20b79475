/** The fake Coordinator's jobs: plain records and the views made of them. */
import type { AttemptView, EventView, JobView, LogRecordView, TaskView } from './jobs.ts';
import type { AttemptOrder } from './agent.ts';
import type { JobSpec, Priority } from '../model/job.ts';
import type { Principal } from '../model/token.ts';
import type { TaskState } from '../model/task.ts';

export interface FakeTask {
  view: TaskView;
  attempts: AttemptView[];
}

export interface FakeJob {
  id: string;
  by: Principal;
  spec: JobSpec;
  createdAtMs: number;
  cancelRequestedAtMs: number | null;
  tasks: FakeTask[];
  logs: LogRecordView[];
  /** Per attempt and stream, the next byte wanted: `uid/stream`. */
  offsets: Map<string, number>;
  events: EventView[];
}

const ENDED: ReadonlySet<TaskState> = new Set([
  'SUCCEEDED',
  'FAILED',
  'CANCELLED',
  'UNSCHEDULABLE',
]);

export function isEnded(task: FakeTask): boolean {
  return ENDED.has(task.view.state);
}

export function newJob(id: string, by: Principal, spec: JobSpec, now: number): FakeJob {
  const indices =
    spec.shape.kind === 'array'
      ? spec.shape.indices
      : Array.from({ length: spec.shape.kind === 'gang' ? spec.shape.size : 1 }, (_, i) => i);
  const tasks = indices.map((index) => ({ view: newTask(id, index, now), attempts: [] }));
  return {
    id,
    by,
    spec,
    createdAtMs: now,
    cancelRequestedAtMs: null,
    tasks,
    logs: [],
    offsets: new Map(),
    events: [],
  };
}

export function withPriority(job: FakeJob, priority: Priority): FakeJob {
  job.spec = { ...job.spec, priority };
  return job;
}

function newTask(job: string, index: number, now: number): TaskView {
  return {
    id: `${job}.${index}`,
    job,
    index,
    state: 'PENDING',
    reason: 'no worker has asked for it yet',
    attempts: 0,
    failures: 0,
    interruptions: 0,
    exitCode: null,
    worker: null,
    createdAtMs: now,
    startedAtMs: null,
    endedAtMs: null,
  };
}

export function jobView(job: FakeJob, withSpec: boolean): JobView {
  const count = (...states: TaskState[]): number =>
    job.tasks.filter((task) => states.includes(task.view.state)).length;
  const ended = job.tasks.every(isEnded);
  const starts = job.tasks.flatMap(({ view }) => view.startedAtMs ?? []);
  const codes = job.tasks.flatMap(({ view }) => view.exitCode ?? []);
  const failed = job.tasks.find(({ view }) => view.state === 'FAILED');
  return {
    id: job.id,
    name: job.spec.name,
    state: jobState(job, ended),
    reason: (failed ?? job.tasks[0])?.view.reason ?? '',
    kind: 'batch',
    cluster: 'local',
    tenant: job.by.tenant,
    owner: job.by.user,
    submittingPrincipal: job.by.user,
    priority: job.spec.priority,
    pool: job.spec.pool,
    createdAtMs: job.createdAtMs,
    startedAtMs: starts.length === 0 ? null : Math.min(...starts),
    endedAtMs: ended ? Math.max(...job.tasks.map(({ view }) => view.endedAtMs ?? 0)) : null,
    cancelRequestedAtMs: job.cancelRequestedAtMs,
    parent: null,
    root: null,
    exitCode: ended ? (codes.find((code) => code !== 0) ?? codes[0] ?? null) : null,
    tasks: {
      total: job.tasks.length,
      pending: count('PENDING'),
      running: count('ASSIGNED', 'RUNNING'),
      succeeded: count('SUCCEEDED'),
      failed: count('FAILED'),
      cancelled: count('CANCELLED'),
      unschedulable: count('UNSCHEDULABLE'),
    },
    ...(withSpec && { spec: job.spec }),
  };
}

function jobState(job: FakeJob, ended: boolean): JobView['state'] {
  const some = (state: TaskState): boolean => job.tasks.some(({ view }) => view.state === state);
  if (!ended)
    return job.tasks.every(({ view }) => view.state === 'PENDING') ? 'PENDING' : 'RUNNING';
  if (some('FAILED')) return 'FAILED';
  if (some('CANCELLED')) return 'CANCELLED';
  return 'SUCCEEDED';
}

export function orderOf(job: FakeJob, task: FakeTask, attempt: AttemptView): AttemptOrder {
  const { spec } = job;
  return {
    uid: attempt.uid,
    job: job.id,
    task: task.view.id,
    index: task.view.index,
    n: attempt.n,
    command: spec.command,
    env: { ...spec.env, DROVER_JOB_ID: job.id },
    workdir: spec.workdir,
    cpuMillis: spec.resources.cpuMillis,
    memoryBytes: spec.resources.memoryBytes,
    devices: [],
    share: 1000,
    ports: [],
    graceMs: spec.graceMs,
    attemptLeaseMs: spec.attemptLeaseMs,
  };
}
