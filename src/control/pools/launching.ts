/** Launches what is intended: the intent is on disk before its provider hears of it. */
import { failed, launched } from '../../core/capacity/backoff.ts';
import type { Launch } from '../../core/capacity/capacity.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Log } from '../../lib/log.ts';
import type { InstanceId } from '../../model/ids.ts';
import type { AgentLaunch, LaunchBatch, LaunchResult } from '../../providers/contract.ts';
import { isAvoided } from '../../core/reputation.ts';
import type { State } from '../../state/state.ts';
import type { Committer } from '../committer.ts';
import type { Mutate } from '../mutate.ts';
import { withinTime } from './calls.ts';
import type { JoinSecrets } from './joinSecrets.ts';
import type { ManagedPool, PoolStatus } from './pool.ts';
import { wantedCount } from './wanted.ts';

export interface Launching {
  joinSecrets: JoinSecrets;
  /** How agents find their way home; null: it is not known yet. */
  agent: () => Pick<AgentLaunch, 'url' | 'authorities'> | null;
}

interface LauncherOptions {
  pool: ManagedPool;
  status: PoolStatus;
  state: State;
  mutate: Mutate;
  committer: Committer;
  clock: Clock;
  log: Log;
  launching: Launching;
}

export function createLauncher(options: LauncherOptions): () => Promise<void> {
  const { pool, status, state, mutate, committer, clock, log } = options;
  const { provider, settings, name } = pool;

  return async () => {
    if (!options.launching.agent()) return;
    for (const [batch, { launch, ids }] of [...status.wanted]) {
      const all = ids.every((id) => isIntended(state, id));
      // Some of them are not wanted any more: rather none, and the others are planned anew.
      // One that has found a machine that was there already keeps it.
      const open = ids.filter((id) => !hasMachine(state, id));
      if (!all) abandon(batch, open, 'it was not wanted any more before it was launched');
      else await launchOne(batch, launch, ids);
    }
  };

  async function launchOne(batch: string, launch: Launch, ids: InstanceId[]): Promise<void> {
    const request = batchOf(batch, launch, ids);
    for (const id of ids) status.launching.add(id);
    await committer.durable();
    status.follow(clock);
    status.backoff = launched(status.backoff, clock.now());
    const result = await withinTime(clock, () => provider.launch(request), lost);
    status.follow(clock);
    status.wanted.delete(batch);
    for (const id of ids) status.launching.delete(id);
    hear(batch, ids, result);
    await committer.durable();
  }

  function hear(batch: string, ids: InstanceId[], result: LaunchResult): void {
    const at = { pool: name, batch, instances: ids.length };
    if (result.kind === 'launched') {
      log.info({ ...at, handles: result.handles }, 'launched');
      const news = ids.map((instance, n) => {
        const handle = result.handles[n] ?? '';
        const known = handle === '' ? {} : { handle };
        return { instance, move: 'request' as const, script: result.script, ...known };
      });
      mutate({ kind: 'observe-instances', instances: news });
      return;
    }
    const { reason } = result;
    log.warn({ ...at, result: result.kind, reason }, 'not launched, as far as is known');
    const refused = result.kind === 'refused' ? result : null;
    const failure = {
      nowMs: clock.now(),
      error: reason,
      configuration: refused?.refusal === 'configuration',
      retryAfterMs: refused?.retryAfterMs ?? 0,
    };
    status.backoff = failed(status.backoff, failure, settings);
    if (refused) abandon(batch, ids, reason);
    else {
      // It may be there: only a look tells.
      const news = ids.map((instance) => ({ instance, move: 'request' as const, reason }));
      mutate({ kind: 'observe-instances', instances: news });
    }
  }

  /** One that has found a machine without a launch keeps it; one that must go is seen to. */
  function abandon(batch: string, ids: InstanceId[], reason: string): void {
    status.wanted.delete(batch);
    for (const instance of ids) {
      if (!isIntended(state, instance)) continue;
      mutate({ kind: 'end-instance', instance, failure: null, reason });
    }
  }

  function batchOf(id: string, launch: Launch, ids: InstanceId[]): LaunchBatch {
    const { joinSecrets, agent } = options.launching;
    const home = agent() ?? { url: '', authorities: '' };
    const { labels } = provider.capabilities;
    const nowMs = clock.now();
    const { resources, workers, timeLimitMs, noticeMs, runAs } = launch;
    return {
      ...{ id, resources, workers, timeLimitMs, noticeMs, runAs, name: launch.name },
      intents: ids.map((label) => ({
        label,
        joinToken: labels ? joinSecrets.ofInstance(label) : joinSecrets.ofPool(name),
      })),
      avoid: [...state.machines.hosts.values()]
        .filter((host) => host.pool === name && isAvoided(host, nowMs))
        .map((host) => host.name),
      target: wantedCount(state, name),
      agent: { ...home, selfDestructAfterMs: settings.selfDestructAfterMs },
    };
  }
}

function isIntended(state: State, id: InstanceId): boolean {
  return state.machines.instances.get(id)?.instance.state === 'INTENDED';
}

/** A look has matched it with a machine: what nobody asked for has no such time. */
function hasMachine(state: State, id: InstanceId): boolean {
  return state.machines.instances.get(id)?.instance.requestedAtMs != null;
}

function lost(reason: string): LaunchResult {
  return { kind: 'unknown', reason };
}
