/** Who holds something on one worker, as far as it matters to who may join them. */
import type { Claim } from '../../model/claim.ts';
import type { AttemptUid } from '../../model/ids.ts';
import type { PlacementRequest } from './request.ts';

const NO_GROUPS: readonly string[] = Object.freeze([]);

export class Holdings {
  readonly claims = new Map<AttemptUid, Claim>();
  /** How many of them share the worker with nobody. */
  exclusive = 0;
  /** Of those claims only that keep others away. */
  #requests: Map<AttemptUid, PlacementRequest> | null = null;

  add(claim: Claim, request: PlacementRequest): void {
    this.claims.set(claim.owner, claim);
    const { exclusive, antiAffinity } = request.placement;
    if (!exclusive && antiAffinity === '') return;
    this.#requests ??= new Map<AttemptUid, PlacementRequest>();
    this.#requests.set(claim.owner, request);
    if (exclusive) this.exclusive++;
  }

  remove(owner: AttemptUid): Claim | undefined {
    const claim = this.claims.get(owner);
    this.claims.delete(owner);
    if (this.#requests?.get(owner)?.placement.exclusive) this.exclusive--;
    this.#requests?.delete(owner);
    return claim;
  }

  /** Anti-affinity groups that are here, each once, in a fixed order. */
  groups(): readonly string[] {
    if (!this.#requests || this.#requests.size === 0) return NO_GROUPS;
    const groups = new Set<string>();
    for (const request of this.#requests.values()) groups.add(antiAffinityGroup(request));
    groups.delete('');
    return [...groups].toSorted();
  }
}

/** Empty: it keeps away from nobody. */
export function antiAffinityGroup({ tenant, placement }: PlacementRequest): string {
  const { antiAffinity } = placement;
  return antiAffinity === '' ? '' : JSON.stringify([tenant, antiAffinity]);
}
