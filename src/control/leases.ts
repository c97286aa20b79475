/**
 * The lease loop: workers without contact become SUSPECT, then their attempts are lost, then they
 * are. Counted on the boot clock from the last sync that arrived; a new controller starts all
 * leases anew.
 */
import type { Clock } from '../lib/clock.ts';
import type { Attempt } from '../model/attempt.ts';
import type { WorkerId } from '../model/ids.ts';
import type { LiveWorker } from '../state/live.ts';
import type { State } from '../state/state.ts';
import type { Mutate } from './mutate.ts';

export interface LeaseSettings {
  workerLeaseMs: number;
  attemptLeaseMs: number;
  killMarginMs: number;
}

export interface LeaseOptions {
  state: State;
  mutate: Mutate;
  clock: Clock;
  settings: LeaseSettings;
  /** Boot time of the last contact with a worker. */
  lastContact: (worker: WorkerId) => number;
  /** Called when a worker is lost for good. */
  lost: (worker: WorkerId) => void;
}

export function createLeaseStep(options: LeaseOptions): () => Promise<void> {
  const { state, mutate, clock, settings, lastContact } = options;
  return async () => {
    const nowBootMs = clock.bootMs();
    for (const live of [...state.workers.values()]) {
      const silentMs = nowBootMs - lastContact(live.worker.id);
      if (silentMs <= settings.workerLeaseMs) continue;
      if (live.worker.state === 'ONLINE') {
        const reason = `no contact for ${seconds(silentMs)} s`;
        mutate({ kind: 'move-worker', worker: live.worker.id, move: 'suspect', reason });
      }
      expire(live, silentMs);
    }
  };

  function expire(live: LiveWorker, silentMs: number): void {
    let longest = settings.attemptLeaseMs;
    const expired: Attempt[] = [];
    for (const attempt of live.attempts.values()) {
      const lease = leaseOf(state, attempt, settings);
      if (silentMs > lease) expired.push(attempt);
      longest = Math.max(longest, lease);
    }
    const reason = `its worker ${live.worker.name} has been silent for ${seconds(silentMs)} s`;
    if (silentMs > longest) {
      mutate({ kind: 'move-worker', worker: live.worker.id, move: 'lose', reason });
      options.lost(live.worker.id);
    } else if (expired.length > 0) {
      mutate({ kind: 'lose', attempts: expired.map((attempt) => attempt.uid), reason });
    }
  }
}

/**
 * The job's own lease or the cluster's, but never too short for the job's grace: an agent begins
 * to stop an attempt one grace and the margin before its lease ends, so with less it would have to
 * stop what it has just started, and starts nothing.
 */
export function leaseOf(state: State, attempt: Attempt, settings: LeaseSettings): number {
  const spec = state.jobs.get(attempt.job)?.job.spec;
  const leastMs = (spec?.graceMs ?? 0) + settings.killMarginMs + settings.workerLeaseMs;
  return Math.max(spec?.attemptLeaseMs || settings.attemptLeaseMs, leastMs);
}

function seconds(ms: number): number {
  return Math.round(ms / 1000);
}
