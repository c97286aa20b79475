/**
 * One pool's loop: look at what the provider has, tell the state, launch what is intended, ask for
 * the end of what must go. Every step may be repeated, and a crash between any two of them leaves
 * something that the next look finds.
 */
import { failed, succeeded } from '../../core/capacity/backoff.ts';
import { isComing } from '../../core/lifecycle/instance.ts';
import { match } from '../../core/instances/match.ts';
import { judge, LISTING_LAG_MS } from '../../core/instances/reconcile.ts';
import type { Look, Verdict } from '../../core/instances/reconcile.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Log } from '../../lib/log.ts';
import type { Instance } from '../../model/instance.ts';
import type { Worker } from '../../model/worker.ts';
import type { Listing, Machine, MachineRef } from '../../providers/contract.ts';
import { instancesOf } from '../../state/instances.ts';
import type { LiveInstance } from '../../state/live.ts';
import type { State } from '../../state/state.ts';
import type { Committer } from '../committer.ts';
import type { Mutate } from '../mutate.ts';
import type { Sessions } from '../sessions.ts';
import { withinTime } from './calls.ts';
import { HANDLE } from './handle.ts';
import { createLauncher, type Launching } from './launching.ts';
import type { ManagedPool, PoolStatus } from './pool.ts';
import { createProbing } from './probing.ts';
import { isEmpty, stopAll, wantedCount } from './wanted.ts';

export interface PoolStepOptions {
  pool: ManagedPool;
  status: PoolStatus;
  state: State;
  mutate: Mutate;
  committer: Committer;
  sessions: Pick<Sessions, 'lastContactBootMs'>;
  clock: Clock;
  log: Log;
  launching: Launching;
  /** There may be something new to plan. */
  hint: () => void;
}

/** What is ours by name but nobody knows is given this long before it is ended. */
const REAP_AFTER_MS = 30_000;
/** Between two requests for the same end. */
const DESTROY_AGAIN_MS = 10_000;
/** So many ends are asked for with one call. */
const DESTROYED_AT_ONCE = 100;

