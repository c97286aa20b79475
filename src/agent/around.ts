/**
 * What is done around commands, step by step: each step prepares, watches or keeps one kind of
 * thing, and most do only one of these.
 */
import type { Around, Kept } from './runtimes/around.ts';

export type Step = Partial<Around>;

/** In the order given: a later step sees what an earlier one prepared. */
export function createAround(steps: readonly Step[]): Around {
  const needing = (order: Parameters<Around['needsPreparation']>[0]): Step[] =>
    steps.filter((step) => step.needsPreparation?.(order));
  return {
    needsPreparation: (order) => steps.some((step) => step.needsPreparation?.(order)),
    async prepare(preparation) {
      for (const step of needing(preparation.order)) await step.prepare?.(preparation);
    },
    watch(started) {
      const ends = steps.flatMap((step) => step.watch?.(started) ?? []);
      return ends.length === 0 ? undefined : () => ends.forEach((end) => end());
    },
    needsFinish: (...one) => steps.some((step) => step.needsFinish?.(...one)),
    async finish(finish) {
      const all: Kept[] = [];
      for (const step of steps) {
        if (!step.needsFinish?.(finish.order, finish.home, finish.how)) continue;
        all.push((await step.finish?.(finish)) ?? {});
      }
      return merge(all);
    },
  };
}

function merge(all: readonly Kept[]): Kept {
  const kept: Kept = Object.assign({}, ...all);
  const facts = Object.assign({}, ...all.map((one) => one.facts)) as Record<string, string>;
  if (Object.keys(facts).length > 0) kept.facts = facts;
  const messages = all.flatMap(({ message }) => (message ? [message] : []));
  return messages.length > 0 ? { ...kept, message: messages.join('; ') } : kept;
}
