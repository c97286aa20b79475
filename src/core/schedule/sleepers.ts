/** Tasks of one class that wait for a time: a retry's back-off. */
import type { JobId, TaskId } from '../../model/ids.ts';
import { LONGEST_DELAY_MS } from '../retry.ts';
import { Heap } from './heap.ts';
import type { PendingTask } from './view.ts';

export class Sleepers {
  readonly #tasks = new Map<TaskId, PendingTask>();
  #alarms = new Heap<PendingTask>(earlier);
  /** Came since `wake` was last called. */
  #fresh: PendingTask[] = [];
  #wokenAtMs = Number.NEGATIVE_INFINITY;

  get size(): number {
    return this.#tasks.size;
  }

  add(task: PendingTask): void {
    this.#tasks.set(task.task, task);
    this.#fresh.push(task);
  }

  /** True when it was here. */
  remove(task: PendingTask): boolean {
    return this.#tasks.delete(task.task);
  }

  /** Those whose time has come; they leave. */
  wake(nowMs: number): PendingTask[] {
    // A clock that went back may have left any of them further ahead than it should be.
    if (nowMs < this.#wokenAtMs) {
      this.#alarms = new Heap<PendingTask>(earlier);
      this.#fresh = [...this.#tasks.values()];
    }
    this.#wokenAtMs = nowMs;
    const woken: PendingTask[] = [];
    for (const task of this.#fresh) {
      if (!this.#has(task)) continue;
      if (isDue(task, nowMs)) woken.push(task);
      else this.#alarms.push(task);
    }
    this.#fresh = [];
    for (let task = this.#alarms.top(); task; task = this.#alarms.top()) {
      const waits = this.#has(task);
      if (waits && !isDue(task, nowMs)) break;
      this.#alarms.pop();
      if (waits) woken.push(task);
    }
    for (const task of woken) this.remove(task);
    return woken;
  }

  /** Right after `wake`; null: nothing waits. */
  nextAtMs(): number | null {
    return this.#alarms.top()?.notBeforeMs ?? null;
  }

  /** When the first of a job's tasks may be tried. */
  wakesAt(job: JobId): number | null {
    let first: number | null = null;
    for (const task of this.#tasks.values()) {
      if (task.job !== job) continue;
      first = first === null ? task.notBeforeMs : Math.min(first, task.notBeforeMs);
    }
    return first;
  }

  #has(task: PendingTask): boolean {
    return this.#tasks.get(task.task) === task;
  }
}

function isDue(task: PendingTask, nowMs: number): boolean {
  // Further ahead than any delay: the wall clock has gone back since it was set.
  return task.notBeforeMs <= nowMs || task.notBeforeMs > nowMs + LONGEST_DELAY_MS;
}

function earlier(a: PendingTask, b: PendingTask): boolean {
  return a.notBeforeMs < b.notBeforeMs;
}
