/** What tasks have saved: committed under the attempt that wrote it, the newest few are kept. */
import type { Checkpoint } from '../model/checkpoint.ts';
import { taskId, type TaskId } from '../model/ids.ts';
import type { LiveJob } from './live.ts';
import { DONE, missing, stale, type AddCheckpoint, type Result } from './mutations.ts';
import type { State } from './state.ts';

/** Those of tasks that have not ended; the rest is only in the database. */
export class Checkpoints {
  readonly #byTask = new Map<TaskId, Checkpoint[]>();

  constructor(all: readonly Checkpoint[]) {
    for (const one of all) this.add(one);
  }

  /** Oldest first. */
  of(task: TaskId): readonly Checkpoint[] {
    return this.#byTask.get(task) ?? [];
  }

  newest(task: TaskId): Checkpoint | undefined {
    return this.of(task).at(-1);
  }

  add(checkpoint: Checkpoint): void {
    const task = taskId(checkpoint.job, checkpoint.index);
    const known = this.#byTask.get(task);
    if (known) known.push(checkpoint);
    else this.#byTask.set(task, [checkpoint]);
  }

  /** Takes away the oldest beyond `keep`. */
  trim(task: TaskId, keep: number): Checkpoint[] {
    const known = this.#byTask.get(task) ?? [];
    return known.splice(0, Math.max(0, known.length - keep));
  }

  forget(live: LiveJob): void {
    for (const { id } of live.tasks) this.#byTask.delete(id);
  }
}

/** Only the attempt that runs now may add to what its task resumes from. */
export function addCheckpoint(state: State, mutation: AddCheckpoint, nowMs: number): Result {
  const attempt = state.attempts.get(mutation.attempt);
  if (!attempt) return missing(`attempt ${mutation.attempt}`);
  if (attempt.worker !== mutation.worker) return stale('it runs on another worker');
  const found = state.task(attempt.task);
  if (!found) return missing(`task ${attempt.task}`);
  const { live, task } = found;
  const newest = state.checkpoints.newest(task.id);
  if (newest?.attempt === attempt.uid && !isNewer(mutation, newest)) return DONE;
  const { manifest, bytes, files, reason, takenBootMs } = mutation;
  const checkpoint: Checkpoint = {
    job: task.job,
    index: task.index,
    n: (newest?.n ?? 0) + 1,
    attempt: attempt.uid,
    tenant: task.tenant,
    ...{ manifest, bytes, files, reason, takenBootMs },
    createdAtMs: nowMs,
  };
  state.checkpoints.add(checkpoint);
  state.changes.checkpoints.set(checkpoint, 'insert');
  const keep = live.job.spec.checkpoint?.keep ?? 1;
  for (const old of state.checkpoints.trim(task.id, keep)) {
    // One that was added in this very batch has no row yet.
    if (!state.changes.checkpoints.delete(old)) state.changes.checkpoints.set(old, 'delete');
  }
  state.note(nowMs, {
    kind: 'checkpoint.added',
    tenant: task.tenant,
    job: task.job,
    task: task.id,
    attempt: attempt.uid,
    worker: attempt.worker,
    data: { n: checkpoint.n, bytes, files, reason },
  });
  return DONE;
}

/** Not the same once more, because its answer was lost, and none that a newer one overtook. */
function isNewer({ manifest, takenBootMs }: AddCheckpoint, newest: Checkpoint): boolean {
  if (manifest === newest.manifest) return false;
  return takenBootMs === 0 || takenBootMs >= newest.takenBootMs;
}
