/** Typed ids. They are strings with a one-letter prefix, sortable in the order they were minted. */

declare const brand: unique symbol;
type Id<Name extends string> = string & { readonly [brand]: Name };

export type JobId = Id<'job'>;
/** `<job id>.<index>`. */
export type TaskId = Id<'task'>;
/**
 * `<task id>.<n>.<random>`: names its attempt, so that it can be found without an index, and ends
 * in random, so that nobody who has not been told it can report for the attempt: it fences.
 */
export type AttemptUid = Id<'attempt'>;
export type WorkerId = Id<'worker'>;
export type TokenId = Id<'token'>;
export type InstanceId = Id<'instance'>;
export type ClusterId = Id<'cluster'>;

export function taskId(job: JobId, index: number): TaskId {
  return `${job}.${index}` as TaskId;
}

export function jobOfTask(task: TaskId): JobId {
  return task.slice(0, task.lastIndexOf('.')) as JobId;
}

export function indexOfTask(task: TaskId): number {
  return Number(task.slice(task.lastIndexOf('.') + 1));
}

export function attemptUid(task: TaskId, n: number, random: string): AttemptUid {
  return `${task}.${n}.${random}` as AttemptUid;
}

export function taskOf(uid: AttemptUid): TaskId {
  return uid.slice(0, uid.lastIndexOf('.', uid.lastIndexOf('.') - 1)) as TaskId;
}

export function jobOf(uid: AttemptUid): JobId {
  return uid.slice(0, uid.indexOf('.')) as JobId;
}

/** Null when the text cannot be an attempt's uid. */
export function parseAttemptUid(uid: string): { job: JobId; index: number; n: number } | null {
  const match = /^([a-z0-9]+)\.(\d{1,10})\.(\d{1,9})\.[0-9a-f]+$/.exec(uid);
  if (!match) return null;
  return { job: match[1] as JobId, index: Number(match[2]), n: Number(match[3]) };
}

const ALPHABET = '0123456789abcdefghijklmnopqrstuvwxyz';
const EPOCH_WIDTH = 8;

/** Mints short sortable ids: prefix, cluster tag, epoch, then a counter whose length leads it. */
export function idMinter(cluster: ClusterId, epoch: number): (prefix: string) => string {
  const stem = base36(epoch).padStart(EPOCH_WIDTH, '0') + cluster.slice(-3);
  let counter = 0;
  return (prefix) => {
    const digits = base36(counter++);
    return prefix + stem + ALPHABET[digits.length] + digits;
  };
}

function base36(value: number): string {
  return value.toString(36);
}
