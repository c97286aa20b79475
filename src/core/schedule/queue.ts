/**
 * The pending tasks of one class in the order they are placed: oldest job first, then by index; a
 * gang is one entry that is ready when all its members wait in the same round. Removal is lazy.
 */
import type { JobId } from '../../model/ids.ts';
import { LONGEST_DELAY_MS } from '../retry.ts';
import type { PendingTask } from './view.ts';

interface Entry {
  job: JobId;
  index: number;
  members: PendingTask[];
  removed: boolean;
}

export class PendingQueue {
  readonly #gangSize: number;
  #heap: Entry[] = [];
  readonly #entries = new Map<string, Entry>();
  readonly #gangs = new Map<JobId, Map<number, PendingTask>>();
  /** Tasks that wait for a time (a retry's back-off), by that time. */
  readonly #later = new Map<string, PendingTask>();
  #size = 0;

  constructor(gangSize: number) {
    this.#gangSize = gangSize;
  }

  /** Pending tasks, also those of incomplete gangs and those that must wait. */
  get size(): number {
    return this.#size;
  }

  add(task: PendingTask): void {
    this.#size++;
    if (task.notBeforeMs > 0) this.#later.set(task.task, task);
    else this.#ready(task);
  }

  remove(task: PendingTask): void {
    this.#size--;
    if (this.#later.delete(task.task)) return;
    const key = this.#gangSize > 1 ? task.job : task.task;
    const entry = this.#entries.get(key);
    if (entry) {
      entry.removed = true;
      this.#entries.delete(key);
    }
    const gang = this.#gangs.get(task.job);
    gang?.delete(task.index);
    if (gang?.size === 0) this.#gangs.delete(task.job);
  }

  /** Moves tasks whose time has come into the order. Returns the earliest time still ahead. */
  mature(nowMs: number): number | null {
    let next: number | null = null;
    for (const task of this.#later.values()) {
      // Further ahead than any delay: the wall clock has gone back since it was set.
      if (task.notBeforeMs <= nowMs || task.notBeforeMs > nowMs + LONGEST_DELAY_MS) {
        this.#later.delete(task.task);
        this.#ready(task);
      } else if (next === null || task.notBeforeMs < next) next = task.notBeforeMs;
    }
    return next;
  }

  /** The first entry's members, without removing it. */
  peek(): PendingTask[] | null {
    for (;;) {
      const top = this.#heap[0];
      if (!top) return null;
      if (!top.removed) return top.members;
      this.#popTop();
    }
  }

  /** Takes the first entry out of the order; it comes back only by add. */
  skip(): void {
    const top = this.#heap[0];
    if (!top) return;
    top.removed = true;
    this.#entries.delete(this.#gangSize > 1 ? top.job : (top.members[0]?.task ?? ''));
    this.#popTop();
  }

  #ready(task: PendingTask): void {
    if (this.#gangSize === 1) {
      this.#push({ job: task.job, index: task.index, members: [task], removed: false }, task.task);
      return;
    }
    const gang = this.#gangs.get(task.job) ?? new Map<number, PendingTask>();
    this.#gangs.set(task.job, gang);
    gang.set(task.index, task);
    const members = [...gang.values()].filter((member) => member.round === task.round);
    if (members.length < this.#gangSize) return;
    members.sort((a, b) => a.index - b.index);
    this.#push({ job: task.job, index: 0, members, removed: false }, task.job);
  }

  #push(entry: Entry, key: string): void {
    const old = this.#entries.get(key);
    if (old) old.removed = true;
    this.#entries.set(key, entry);
    const heap = this.#heap;
    let at = heap.push(entry) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!before(entry, heap[parent])) break;
      heap[at] = heap[parent] as Entry;
      at = parent;
    }
    heap[at] = entry;
  }

  #popTop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (!last || heap.length === 0) return;
    let at = 0;
    for (;;) {
      let child = at * 2 + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && before(heap[child + 1], heap[child])) child++;
      if (!before(heap[child], last)) break;
      heap[at] = heap[child] as Entry;
      at = child;
    }
    heap[at] = last;
  }
}

/** Job ids sort in the order they were minted. */
function before(a: Entry | undefined, b: Entry | undefined): boolean {
  if (!a || !b) return a !== undefined;
  if (a.job !== b.job) return a.job < b.job;
  return a.index < b.index;
}
