/**
 * Commands that end when their machine does. Whoever ends a machine tells its commands as well as
 * its agent, and a command may be the quicker: its end is kept back for a moment, and is the
 * machine's doing where notice of that comes meanwhile.
 */
import { sleep, type Clock } from '../lib/clock.ts';
import type { Observation, SyncRequest } from '../protocol/agent.ts';

/** Both are told at once; the agent may be slow to hear of it. */
const KEPT_BACK_MS = 1500;
/** How often it looks for notice meanwhile. */
const LOOK_MS = 100;

export class SuddenEnds {
  readonly #clock: Clock;
  /** When the end of an attempt was first to be told. */
  readonly #seen = new Map<string, number>();
  readonly #interrupted = new Set<string>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** What is to be told; `isEnding` says whether notice has come. */
  async settle(request: SyncRequest, isEnding: () => boolean): Promise<SyncRequest> {
    this.#forget(request.observed);
    for (const end of request.observed.filter(isFailure)) {
      if (!this.#seen.has(end.uid)) this.#seen.set(end.uid, this.#clock.bootMs());
    }
    while (!isEnding() && request.observed.some((end) => this.#isYoung(end))) {
      await sleep(this.#clock, LOOK_MS);
    }
    if (isEnding()) {
      for (const end of request.observed) if (this.#isYoung(end)) this.#interrupted.add(end.uid);
    }
    if (this.#interrupted.size === 0) return request;
    return { ...request, observed: request.observed.map((end) => this.#told(end)) };
  }

  #isYoung({ uid }: Observation): boolean {
    const seenBootMs = this.#seen.get(uid);
    return seenBootMs !== undefined && this.#clock.bootMs() - seenBootMs < KEPT_BACK_MS;
  }

  #told(end: Observation): Observation {
    return this.#interrupted.has(end.uid) ? { ...end, cause: 'preempted' } : end;
  }

  #forget(observed: readonly Observation[]): void {
    const there = new Set(observed.map(({ uid }) => uid));
    for (const uid of this.#seen.keys()) if (!there.has(uid)) this.#seen.delete(uid);
    for (const uid of this.#interrupted) if (!there.has(uid)) this.#interrupted.delete(uid);
  }
}

function isFailure({ state, cause, exitCode }: Observation): boolean {
  return state === 'ENDED' && (cause === 'signalled' || (cause === 'exited' && exitCode !== 0));
}
