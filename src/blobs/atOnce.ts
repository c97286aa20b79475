/** Asks about many things, a few at a time. */
import { BLOB_LIMITS } from './limits.ts';

/** The answers in the order of the items; the first failure rejects. */
export async function eachAtOnce<Item, Answer>(
  items: readonly Item[],
  ask: (item: Item) => Promise<Answer>,
): Promise<Answer[]> {
  const answers: Answer[] = [];
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < items.length) {
      const index = next++;
      answers[index] = await ask(items[index]!);
    }
  };
  await Promise.all(Array.from({ length: Math.min(BLOB_LIMITS.atOnce, items.length) }, lane));
  return answers;
}
