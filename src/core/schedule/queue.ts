/**
 * The pending tasks of one class in the order they are placed: oldest job first, then by index; a
 * gang is one entry that is ready when all its members wait in the same round. A job may be set
 * aside while others of the class go on. Removal is lazy.
 */
import type { JobId } from '../../model/ids.ts';
import { Heap } from './heap.ts';
import { Sleepers } from './sleepers.ts';
import type { PendingTask } from './view.ts';

/** A task, or for a gang its first member: many wait, so each costs as little as it can. */
type Entry = PendingTask;

/** What waits of one job. Most have one task, so the first entry stands by itself. */
interface Line {
  job: JobId;
  first: Entry | null;
  /** The others, if there were any. */
  rest: Heap<Entry> | null;
  aside: boolean;
  /** Stands in the order of jobs. */
  listed: boolean;
}

export class PendingQueue {
  readonly #gangSize: number;
  /** Job ids sort in the order they were minted. */
  readonly #order = new Heap<Line>((a, b) => a.job < b.job);
  readonly #lines = new Map<JobId, Line>();
  /** What is in the order; an entry with anything else is passed over. */
  readonly #inOrder = new Set<PendingTask>();
  readonly #gangs = new Map<JobId, Map<number, PendingTask>>();
  /** Null until there is one: there are many queues. */
  #asleep: Sleepers | null = null;
  #size = 0;
  /** What `peek` said last, while nothing has changed. */
  #head: PendingTask[] | null | undefined;

  constructor(gangSize: number) {
    this.#gangSize = gangSize;
  }

  /** Pending tasks, also those of incomplete gangs and those that must wait. */
  get size(): number {
    return this.#size;
  }

