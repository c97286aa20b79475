/** Which workers hold which inputs of jobs already: there is less to fetch to them. */
import type { WorkerId } from '../../model/ids.ts';
import type { Member } from './member.ts';
import type { Score } from './score.ts';
import type { Shape } from './shape.ts';
import type { WorkerState } from './states.ts';

export interface HeldInput {
  hash: string;
  bytes: number;
}

interface Holder {
  worker: WorkerId;
  bytes: number;
}

/** Sets of inputs whose holders are remembered between two changes. */
const RANKINGS_KEPT = 256;
/** Workers looked at for one task: a preference must not cost what it saves. */
const HOLDERS_LOOKED_AT = 256;
/** And of those that it fits on, and that hold as much, so many are compared by their score. */
const HOLDERS_SCORED = 16;
const NOBODY: readonly Holder[] = [];

export class Held {
  readonly #byWorker = new Map<WorkerId, readonly HeldInput[]>();
  readonly #byHash = new Map<string, Map<WorkerId, number>>();
  /** Made when they are asked for; forgotten with each change. */
  readonly #rankings = new Map<string, Holder[]>();

  /** Instead of what it held before. */
  set(worker: WorkerId, inputs: readonly HeldInput[]): void {
    this.remove(worker);
    this.#rankings.clear();
    this.#byWorker.set(worker, inputs);
    for (const { hash, bytes } of inputs) {
      const holders = this.#byHash.get(hash);
      if (holders) holders.set(worker, bytes);
      else this.#byHash.set(hash, new Map([[worker, bytes]]));
    }
  }

  remove(worker: WorkerId): void {
    const before = this.#byWorker.get(worker);
    if (!before) return;
    this.#rankings.clear();
    this.#byWorker.delete(worker);
    for (const { hash } of before) {
      const holders = this.#byHash.get(hash);
      if (holders?.delete(worker) && holders.size === 0) this.#byHash.delete(hash);
    }
  }

  /**
   * Who holds most of these inputs, of those that are as much preferred and cost as much as the
   * best; of equals the one with the better score. Undefined: nobody that it fits on holds any.
   * `locality`: only there, for a member of a gang.
   */
  best(
    inputs: readonly string[],
    best: WorkerState,
    shape: Shape,
    score: Score,
    members: ReadonlyMap<WorkerId, Member>,
    locality?: string,
  ): Member | undefined {
    const holders = this.#holders(inputs);
    const most = holders[0]?.bytes ?? 0;
    // Where nearly everybody holds it, the best place is one that does.
    const usual = best.members.at(-1);
    if (usual && most > 0 && this.bytesOn(usual.info.id, inputs) === most) return usual;
    const { preference, priceMicros } = shape.standing(best.kind);
    let scored = 0;
    let found: { member: Member; bytes: number; value: number } | undefined;
    let looks = 0;
    for (const { worker, bytes } of holders) {
      if ((found && bytes < found.bytes) || ++looks > HOLDERS_LOOKED_AT) break;
      const member = members.get(worker);
      const state = member?.state;
      if (!member || !state || !shape.mayFit(state) || shape.rejection(state)) continue;
      const standing = shape.standing(state.kind);
      if (standing.preference !== preference || standing.priceMicros !== priceMicros) continue;
      if (locality !== undefined && standing.locality !== locality) continue;
      const value = shape.score(state, score);
      if (!found || value < found.value) found = { member, bytes, value };
      if (++scored === HOLDERS_SCORED) break;
    }
    return found?.member;
  }

  /** By locality, what the best of its workers hold of these, one for each of so many members. */
  byLocality(
    inputs: readonly string[],
    size: number,
    shape: Shape,
    members: ReadonlyMap<WorkerId, Member>,
  ): Map<string, number> {
    const found = new Map<string, { workers: number; bytes: number }>();
    for (const { worker, bytes } of this.#holders(inputs).slice(0, HOLDERS_LOOKED_AT)) {
      const state = members.get(worker)?.state;
      if (!state || !shape.mayFit(state) || shape.rejection(state)) continue;
      const { locality } = shape.standing(state.kind);
      if (locality === null) continue;
      const sum = found.get(locality) ?? { workers: 0, bytes: 0 };
      if (sum.workers++ < size) sum.bytes += bytes;
      found.set(locality, sum);
    }
    return new Map([...found].map(([locality, { bytes }]) => [locality, bytes]));
  }

  /** What this one holds of these. */
  bytesOn(worker: WorkerId, inputs: readonly string[]): number {
    let sum = 0;
    for (const hash of new Set(inputs)) sum += this.#byHash.get(hash)?.get(worker) ?? 0;
    return sum;
  }

  /** Who holds most first. */
  #holders(inputs: readonly string[]): readonly Holder[] {
    if (!inputs.some((hash) => this.#byHash.has(hash))) return NOBODY;
    const key = inputs.join(' ');
    let ranking = this.#rankings.get(key);
    if (!ranking) {
      if (this.#rankings.size >= RANKINGS_KEPT) this.#rankings.clear();
      this.#rankings.set(key, (ranking = this.#rank(inputs)));
    }
    return ranking;
  }

  #rank(inputs: readonly string[]): Holder[] {
    const sums = new Map<WorkerId, Holder>();
    for (const hash of new Set(inputs)) {
      for (const [worker, bytes] of this.#byHash.get(hash) ?? []) {
        const holder = sums.get(worker);
        if (holder) holder.bytes += bytes;
        else sums.set(worker, { worker, bytes });
      }
    }
    return [...sums.values()].toSorted((a, b) => b.bytes - a.bytes);
  }
}
