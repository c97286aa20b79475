/** Who holds something on one worker, as far as it matters to who may join them. */
import type { Claim } from '../../model/claim.ts';
import type { AttemptUid } from '../../model/ids.ts';
import type { PlacementRequest } from './request.ts';

export class Holdings {
  readonly claims = new Map<AttemptUid, Claim>();
  /** Of those claims only that keep others away. */
  readonly #requests = new Map<AttemptUid, PlacementRequest>();

  add(claim: Claim, request: PlacementRequest): void {
    this.claims.set(claim.owner, claim);
    const { exclusive, antiAffinity } = request.placement;
    if (exclusive || antiAffinity !== '') this.#requests.set(claim.owner, request);
  }

  remove(owner: AttemptUid): Claim | undefined {
    const claim = this.claims.get(owner);
    this.claims.delete(owner);
    this.#requests.delete(owner);
    return claim;
  }

  /** Whether those here and the newcomer may share a worker. */
  refuses(request: PlacementRequest): 'anti-affinity' | 'exclusive' | null {
    const { antiAffinity, exclusive } = request.placement;
    let alone = false;
    for (const held of this.#requests.values()) {
      if (antiAffinity !== '' && held.placement.antiAffinity === antiAffinity) {
        if (held.tenant === request.tenant) return 'anti-affinity';
      }
      alone ||= held.placement.exclusive;
    }
    return alone || (exclusive && this.claims.size > 0) ? 'exclusive' : null;
  }
}