export function createPoolStep(options: PoolStepOptions): () => Promise<void> {
  const { pool, status, state, mutate, committer, sessions, clock, log } = options;
  const { provider, settings, name } = pool;
  const launch = createLauncher(options);
  const probe = createProbing({ pool: name, provider, state, mutate, clock });
  let machines: readonly Machine[] = [];
  let lookedAtBootMs = 0;

  return async () => {
    status.follow(clock);
    await look();
    await launch();
    await probe();
    await destroy();
    status.keep(
      (id) => state.machines.instances.has(id),
      (id) => state.workers.has(id),
    );
  };

  async function look(): Promise<void> {
    if (clock.now() < status.nextLookAtMs) return;
    lookedAtBootMs = clock.bootMs();
    const listing = await withinTime(clock, () => provider.list(), unheard);
    // The wall clock may have been set meanwhile: before a time of now is put beside those of then.
    status.follow(clock);
    if (listing.kind === 'unknown') {
      if (status.listError === '') log.warn({ pool: name, reason: listing.reason }, 'no listing');
      status.listError = listing.reason;
      status.nextLookAtMs = clock.now() + Math.max(listing.retryAfterMs, settings.pollMs);
      return;
    }
    status.listError = '';
    status.listedAtMs = clock.now();
    status.notice = listing.notice ?? '';
    status.others = listing.others ?? [];
    hear(listing.machines);
    await committer.durable();
  }

  function hear(listed: readonly Machine[]): void {
    const live = instancesOf(state, name);
    const instances = live.map(({ instance }) => instance);
    const { of, unknown } = match(instances, listed, provider.capabilities.labels);
    const nowMs = clock.now();
    for (const one of live) {
      const { instance } = one;
      const verdict = judge(lookAt(one, of.get(instance.id)), rulesOf(pool), nowMs);
      account(instance, verdict, nowMs);
      apply(instance, verdict);
      linkWorkers(one);
    }
    machines = listed;
    for (const machine of unknown) ownUp(machine);
    reap(unknown, nowMs);
  }

  /** Where machines bear no label, one may have come and taken work before we knew of it. */
  function ownUp({ handle, phase }: Machine): void {
    if (provider.capabilities.labels || phase !== 'running') return;
    for (const { worker, attempts } of state.workers.values()) {
      if (worker.pool !== name || worker.instance !== null || attempts.size === 0) continue;
      if (worker.attributes[HANDLE] !== handle) continue;
      mutate({
        ...{ kind: 'intend', pool: name, max: settings.max, count: 1, workers: 1, tasks: [] },
        ...{ resources: worker.resources, runAs: '', timeLimitMs: 0 },
        priceHourMicros: Math.round(settings.pricePerInstanceHour * 1_000_000),
        reason: `worker ${worker.name} came by itself and has work`,
      });
      return;
    }
  }

  function lookAt(live: LiveInstance, sight: Machine | undefined): Look {
    const { instance, workers } = live;
    const launching = status.launching.has(instance.id) || isWanted(instance);
    const { id, requestedAtMs, runningAtMs } = instance;
    const againAtBootMs = status.againAtBootMs(id, againOf(instance, sight), clock);
    const latestMs = (againAtBootMs ?? lookedAtBootMs) - LISTING_LAG_MS;
    const there = [...workers].flatMap((worker) => state.workers.get(worker)?.worker ?? []);
    const settled = there.every(({ id: worker, tokenHash }) => {
      return status.cameAtBootMs(worker, tokenHash, clock) < latestMs;
    });
    const goneAtBootMs = status.goneAtBootMs(id, !sight || sight.phase === 'gone', clock);
    return {
      ...{ instance, sight, launching, workers: workers.size, empty: isEmpty(state, live) },
      ...lifeOf(goneAtBootMs, there),
      settled,
      silent: there.some((worker) => worker.state !== 'ONLINE'),
      againForMs: againAtBootMs === null ? 0 : clock.bootMs() - againAtBootMs,
      askedForMs: status.asked.of(id, requestedAtMs ?? instance.createdAtMs, clock),
      runningForMs: runningAtMs === null ? null : status.running.of(id, runningAtMs, clock),
    };
  }

  function lifeOf(
    goneAtBootMs: number | null,
    there: readonly Worker[],
  ): Pick<Look, 'goneForMs' | 'heardSince'> {
    if (goneAtBootMs === null) return { goneForMs: 0, heardSince: false };
    const heard = there.some(({ id }) => sessions.lastContactBootMs(id) > goneAtBootMs);
    return { goneForMs: clock.bootMs() - goneAtBootMs, heardSince: heard };
  }

  /** Its launch is still to come, and this process will see to it. */
  function isWanted({ id, state: at }: Instance): boolean {
    if (at !== 'INTENDED') return false;
    for (const { ids } of status.wanted.values()) if (ids.includes(id)) return true;
    return false;
  }

  /** What came of it says how the pool does. */
  function account(instance: Instance, verdict: Verdict, nowMs: number): void {
    if (instance.state === 'JOINED' && !status.joined.has(instance.id)) {
      status.joined.add(instance.id);
      status.backoff = succeeded(status.backoff, nowMs, settings.maxPending);
    }
    const over = verdict.kind === 'gone' || verdict.kind === 'destroy';
    if (!over || !isComing(instance.state)) return;
    const failure = { nowMs, error: verdict.reason, configuration: false, retryAfterMs: 0 };
    status.backoff = failed(status.backoff, failure, settings);
  }

  function apply({ id }: Instance, verdict: Verdict): void {
    if ('news' in verdict && verdict.news) {
      mutate({ kind: 'observe-instances', instances: [verdict.news] });
    }
    if (verdict.kind === 'gone') {
      const { failure, reason } = verdict;
      mutate({ kind: 'end-instance', instance: id, failure, reason });
      log.info({ pool: name, instance: id, failure, reason }, 'an instance is gone');
      options.hint();
    }
    if (verdict.kind === 'destroy') {
      const { failure, reason } = verdict;
      const by = { by: '', tenant: '' };
      mutate({ kind: 'destroy-instance', instance: id, failure, reason, ...by });
      if (verdict.stops) stopAll(state, mutate, id, reason);
      log.info({ pool: name, instance: id, failure, reason }, 'an instance must go');
      options.hint();
    }
  }

  /** Workers that came with the pool's token, before it was known which machine they are. */
  function linkWorkers({ instance, workers }: LiveInstance): void {
    if (provider.capabilities.labels || instance.handle === '' || workers.size > 0) return;
    for (const { worker } of state.workers.values()) {
      if (worker.instance !== null || worker.pool !== name) continue;
      if (worker.attributes[HANDLE] !== instance.handle) continue;
      mutate({ kind: 'link-worker', worker: worker.id, instance: instance.id });
    }
  }

  /** Ours by their name, but of no instance that we want: after a while they are ended. */
  function reap(unknown: readonly Machine[], nowMs: number): void {
    const seen = new Set(unknown.map(keyOf));
    for (const key of status.strangers.keys()) if (!seen.has(key)) status.strangers.delete(key);
    for (const machine of unknown) {
      // One that ends by itself may still cost, and for ever: outbid, stopped, failed.
      if (machine.phase === 'gone') continue;
      const key = keyOf(machine);
      if (!status.strangers.has(key)) {
        status.strangers.set(key, nowMs);
        log.warn({ pool: name, machine: key }, 'a machine of ours that nobody knows');
      }
    }
  }

  async function destroy(): Promise<void> {
    const nowMs = clock.now();
    const refs: MachineRef[] = [];
    for (const { instance } of instancesOf(state, name)) {
      if (instance.state !== 'DESTROYING') continue;
      refs.push({ label: instance.id, handle: instance.handle });
    }
    for (const machine of machines) {
      const since = status.strangers.get(keyOf(machine));
      if (since === undefined || nowMs - since < REAP_AFTER_MS) continue;
      refs.push({ label: machine.label, handle: machine.handle });
    }
    const due = refs.filter((ref) => {
      const asked = status.destroyAsked.get(keyOf(ref));
      return asked === undefined || nowMs - asked >= DESTROY_AGAIN_MS;
    });
    const kept = new Set(refs.map(keyOf));
    for (const key of status.destroyAsked.keys()) {
      if (!kept.has(key)) status.destroyAsked.delete(key);
    }
    if (due.length === 0) return;
    const now = due.slice(0, DESTROYED_AT_ONCE);
    const target = wantedCount(state, name);
    // A machine may be ended only when the wish for it is on disk.
    await committer.durable();
    status.follow(clock);
    for (const ref of now) status.destroyAsked.set(keyOf(ref), clock.now());
    const ask = (): ReturnType<typeof provider.destroy> =>
      provider.destroy({ machines: now, target });
    const result = await withinTime(clock, ask, (reason) => ({ kind: 'unknown', reason }) as const);
    if (result.kind === 'unknown') {
      log.warn({ pool: name, reason: result.reason, machines: now.length }, 'no end yet');
    }
  }
}

/** What a look shows of a start again; null: nothing. */
function againOf(instance: Instance, sight: Machine | undefined): string | null {
  if (!sight) return null;
  const waits = sight.phase === 'queued' || sight.phase === 'booting';
  const counted = sight.restarts > instance.restarts;
  return counted || waits ? `${sight.restarts} ${counted ? '' : sight.phase}` : null;
}

function unheard(reason: string): Listing {
  return { kind: 'unknown', reason, retryAfterMs: 0 };
}

function keyOf({ label, handle }: MachineRef): string {
  return `${label} ${handle}`;
}

function rulesOf({ provider, settings }: ManagedPool): Parameters<typeof judge>[1] {
  const { bootTimeoutMs, billingQuantumMs } = settings;
  return { bootTimeoutMs, queues: provider.capabilities.queues, quantumMs: billingQuantumMs };
}
