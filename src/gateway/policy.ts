/**
 * A site's policy before somebody else's coordinator. Ours applies its own; one that speaks the
 * proto and knows no policy gets jobs as they are allowed, or not at all.
 */
import { DroverError } from '../lib/errors.ts';
import type { JobSpec } from '../model/job.ts';
import { applyPolicy, refuseChange } from '../model/policy/refusal.ts';
import type { Principal } from '../model/token.ts';
import type { Coordinator } from '../protocol/coordinator.ts';
import type { PolicySource } from '../protocol/policy.ts';

/** So many accepted keys are remembered; the oldest go first. */
const KNOWN_KEYS = 100_000;

export function underPolicy(coordinator: Coordinator, policy: PolicySource): Coordinator {
  const known = new Set<string>();
  const allowedOf = (who: Principal, specs: JobSpec[]): JobSpec[] => {
    const now = policy.current();
    return now ? applyPolicy(now, who, specs, null) : specs;
  };
  return {
    ...coordinator,
    async submit(who, request) {
      const { idempotencyKey: key, specs } = request;
      const name = key === null ? null : JSON.stringify([who.tenant, key]);
      // What was accepted once is answered the same, whatever the policy says now.
      if (name !== null && known.has(name)) return coordinator.submit(who, request);
      const allowed = allowedOf(who, specs);
      const reply = await coordinator.submit(who, { ...request, specs: allowed });
      if (name !== null) remember(known, name);
      return reply;
    },
    async plan(who, spec) {
      const [allowed = spec] = allowedOf(who, [spec]);
      return coordinator.plan(who, allowed);
    },
    async setPriority(who, id, priority) {
      const { spec } = await coordinator.getJob(who, id);
      if (spec) refuseChange(policy.current(), who, spec, { ...spec, priority });
      return coordinator.setPriority(who, id, priority);
    },
    removeUser: (who, user, jobs) =>
      coordinator.removeUser(who, user, jobs ?? policy.current()?.leaving.jobs),
    async policy({ scopes }) {
      if (scopes.includes('fleet:manage')) return policy.view();
      throw new DroverError('PERMISSION_DENIED', 'the token lacks the scope fleet:manage');
    },
  };
}

function remember(known: Set<string>, name: string): void {
  for (const oldest of known) {
    if (known.size < KNOWN_KEYS) break;
    known.delete(oldest);
  }
  known.add(name);
}
