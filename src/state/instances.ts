/** Instances: wanted, observed, drained, destroyed until they are gone. */
import { isWanted } from '../core/lifecycle/instance.ts';
import type { InstanceId, TaskId, WorkerId } from '../model/ids.ts';
import type { Instance } from '../model/instance.ts';
import { faultHost } from './hosts.ts';
import { DONE, missing, stale, type Result } from './mutations.ts';
import type {
  DestroyInstance,
  DrainInstance,
  EndInstance,
  InstanceNews,
  Intend,
  LinkWorker,
  NewsField,
  ObserveInstances,
} from './instanceMutations.ts';
import { joinInstance } from './instanceJoins.ts';
import { move, noteInstance, touchInstance } from './instanceMoves.ts';
import type { LiveInstance } from './live.ts';
import { spend } from './poolSpending.ts';
import type { State } from './state.ts';
import { loseWorker } from './workers.ts';

/** Of one pool, those that have not ended. */
export function instancesOf(state: State, pool: string): LiveInstance[] {
  return [...state.machines.instances.values()].filter(({ instance }) => instance.pool === pool);
}

export function intend(state: State, mutation: Intend, nowMs: number): Result {
  const { pool, count, tasks } = mutation;
  const there = instancesOf(state, pool).length;
  if (there + count > mutation.max) return stale(`pool ${pool} has ${there} instances`);
  for (const id of tasks.flat()) {
    if (state.task(id)?.task.state !== 'PENDING') return stale(`task ${id} does not wait`);
    if (instanceFor(state, id)) return stale(`an instance comes for task ${id} already`);
  }
  const batch = state.mint('i');
  const ids: InstanceId[] = [];
  for (let n = 0; n < count; n++) {
    const id = (count === 1 ? batch : `${batch}.${n}`) as InstanceId;
    ids.push(id);
    const live = addInstance(state, intended(id, mutation, tasks[n] ?? [], nowMs));
    noteInstance(state, 'instance.intended', live.instance, nowMs, mutation.reason);
  }
  return { kind: 'intended', ids };
}

function intended(id: InstanceId, mutation: Intend, tasks: TaskId[], nowMs: number): Instance {
  const { pool, workers, resources, runAs, priceHourMicros, timeLimitMs, reason } = mutation;
  return {
    ...{ id, pool, workers, resources, tasks, runAs, priceHourMicros, timeLimitMs, reason },
    state: 'INTENDED',
    failure: null,
    handle: '',
    host: '',
    spentMicros: 0,
    paidUntilMs: null,
    startsAtMs: null,
    endsAtMs: null,
    restarts: 0,
    script: '',
    createdAtMs: nowMs,
    requestedAtMs: null,
    runningAtMs: null,
    joinedAtMs: null,
    destroyAtMs: null,
    endedAtMs: null,
    version: 1,
  };
}

function addInstance(state: State, instance: Instance): LiveInstance {
  const live = state.machines.adopt(instance);
  state.changes.instances.set(instance, 'insert');
  return live;
}

/** The one that comes for a task; one that has joined has had its chance. */
function instanceFor(state: State, task: TaskId): LiveInstance | undefined {
  for (const live of state.machines.instances.values()) {
    const { state: at, tasks } = live.instance;
    if (isWanted(at) && at !== 'JOINED' && tasks.includes(task)) return live;
  }
  return undefined;
}

export function observeInstances(
  state: State,
  { instances }: ObserveInstances,
  nowMs: number,
): Result {
  for (const news of instances) {
    const live = state.machines.instances.get(news.instance);
    if (live) hear(state, live, news, nowMs);
  }
  return DONE;
}

const NEWS_FIELDS: readonly NewsField[] = [
  'reason',
  'handle',
  'host',
  'script',
  'startsAtMs',
  'endsAtMs',
  'restarts',
  'priceHourMicros',
];

function hear(state: State, live: LiveInstance, news: InstanceNews, nowMs: number): void {
  const { instance } = live;
  let changed = false;
  for (const field of NEWS_FIELDS) {
    const value = news[field];
    if (value === undefined || instance[field] === value) continue;
    Object.assign(instance, { [field]: value });
    changed = true;
  }
  if (news.paid) {
    instance.spentMicros += news.paid.micros;
    instance.paidUntilMs = news.paid.untilMs;
    spend(state, instance, news.paid.micros, nowMs);
    changed = true;
  }
  if (news.move && mayMove(instance, news.move)) {
    if (news.move === 'restart') restart(state, live, nowMs);
    move(state, instance, news.move, nowMs);
  } else if (changed) touchInstance(state, instance);
  if (news.endsAtMs !== undefined) tellEnd(state, live);
}

