/**
 * How often each replica left its machine for another one. SaladCloud does not count, and says
 * nothing: what is known is the machine that it was on when we last looked.
 */
import type { Log } from '../../lib/log.ts';
import type { SaladInstance } from './api.ts';
import { hostOf } from './machines.ts';

export interface Moves {
  see(instances: readonly SaladInstance[]): void;
  of(instance: SaladInstance): number;
}

interface Place {
  /** The last one that is known. */
  host: string;
  /** It has left that one, and this was counted. */
  away: boolean;
  count: number;
}

export function createMoves(log: Log): Moves {
  let known = new Map<string, Place>();
  return {
    see(instances) {
      const now: typeof known = new Map();
      for (const instance of instances) {
        const place = next(known.get(instance.id), hostOf(instance));
        now.set(instance.id, place);
        if (place.count === (known.get(instance.id)?.count ?? 0)) continue;
        log.info({ instance: instance.id }, 'SaladCloud moves a replica to another machine');
      }
      known = now;
    },
    of: ({ id }) => known.get(id)?.count ?? 0,
  };
}

function next(before: Place | undefined, host: string): Place {
  if (!before) return { host, away: false, count: 0 };
  const left = before.host !== '' && !before.away && host !== before.host;
  const count = before.count + (left ? 1 : 0);
  if (host === '') return { host: before.host, away: before.host !== '', count };
  return { host, away: false, count };
}
