/** Jobs of the fake server, and what a test makes them do. */
import type { AttemptView, JobView, LogRecordView, TaskView } from '../protocol/jobs.ts';
import type { SubmittedSpec } from '../protocol/jobSpec.ts';
import type { FakeServer } from './fakeServer.ts';

export interface FakeJob {
  view: JobView;
  spec: SubmittedSpec;
  tasks: TaskView[];
  attempts: AttemptView[];
  records: LogRecordView[];
  /** Followers are told the end once this is set. */
  logEnded: boolean;
}

export function addJob(fake: FakeServer, spec: SubmittedSpec): FakeJob {
  const id = `j${fake.jobs.size + 1}`;
  const shape = spec.shape ?? { kind: 'single' };
  const indices =
    shape.kind === 'array'
      ? shape.indices
      : Array.from({ length: shape.kind === 'gang' ? shape.size : 1 }, (_, i) => i);
  const createdAtMs = Date.now();
  const view: JobView = {
    id,
    name: spec.name ?? '',
    state: 'PENDING',
    reason: '',
    kind: 'batch',
    cluster: 'local',
    tenant: 'default',
    owner: 'ada',
    submittingPrincipal: 'ada',
    priority: spec.priority ?? 'batch',
    pool: spec.pool ?? '',
    createdAtMs,
    startedAtMs: null,
    endedAtMs: null,
    cancelRequestedAtMs: null,
    parent: null,
    root: null,
    exitCode: null,
    tasks: { ...NO_TASKS, total: indices.length, pending: indices.length },
  };
  const tasks = indices.map((index): TaskView => ({ ...taskOf(id, index), createdAtMs }));
  const job: FakeJob = { view, spec, tasks, attempts: [], records: [], logEnded: false };
  fake.jobs.set(id, job);
  fake.onSubmit(job);
  return job;
}

const NO_TASKS = {
  total: 0,
  pending: 0,
  running: 0,
  succeeded: 0,
  failed: 0,
  cancelled: 0,
  unschedulable: 0,
};

function taskOf(job: string, index: number): TaskView {
  return {
    id: `${job}.${index}`,
    job,
    index,
    state: 'PENDING',
    reason: '',
    attempts: 0,
    failures: 0,
    interruptions: 0,
    exitCode: null,
    worker: null,
    createdAtMs: 0,
    startedAtMs: null,
    endedAtMs: null,
  };
}

/** One record of output: text as text, bytes as base64. */
export function addOutput(
  fake: FakeServer,
  job: FakeJob,
  output: string | Buffer,
  more: Partial<LogRecordView> = {},
): void {
  const seq = (job.records.at(-1)?.seq ?? 0) + 1;
  const index = more.index ?? 0;
  const data =
    typeof output === 'string' ? { text: output } : { base64: output.toString('base64') };
  const place = { seq, task: `${job.view.id}.${index}`, index, attempt: 1, offset: 0, atMs: 1 };
  job.records.push({ ...place, stream: 'stdout', ...data, ...more });
  fake.changed();
}

/** Ends a job and its log. */
export function endJob(fake: FakeServer, job: FakeJob, end: Partial<JobView>): void {
  Object.assign(job.view, { endedAtMs: Date.now(), ...end });
  job.logEnded = true;
  fake.changed();
}
