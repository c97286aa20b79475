/** An event: something that happened, in commit order. Also the changelog peers read. */
import type { AttemptUid, JobId, TaskId, WorkerId } from './ids.ts';

export const EVENT_KINDS = [
  'job.submitted',
  'job.cancel-requested',
  'job.ended',
  'task.assigned',
  'task.running',
  'task.ended',
  'task.requeued',
  'attempt.stopping',
  'checkpoint.added',
  'task.nominated',
  'task.withdrawn',
  'job.idle',
  'job.inside',
  'secrets.given',
  'worker.joined',
  'worker.suspect',
  'worker.online',
  'worker.lost',
  'worker.draining',
  'worker.undrained',
  'token.created',
  'token.revoked',
  'budget.set',
  'budget.deleted',
  'data.put',
  'data.removed',
  'notice.sent',
  'notice.dropped',
] as const;
export type EventKind = (typeof EVENT_KINDS)[number];

/** What somebody did that others must be able to look up; the index of the table has this list. */
export const AUDITED = [
  'job.inside',
  'secrets.given',
  'token.created',
  'token.revoked',
  'budget.set',
  'budget.deleted',
  'worker.draining',
  'worker.undrained',
] as const satisfies readonly EventKind[];

export interface Event {
  epoch: number;
  /** Order of commit, for ever rising. */
  seq: number;
  atMs: number;
  kind: EventKind;
  tenant: string;
  job: JobId | null;
  task: TaskId | null;
  attempt: AttemptUid | null;
  worker: WorkerId | null;
  /** Small facts, readable by a person: reason, exit code, who. */
  data: Record<string, string | number | boolean | null>;
}
