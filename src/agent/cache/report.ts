/** What the controller is told of a cache: the largest it holds, whenever that has changed. */
import type { Log } from '../../lib/log.ts';
import { AGENT_LIMITS, type HeldInput } from '../../protocol/agent.ts';
import type { ContentCache } from './contentCache.ts';

interface News {
  held: HeldInput[];
  /** The controller of this epoch has heard it. */
  told(epoch: number): void;
}

export interface CacheReport {
  /** Undefined: what this worker's controller of this epoch was told is still true. */
  news(worker: string, epoch: number): News | undefined;
}

export function createCacheReport(cache: ContentCache, log: Log): CacheReport {
  /** A controller that knows nothing of this worker takes it for one that holds nothing. */
  let last = { worker: '', epoch: 0, version: 0 };
  cache.look().catch((error: unknown) => {
    log.warn({ err: error }, 'the cache cannot be read: nothing is told of what it holds');
  });
  return {
    news(worker, epoch) {
      const { version } = cache;
      const isKnown = worker === last.worker && epoch === last.epoch && version === last.version;
      if (isKnown || version === 0) return undefined;
      const held = cache.held(AGENT_LIMITS.held);
      return { held, told: (by) => (last = { worker, epoch: by, version }) };
    },
  };
}
