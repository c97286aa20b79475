/** What an agent tells beside its attempts, each once to every controller it meets. */
import type { SyncRequest } from '../protocol/agent.ts';
import type { CacheReport } from './cache/report.ts';

interface News {
  parts: Pick<SyncRequest, 'held' | 'health'>;
  /** The controller of this epoch has heard it. */
  told(epoch: number): void;
}

export interface Report {
  /** Undefined: what this worker's controller of this epoch was told is still true. */
  news(worker: string, epoch: number): News | undefined;
  /** Called when there is something that should not wait for the next sync. */
  onChange(changed: () => void): void;
}

export function joinReports(cache: CacheReport, health: Report): Report {
  return {
    news(worker, epoch) {
      const held = cache.news(worker, epoch);
      const problems = health.news(worker, epoch);
      if (!held && !problems) return undefined;
      return {
        parts: { ...(held && { held: held.held }), ...problems?.parts },
        told(by) {
          held?.told(by);
          problems?.told(by);
        },
      };
    },
    // What a cache holds can wait.
    onChange: (changed) => health.onChange(changed),
  };
}