  /** Whether some wait for a time, so that `mature` must be called. */
  get sleeping(): boolean {
    return (this.#asleep?.size ?? 0) > 0;
  }

  add(task: PendingTask): void {
    this.#size++;
    if (task.notBeforeMs <= 0) {
      this.#ready(task);
      return;
    }
    (this.#asleep ??= new Sleepers()).add(task);
  }

  remove(task: PendingTask): void {
    this.#size--;
    this.takeOut(task);
  }

  /** Into the order again, at once: what was taken out of it had waited its time. */
  putBack(task: PendingTask): void {
    this.#ready(task);
  }

  /** Out of the order, though it goes on waiting. */
  takeOut(task: PendingTask): void {
    if (this.#asleep?.remove(task)) return;
    this.#head = undefined;
    this.#inOrder.delete(task);
    if (this.#gangSize === 1) return;
    const gang = this.#gangs.get(task.job);
    gang?.delete(task.index);
    if (gang?.size === 0) this.#gangs.delete(task.job);
  }

  /** Moves tasks whose time has come into the order. Returns the earliest time still ahead. */
  mature(nowMs: number): number | null {
    const asleep = this.#asleep;
    if (!asleep) return null;
    for (const task of asleep.wake(nowMs)) this.#ready(task);
    return asleep.nextAtMs();
  }

  /** The first entry's members, without removing it. */
  peek(): PendingTask[] | null {
    if (this.#head === undefined) this.#head = this.#findHead();
    return this.#head;
  }

  #findHead(): PendingTask[] | null {
    for (let line = this.#order.top(); line; line = this.#order.top()) {
      const entry = line.aside ? null : this.#firstOf(line);
      if (entry) return this.#membersOf(entry);
      this.#order.pop();
      line.listed = false;
      if (!line.aside) this.#lines.delete(line.job);
    }
    return null;
  }

  /** Takes the first entry out of the order; it comes back only by add. */
  skip(): void {
    const members = this.peek();
    const line = this.#order.top();
    if (!members || !line) return;
    this.#head = undefined;
    for (const task of members) this.#inOrder.delete(task);
    line.first = line.rest?.pop() ?? null;
  }

  /** Passes over the tasks of a job until `callBack`. */
  setAside(job: JobId): void {
    const line = this.#lines.get(job);
    if (line) line.aside = true;
    this.#head = undefined;
  }

  /** True when the job was set aside. */
  callBack(job: JobId): boolean {
    const line = this.#lines.get(job);
    if (!line?.aside) return false;
    line.aside = false;
    this.#list(line);
    return true;
  }

  /** Why a job of which tasks wait has none in the order; null: it has. */
  outOfOrder(job: JobId): 'aside' | 'later' | 'incomplete' | null {
    const line = this.#lines.get(job);
    if (line?.aside) return 'aside';
    if (line && this.#firstOf(line)) return null;
    return this.wakesAt(job) === null ? 'incomplete' : 'later';
  }

  /** When the first of its tasks that wait for a time may be tried. */
  wakesAt(job: JobId): number | null {
    return this.#asleep?.wakesAt(job) ?? null;
  }

  /** Tasks in the order, by job. */
  *jobs(): Iterable<{ job: JobId; tasks: number }> {
    for (const { job, first, rest } of this.#lines.values()) {
      const all = [...(first ? [first] : []), ...(rest?.items() ?? [])];
      const there = all.filter((entry) => this.#isThere(entry));
      if (there.length > 0) yield { job, tasks: there.length * this.#gangSize };
    }
  }

  /** Tasks in the order: whole gangs, and none that waits for a time. */
  get ready(): number {
    return this.#inOrder.size;
  }

  /** So many of them at most, from about the oldest job on: whole gangs. */
  first(limit: number): PendingTask[] {
    const found: PendingTask[] = [];
    for (const { first, rest, aside } of this.#lines.values()) {
      if (aside) continue;
      for (const entry of [...(first ? [first] : []), ...(rest?.items() ?? [])]) {
        if (found.length + this.#gangSize > limit) return found;
        if (this.#isThere(entry)) found.push(...this.#membersOf(entry));
      }
    }
    return found;
  }

  #ready(task: PendingTask): void {
    if (this.#gangSize === 1) {
      this.#inOrder.add(task);
      this.#push(task);
      return;
    }
    const gang = this.#gangs.get(task.job) ?? new Map<number, PendingTask>();
    this.#gangs.set(task.job, gang);
    gang.set(task.index, task);
    const members = this.#membersOf(task);
    if (members.length < this.#gangSize) return;
    for (const member of members) this.#inOrder.add(member);
    this.#push(members[0] as PendingTask);
  }

  /** Those who wait with it, by their index. */
  #membersOf(task: PendingTask): PendingTask[] {
    if (this.#gangSize === 1) return [task];
    const gang = this.#gangs.get(task.job)?.values() ?? [];
    const members = [...gang].filter((member) => member.round === task.round);
    return members.toSorted((a, b) => a.index - b.index);
  }

  #push(entry: Entry): void {
    const { job } = entry;
    let line = this.#lines.get(job);
    if (!line) {
      line = { job, first: null, rest: null, aside: false, listed: false };
      this.#lines.set(job, line);
    }
    if (this.#gangSize > 1) line.first = entry;
    else if (line.first && line.first.index <= entry.index) {
      (line.rest ??= new Heap<Entry>(byIndex)).push(entry);
    } else {
      if (line.first) (line.rest ??= new Heap<Entry>(byIndex)).push(line.first);
      line.first = entry;
    }
    this.#list(line);
  }

  #firstOf(line: Line): Entry | null {
    while (line.first && !this.#isThere(line.first)) line.first = line.rest?.pop() ?? null;
    return line.first;
  }

  #isThere(entry: Entry): boolean {
    if (this.#gangSize === 1) return this.#inOrder.has(entry);
    const members = this.#membersOf(entry);
    return members.length === this.#gangSize && members.every((task) => this.#inOrder.has(task));
  }

  #list(line: Line): void {
    this.#head = undefined;
    if (line.listed) return;
    line.listed = true;
    this.#order.push(line);
  }
}

function byIndex(a: Entry, b: Entry): boolean {
  return a.index < b.index;
}
