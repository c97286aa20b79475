/** The site's policy on what is submitted, before anything else is asked about it. */
import type { PoolPolicy } from '../core/placement/admission.ts';
import type { JobSpec } from '../model/job.ts';
import { applyPolicy } from '../model/policy/refusal.ts';
import type { Principal } from '../model/token.ts';
import type { PolicySource } from '../protocol/policy.ts';
import type { State } from '../state/state.ts';

export interface UnderPolicy {
  policy: PolicySource;
  pools: readonly PoolPolicy[];
  state: State;
}

/** As they are accepted; throws POLICY with every rule that refuses one. */
export function underPolicy(
  { policy: source, pools, state }: UnderPolicy,
  who: Principal,
  specs: JobSpec[],
): JobSpec[] {
  const policy = source.current();
  if (!policy) return specs;
  const names = new Set([...pools.map(({ name }) => name), ...state.pools]);
  return applyPolicy(policy, who, specs, names);
}
