/** A network that drops, doubles, delays and cuts. Calls cross it as copies, in both directions apart. */
import type { Process, World } from './world.ts';

export interface NetworkFaults {
  drop: number;
  duplicate: number;
  /** Chance of a delay of seconds instead of milliseconds. */
  slow: number;
}

/** What a caller's own HTTP client would do. */
const CALL_TIMEOUT_MS = 30_000;

export class Network {
  readonly #world: World;
  faults: NetworkFaults;
  /** Names of processes that nobody can reach and that reach nobody. */
  readonly cut = new Set<string>();

  constructor(world: World, faults: NetworkFaults) {
    this.#world = world;
    this.faults = faults;
  }

  call<Reply>(
    from: Process,
    what: string,
    target: () => Process | null,
    invoke: () => Promise<Reply>,
  ): Promise<Reply> {
    const world = this.#world;
    return new Promise<Reply>((resolve, reject) => {
      let settled = false;
      const settle = (act: () => void): void =>
        world.inside(from, () => {
          if (settled) return;
          settled = true;
          timeout.cancel();
          act();
        });
      const timeout = world.after(CALL_TIMEOUT_MS, `timeout ${what}`, () =>
        settle(() => reject(new Error(`${what}: no answer`))),
      );
      const answer = (act: () => void): void => {
        if (this.#lost(from)) return;
        world.after(this.#delay(), `answer ${what}`, () => settle(act));
      };
      const deliver = (): void => {
        const process = target();
        if (!process?.alive) {
          answer(() => reject(new Error(`${what}: connection refused`)));
          return;
        }
        world.inside(process, () => {
          invoke().then(
            (reply) => {
              if (!process.alive) return;
              const copy = structuredClone(reply);
              answer(() => resolve(copy));
            },
            (error: Error) => {
              if (process.alive) answer(() => reject(error));
            },
          );
        });
      };
      const copies = world.chance(this.faults.duplicate) ? 2 : 1;
      for (let i = 0; i < copies; i++) {
        if (this.#lost(from)) continue;
        world.after(this.#delay(), `deliver ${what}`, () => {
          if (!this.cut.has(from.name)) deliver();
        });
      }
    });
  }

  #lost(from: Process): boolean {
    return this.cut.has(from.name) || this.#world.chance(this.faults.drop);
  }

  #delay(): number {
    const slow = this.#world.chance(this.faults.slow);
    return slow ? this.#world.between(500, 20_000) : this.#world.between(0, 20);
  }
}
