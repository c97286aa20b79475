/** The cache of jobs beside a coordinator elsewhere, where it is wanted and can be had. */
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { cachedCoordinator } from '../gateway/cache/cachedCoordinator.ts';
import { JobCache } from '../gateway/cache/jobCache.ts';
import { systemClock as clock } from '../lib/clock.ts';
import type { Log } from '../lib/log.ts';
import type { Settings } from '../model/settings.ts';
import type { Coordinator } from '../protocol/coordinator.ts';

export function withJobCache<Remote extends Coordinator>(
  remote: Remote,
  { gateway: { cache: isWanted, cacheFile: file, cacheAfterMs: afterMs } }: Settings,
  log: Log,
): { coordinator: Remote; close(): void } {
  const without = { coordinator: remote, close: () => {} };
  if (!isWanted) return without;
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    const cache = new JobCache({ file, clock, log });
    const coordinator = cachedCoordinator(remote, { cache, clock, afterMs });
    return { coordinator, close: () => cache.close() };
  } catch (error) {
    // A gateway does its work without one, too.
    const why = { file, error: String(error) };
    log.warn(why, 'no cache of jobs: gateway.cacheFile cannot be opened');
    return without;
  }
}
