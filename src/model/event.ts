/** An event: something that happened, in commit order. Also the changelog peers read. */
import type { AttemptUid, JobId, TaskId, WorkerId } from './ids.ts';

export const EVENT_KINDS = [
  'job.submitted',
  'job.cancel-requested',
  'job.priority',
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
  'tokens.given',
  'tokens.refused',
  'worker.joined',
  'worker.suspect',
  'worker.online',
  'worker.lost',
  'worker.draining',
  'worker.undrained',
  'worker.revoked',
  'worker.unwell',
  'worker.well',
  'instance.intended',
  'instance.requested',
  'instance.booting',
  'instance.joined',
  'instance.draining',
  'instance.destroying',
  'instance.cancelled',
  'instance.ended',
  'host.fault',
  'host.set',
  'tenant.set',
  'user.set',
  'user.left',
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

/** What somebody did that others must be able to look up: these are chained, see auditChain.ts. */
export const AUDITED: ReadonlySet<EventKind> = new Set([
  'job.submitted',
  'job.cancel-requested',
  'job.priority',
  'job.inside',
  'secrets.given',
  'tokens.given',
  'token.created',
  'token.revoked',
  'budget.set',
  'budget.deleted',
  'worker.draining',
  'worker.undrained',
  'worker.revoked',
  'instance.cancelled',
  'host.set',
  'data.put',
  'data.removed',
  'tenant.set',
  'user.set',
  'user.left',
]);

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
  /** Its place in the chain of what somebody did; null for what only happened. */
  hash: string | null;
}
