/** What waits, by class: tasks that are interchangeable are one entry in every order. */
import type { JobId, TaskId } from '../../model/ids.ts';
import type { PlacementRequest } from '../placement/request.ts';
import type { Accounts, Owner } from './accounts.ts';
import { PendingQueue } from './queue.ts';
import { Shapes, type Shape } from './shapes.ts';
import type { PendingTask } from './view.ts';

/** A class of interchangeable tasks, of which some wait or hold something. */
export interface PendingClass {
  request: PlacementRequest;
  owner: Owner;
  shape: Shape;
  queue: PendingQueue;
  /** How many tasks wait. */
  waiting: number;
  claims: number;
  /** What was last said of why its head waits; empty: nothing. */
  told: string;
}

export class Classes {
  readonly shapes = new Shapes();
  /** Those that may have something to place: new, or what they waited for has changed. */
  readonly open = new Set<PendingClass>();
  /** Those with tasks that wait for a time. */
  readonly sleeping = new Set<PendingClass>();
  /** Keys of those of which nothing waits any more, since the last plan. */
  emptied: string[] = [];
  readonly #accounts: Accounts;
  readonly #byKey = new Map<string, PendingClass>();
  readonly #tasks = new Map<TaskId, PendingTask>();
  /** Jobs of which tasks wait, and of how many more than one: most have one. */
  readonly #jobs = new Map<JobId, PendingClass>();
  readonly #more = new Map<JobId, number>();
  /** Tasks that have a place in prospect and so stand in no order. */
  readonly #nominated = new Set<TaskId>();
  /** Those that may have nothing left. */
  readonly #idle = new Set<PendingClass>();
  #byTenant = false;

  constructor(accounts: Accounts) {
    this.#accounts = accounts;
  }

  get(key: string): PendingClass {
    const pending = this.#byKey.get(key);
    if (!pending) throw new Error(`nobody has told what class ${key} asks for`);
    return pending;
  }

  values(): Iterable<PendingClass> {
    return this.#byKey.values();
  }

  task(id: TaskId): PendingTask | undefined {
    return this.#tasks.get(id);
  }

  ofJob(job: JobId): PendingClass | undefined {
    return this.#jobs.get(job);
  }

  taskCount(): number {
    return this.#tasks.size;
  }

  add(request: PlacementRequest): void {
    if (this.#byKey.has(request.key)) return;
    const pending: PendingClass = {
      request,
      owner: this.#accounts.owner(request.tenant, request.user),
      shape: this.shapes.of(request, this.#byTenant),
      queue: new PendingQueue(request.gangSize),
      waiting: 0,
      claims: 0,
      told: '',
    };
    pending.shape.classes.add(pending);
    this.#byKey.set(request.key, pending);
  }

  addTask(task: PendingTask): void {
    const pending = this.get(task.classKey);
    // Each came with a copy of its own; a hundred thousand of them are a burden.
    task.classKey = pending.request.key;
    const old = this.#tasks.get(task.task);
    const left = old && this.#unlist(old);
    if (left?.waiting === 0 && left !== pending) this.emptied.push(left.request.key);
    this.#tasks.set(task.task, task);
    pending.waiting++;
    const known = this.#jobs.get(task.job);
    // A job that changes its class does so with all its tasks.
    if (known !== pending) this.#jobs.set(task.job, pending);
    if (known) this.#more.set(task.job, (this.#more.get(task.job) ?? 0) + 1);
    pending.queue.add(task);
    if (this.#nominated.has(task.task)) pending.queue.takeOut(task);
    else this.#listed(pending, old !== undefined);
  }

  removeTask(id: TaskId): void {
    const task = this.#tasks.get(id);
    if (!task) return;
    this.#tasks.delete(id);
    const pending = this.#unlist(task);
    if (pending.waiting === 0) this.emptied.push(task.classKey);
  }

  /** A place is in prospect: it stands in no order until that is settled or renounced. */
  nominate(id: TaskId): void {
    this.#nominated.add(id);
    const task = this.#tasks.get(id);
    if (task) this.get(task.classKey).queue.takeOut(task);
  }

  settle(id: TaskId): void {
    this.#nominated.delete(id);
  }

  renounce(id: TaskId): void {
    if (!this.#nominated.delete(id)) return;
    const task = this.#tasks.get(id);
    if (!task) return;
    const pending = this.get(task.classKey);
    pending.queue.putBack(task);
    this.#listed(pending, true);
  }

  /** From now on what fits for one tenant may not for another. */
  tellTenantsApart(): void {
    if (this.#byTenant) return;
    this.#byTenant = true;
    for (const pending of this.#byKey.values()) {
      this.shapes.drop(pending);
      pending.shape = this.shapes.of(pending.request, true);
      pending.shape.classes.add(pending);
      if (pending.waiting > 0) this.open.add(pending);
    }
  }

  /** A claim of it has gone. */
  mayBeIdle(pending: PendingClass): void {
    this.#idle.add(pending);
  }

  /** Called when a batch of changes is complete: one that was left may have been joined since. */
  dropIdle(): void {
    for (const pending of this.#idle) {
      if (pending.waiting > 0) continue;
      pending.told = '';
      this.open.delete(pending);
      this.sleeping.delete(pending);
      pending.owner.tenant.waiting.delete(pending);
      pending.owner.user.waiting.delete(pending);
      if (pending.claims > 0 || !this.#byKey.delete(pending.request.key)) continue;
      this.shapes.drop(pending);
    }
    this.#idle.clear();
  }

  /** Another single task of a class that does not fit changes nothing; a gang may be complete. */
  #listed(pending: PendingClass, again: boolean): void {
    if (pending.queue.sleeping) this.sleeping.add(pending);
    if (again || pending.told === '' || pending.request.gangSize > 1) this.open.add(pending);
  }

  #unlist(task: PendingTask): PendingClass {
    const pending = this.get(task.classKey);
    pending.queue.remove(task);
    pending.waiting--;
    const more = this.#more.get(task.job);
    if (more === undefined) this.#jobs.delete(task.job);
    else if (more > 1) this.#more.set(task.job, more - 1);
    else this.#more.delete(task.job);
    if (!pending.queue.sleeping) this.sleeping.delete(pending);
    if (pending.waiting === 0) this.#idle.add(pending);
    return pending;
  }
}
