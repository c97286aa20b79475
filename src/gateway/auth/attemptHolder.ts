/** Whose blobs an agent may use: asked of the controller, and remembered a moment. */
import type { Clock } from '../../lib/clock.ts';
import type { Coordinator } from '../../protocol/coordinator.ts';
import type { MayUse } from './guard.ts';

/** As long as a user's token is remembered: an agent that lost its attempt is refused after it. */
const REMEMBERED_MS = 5000;
const MOST_REMEMBERED = 10_000;

/** Thousands of small blobs of one attempt come in a row. */
export function attemptHolder(coordinator: Coordinator, clock: Clock): MayUse {
  const known = new Map<string, { tenant: string; untilBootMs: number }>();
  return async (workerToken, uid) => {
    const key = `${workerToken}\n${uid}`;
    const found = known.get(key);
    if (found && found.untilBootMs > clock.bootMs()) return found.tenant;
    known.delete(key);
    const tenant = (await coordinator.attemptAccess(workerToken, uid))?.tenant;
    if (tenant === undefined) return undefined;
    if (known.size >= MOST_REMEMBERED) known.clear();
    known.set(key, { tenant, untilBootMs: clock.bootMs() + REMEMBERED_MS });
    return tenant;
  };
}
