/** What the agent does around a command: small steps in a fixed order, each for one part of a job. */
import type { Around } from './runtimes/around.ts';

/** A step does what it has methods for; questions are answered from the order alone. */
export type Step = Partial<Around>;

/** Prepared and watched in this order, finished in it too; what one keeps the next may add to. */
export function createAround(steps: readonly Step[]): Around {
  return {
    needsPreparation: (order) => steps.some((step) => step.needsPreparation?.(order)),
    async prepare(preparation) {
      for (const step of steps) {
        preparation.signal.throwIfAborted();
        if (step.needsPreparation?.(preparation.order)) await step.prepare?.(preparation);
      }
    },
    watch(started) {
      const ends = steps.flatMap((step) => step.watch?.(started) ?? []);
      if (ends.length === 0) return undefined;
      return () => {
        for (const end of ends) end();
      };
    },
    needsFinish: (order) => steps.some((step) => step.needsFinish?.(order)),
    async finish(finish) {
      let kept = {};
      for (const step of steps) {
        if (step.needsFinish?.(finish.order)) kept = { ...kept, ...(await step.finish?.(finish)) };
      }
      return kept;
    },
  };
}
