/** Typed ids. They are strings with a one-letter prefix, sortable in the order they were minted. */

declare const brand: unique symbol;
type Id<Name extends string> = string & { readonly [brand]: Name };

export type JobId = Id<'job'>;
/** `<job id>.<index>`. */
export type TaskId = Id<'task'>;
/** Random, so that nobody who has not been told it can report for the attempt: it fences. */
export type AttemptUid = Id<'attempt'>;
export type WorkerId = Id<'worker'>;
export type TokenId = Id<'token'>;
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
