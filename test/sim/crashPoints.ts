/** Places where a process may die: at the n-th time it comes by, n drawn from the seed. */
import type { World } from './world.ts';

export class CrashPoints<Name extends string> {
  readonly #left = new Map<Name, number>();

  /**
   * Each point is armed with the given chance; where it is, one of its first `passes` is the last.
   */
  constructor(world: World, names: Partial<Record<Name, number>>, chance: number) {
    for (const [name, passes] of Object.entries(names) as [Name, number][]) {
      if (world.chance(chance)) this.#left.set(name, world.between(1, passes));
    }
  }

  /** True when the process dies here. */
  passes(name: Name): boolean {
    const left = this.#left.get(name);
    if (left === undefined) return false;
    this.#left.set(name, left - 1);
    if (left > 1) return false;
    this.#left.delete(name);
    return true;
  }

  disarm(): void {
    this.#left.clear();
  }
}
