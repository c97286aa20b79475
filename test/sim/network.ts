/**
 * A network that drops, doubles, delays and cuts. Calls cross it as copies, in both directions
 * apart.
 */
import { copyOf } from './plainData.ts';
import type { Process, World } from './world.ts';

export interface NetworkFaults {
  drop: number;
  duplicate: number;
  /** Chance of a delay of seconds instead of milliseconds. */
  slow: number;
}

/** Which way is cut off: what a process asks, what it is answered, or both. */
export type Cut = 'requests' | 'replies' | 'both';

/** What a caller's own HTTP client would do. */
export const CALL_TIMEOUT_MS = 15_000;
const USUAL_DELAY_MS = 20;
const SLOW_DELAY_MS = { least: 500, most: 12_000 };

export class Network {
  readonly #world: World;
  readonly #beforeAnswer: (server: Process) => void;
  faults: NetworkFaults;
  /** Callers by name that are cut off. */
  readonly cut = new Map<string, Cut>();

  /** `beforeAnswer` may end the server: it has done its work, and nobody hears of it. */
  constructor(world: World, faults: NetworkFaults, beforeAnswer: (server: Process) => void) {
    this.#world = world;
    this.faults = faults;
    this.#beforeAnswer = beforeAnswer;
  }

  call<Reply>(
    from: Process,
    what: string,
    target: () => Process | null,
    invoke: () => Promise<Reply>,
  ): Promise<Reply> {
    const world = this.#world;
    return new Promise<Reply>((resolve, reject) => {
      if (!from.alive) return;
      let settled = false;
      const settle = (act: () => void): void =>
        world.inside(from, () => {
          if (settled) return;
          settled = true;
          timeout.cancel();
          act();
        });
      const timeout = world.after(CALL_TIMEOUT_MS, () =>
        settle(() => reject(new Error(`${what}: no answer`))),
      );
      const answer = (act: () => void): void => {
        if (this.#lost(from, 'replies')) return;
        world.after(this.#delay(), () => settle(act));
      };
      const deliver = (): void => {
        const server = target();
        if (server?.alive) this.#serve(server, invoke, answer, resolve, reject);
        else answer(() => reject(new Error(`${what}: connection refused`)));
      };
      const copies = world.chance(this.faults.duplicate) ? 2 : 1;
      for (let i = 0; i < copies; i++) {
        if (this.#lost(from, 'requests')) continue;
        world.after(this.#delay(), () => {
          if (!this.#isCut(from, 'requests')) deliver();
        });
      }
    });
  }

  #serve<Reply>(
    server: Process,
    invoke: () => Promise<Reply>,
    answer: (act: () => void) => void,
    resolve: (reply: Reply) => void,
    reject: (error: Error) => void,
  ): void {
    const reply = (act: () => void): void => {
      if (server.alive) this.#beforeAnswer(server);
      if (server.alive) answer(act);
    };
    this.#world.inside(server, () => {
      invoke().then(
        (result) => {
          const copy = copyOf(result);
          reply(() => resolve(copy));
        },
        (error: Error) => reply(() => reject(error)),
      );
    });
  }

  #isCut(from: Process, way: Cut): boolean {
    const cut = this.cut.get(from.name);
    return cut === 'both' || cut === way;
  }

  #lost(from: Process, way: Cut): boolean {
    return this.#isCut(from, way) || this.#world.chance(this.faults.drop);
  }

  #delay(): number {
    if (!this.#world.chance(this.faults.slow)) return this.#world.between(0, USUAL_DELAY_MS);
    return this.#world.between(SLOW_DELAY_MS.least, SLOW_DELAY_MS.most);
  }
}