/** Looks repeat themselves, and what is being given back stays so whatever they say. */
function mayMove({ state }: Instance, name: NonNullable<InstanceNews['move']>): boolean {
  const from: Record<typeof name, readonly Instance['state'][]> = {
    request: ['INTENDED'],
    boot: ['INTENDED', 'REQUESTED'],
    probe: ['INTENDED', 'REQUESTED', 'BOOTING'],
    restart: ['BOOTING', 'PROBING', 'JOINED'],
  };
  return from[name].includes(state);
}

/** Its provider has started it anew: what ran there runs no more, and it joins again. */
function restart(state: State, live: LiveInstance, nowMs: number): void {
  loseWorkers(state, live, 'its machine was started anew by the provider', nowMs);
  // As if it had been asked for now: it has as long to come as any.
  live.instance.requestedAtMs = nowMs;
  live.instance.runningAtMs = null;
  live.instance.joinedAtMs = null;
}

/** Work is placed by when its worker ends. */
function tellEnd(state: State, { instance, workers }: LiveInstance): void {
  for (const id of workers) {
    const worker = state.workers.get(id)?.worker;
    if (!worker || worker.endsAtMs === instance.endsAtMs) continue;
    worker.endsAtMs = instance.endsAtMs;
    state.touchWorker(worker);
  }
}

export function linkWorker(state: State, mutation: LinkWorker, nowMs: number): Result {
  const live = state.machines.instances.get(mutation.instance);
  const worker = state.workers.get(mutation.worker)?.worker;
  if (!live || !worker) return missing(`instance ${mutation.instance}`);
  if (worker.instance !== null) return stale('it has an instance');
  joinInstance(state, live, worker, [], nowMs);
  state.touchWorker(worker);
  return DONE;
}

export function drainInstance(state: State, mutation: DrainInstance, nowMs: number): Result {
  const live = state.machines.instances.get(mutation.instance);
  if (!live) return missing(`instance ${mutation.instance}`);
  const { instance } = live;
  if (instance.state !== 'JOINED') return stale(`it is ${instance.state}`);
  instance.reason = mutation.reason;
  closeWorkers(state, live);
  move(state, instance, 'drain', nowMs);
  return DONE;
}

export function destroyInstance(state: State, mutation: DestroyInstance, nowMs: number): Result {
  const live = state.machines.instances.get(mutation.instance);
  if (!live) return missing(`instance ${mutation.instance}`);
  const { instance } = live;
  if (instance.state === 'DESTROYING') return DONE;
  instance.reason = mutation.reason;
  instance.failure = mutation.failure;
  instance.destroyAtMs = nowMs;
  if (mutation.failure) blame(state, instance, mutation.reason, nowMs);
  closeWorkers(state, live);
  move(state, instance, 'destroy', nowMs);
  if (mutation.by !== '') {
    const data = { by: mutation.by, instance: instance.id, pool: instance.pool };
    state.note(nowMs, { kind: 'instance.cancelled', tenant: mutation.tenant, data });
  }
  return DONE;
}

export function endInstance(state: State, mutation: EndInstance, nowMs: number): Result {
  const live = state.machines.instances.get(mutation.instance);
  if (!live) return missing(`instance ${mutation.instance}`);
  const { instance } = live;
  // Why it was to go says more than that it has gone.
  if (instance.state !== 'DESTROYING') {
    instance.reason = mutation.reason;
    instance.failure = mutation.failure;
    if (mutation.failure) blame(state, instance, mutation.reason, nowMs);
  }
  loseWorkers(state, live, mutation.reason, nowMs);
  instance.endedAtMs = nowMs;
  move(state, instance, 'gone', nowMs);
  state.machines.instances.delete(instance.id);
  return DONE;
}

function blame(state: State, instance: Instance, reason: string, nowMs: number): void {
  if (instance.failure === 'WORKLOAD_FATAL' || instance.failure === null) return;
  if (instance.host === '') return;
  const fault = instance.failure === 'STALLED' ? 'stalled' : 'infra-fatal';
  faultHost(state, { pool: instance.pool, name: instance.host }, fault, reason, nowMs);
}

function closeWorkers(state: State, { workers }: LiveInstance): void {
  for (const id of workers) {
    const worker = state.workers.get(id)?.worker;
    if (!worker || worker.draining) continue;
    worker.draining = true;
    state.touchWorker(worker);
  }
}

function loseWorkers(state: State, live: LiveInstance, reason: string, nowMs: number): void {
  for (const id of [...live.workers] as WorkerId[]) {
    const worker = state.workers.get(id);
    if (worker) loseWorker(state, worker, reason, nowMs);
  }
  live.workers.clear();
}
