/** The machines that are expected, in the order in which they were asked for, and who gets them. */
import type { InstanceId } from '../../model/ids.ts';
import type { Ask, Asks } from './asks.ts';
import { Bin, takeBack, type Put } from './bins.ts';
import type { CapacityInstance, CapacityPool } from './capacity.ts';
import type { Served } from './served.ts';

export class Expected {
  readonly #pools: readonly CapacityPool[];
  readonly #asks: Asks;
  readonly #bins: Bin[] = [];

  constructor(pools: readonly CapacityPool[], asks: Asks) {
    this.#pools = pools;
    this.#asks = asks;
  }

  /** Also machines that are there and idle, as gangs may want them beside others. */
  addInstance(place: number, instance: CapacityInstance): void {
    const { id, state, runAs, endsAtMs, idleSinceMs } = instance;
    if (state === 'leaving' || (state === 'joined' && idleSinceMs === null)) return;
    const idle = state === 'joined' ? idleSinceMs : null;
    const from = { instance: id, runAs, endsAtMs, idleSinceMs: idle };
    for (let rank = 0; rank < instance.workers; rank++) {
      this.#bins.push(new Bin(place, instance.resources, from));
    }
  }

  add(bin: Bin): void {
    this.#bins.push(bin);
  }

  wanted(): Set<InstanceId> {
    const wanted = new Set<InstanceId>();
    for (const bin of this.#bins) if (bin.isWanted && bin.instance) wanted.add(bin.instance);
    return wanted;
  }

  /** Where one more task, or all members of one more gang, go; null: there is no room. */
  cover(ask: Ask, served: Served): Put[] | null {
    return ask.request.gangSize > 1 ? this.#coverGang(ask, served) : this.#coverTask(ask, served);
  }

  /** As many members of a gang as find room in the pool, where others are to be launched. */
  part(ask: Ask, served: Served, place: number): Put[] {
    const puts = this.#fillIn(ask, served, place, false);
    if (puts.length < ask.request.gangSize) return puts;
    // It would have been covered, were not all of these idle for too long to be for it.
    takeBack(ask, puts);
    return this.#fillIn(ask, served, place, true);
  }

  #coverTask(ask: Ask, served: Served): Put[] | null {
    const bins = this.#bins;
    let inTurn = true;
    for (let at = ask.firstBin; at < bins.length; at++) {
      const bin = bins[at] as Bin;
      const accepted = this.#asks.accepts(ask, bin);
      if (accepted && !this.#allows(served, bin, true)) {
        // It may still be for others that ask for the same.
        inTurn = false;
        continue;
      }
      const claim = accepted ? bin.put(ask) : null;
      if (claim) return [{ bin, claim }];
      if (inTurn) ask.firstBin = at + 1;
    }
    return null;
  }

  /** The first pool, in the order of its machines, that has room for all members. */
  #coverGang(ask: Ask, served: Served): Put[] | null {
    if (ask.gangMissedAt === this.#bins.length) return null;
    const { gangSize } = ask.request;
    const perPool: Put[][] = this.#pools.map(() => []);
    let whole: Put[] | null = null;
    let forAll = true;
    for (const bin of this.#bins) {
      if (!this.#asks.accepts(ask, bin)) continue;
      if (!this.#allows(served, bin, false)) {
        forAll = false;
        continue;
      }
      const puts = perPool[bin.pool] as Put[];
      fill(ask, bin, puts, gangSize);
      if (puts.length < gangSize) continue;
      if (puts.some((put) => served.trusts(put.bin, this.#poolOf(put.bin)))) {
        whole = puts;
        break;
      }
      // All idle, and for long: the gang has another reason to wait.
      forAll = false;
      takeBack(ask, puts.splice(0));
    }
    for (const puts of perPool) if (puts !== whole) takeBack(ask, puts);
    if (!whole && forAll) ask.gangMissedAt = this.#bins.length;
    return whole;
  }

  #fillIn(ask: Ask, served: Served, place: number, onlyTrusted: boolean): Put[] {
    const puts: Put[] = [];
    for (const bin of this.#bins) {
      if (bin.pool !== place || !this.#asks.accepts(ask, bin)) continue;
      if (this.#allows(served, bin, onlyTrusted)) fill(ask, bin, puts, ask.request.gangSize);
    }
    return puts;
  }

  /** Whether the demand may use the machine: limits of its tenant, patience with what idles. */
  #allows(served: Served, bin: Bin, onlyTrusted: boolean): boolean {
    const pool = this.#poolOf(bin);
    if (!served.mayAfford(pool.name)) return false;
    return !onlyTrusted || served.trusts(bin, pool);
  }

  #poolOf(bin: Bin): CapacityPool {
    return this.#pools[bin.pool] as CapacityPool;
  }
}

/** Puts members on the worker until there is no room or there are enough. */
export function fill(ask: Ask, bin: Bin, puts: Put[], enough: number): void {
  while (puts.length < enough) {
    const claim = bin.put(ask);
    if (!claim) return;
    puts.push({ bin, claim });
  }
}
