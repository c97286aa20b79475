/** At most so many at once, in the order in which they came. */
import { expect, test } from 'vitest';
import { createTurns } from './turns.ts';

test('no more than so many run at once, in order, also after one that failed', async () => {
  const turns = createTurns(2);
  const begun: number[] = [];
  let atOnce = 0;
  let most = 0;
  const work = (n: number) =>
    turns.run(async () => {
      begun.push(n);
      most = Math.max(most, ++atOnce);
      await Promise.resolve();
      atOnce--;
      if (n === 1) throw new Error('one');
      return n;
    });
  const results = await Promise.allSettled([0, 1, 2, 3, 4].map(work));
  expect(results.map(({ status }) => status === 'fulfilled')).toEqual([
    ...[true, false, true, true, true],
  ]);
  expect([begun, most]).toEqual([[0, 1, 2, 3, 4], 2]);
});
