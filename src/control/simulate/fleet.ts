/** The fleet of a simulation: pools, the workers they bring, and who may use how much. */
import type { PoolPolicy } from '../../core/placement/admission.ts';
import type { Budget } from '../../model/budget.ts';
import { OPEN_TERMS } from '../../model/placement.ts';
import type { WorkerResources } from '../../model/resources.ts';
import type { Join } from '../../state/mutations.ts';

/** Workers that are alike. They share their resources: a fleet may have 100,000. */
export interface WorkerGroup {
  count: number;
  resources: WorkerResources;
  network: string;
  attributes: Record<string, string>;
}

export interface FleetPool {
  policy: PoolPolicy;
  groups: WorkerGroup[];
  /** Mean time after which a worker is lost; 0: never. */
  failEveryMs: number;
  /** How long a lost worker stays away. */
  backAfterMs: number;
}

export interface Fleet {
  pools: FleetPool[];
  budgets: Budget[];
}

/**
 * What submissions are checked against: a pool once for each kind of worker it has, so that a job
 * is refused only when none of them could ever run it.
 */
export function admissionPolicies(fleet: Fleet): PoolPolicy[] {
  return fleet.pools.flatMap(({ policy, groups }) =>
    groups.map((group) => ({ ...policy, largestWorker: group.resources })),
  );
}

export function* joins(pool: FleetPool): Generator<Join> {
  let number = 0;
  for (const { count, resources, network, attributes } of pool.groups) {
    for (let i = 0; i < count; i++) {
      const name = `${pool.policy.name}-${number++}`;
      yield {
        kind: 'join',
        worker: {
          name,
          pool: pool.policy.name,
          machine: name,
          bootId: '',
          address: name,
          network,
          resources,
          attributes,
          terms: OPEN_TERMS,
          agentVersion: 'simulated',
          host: name,
          tokenHash: name,
          joinToken: '',
        },
        maxLiveWorkers: 0,
      };
    }
  }
}
