/** docs/getting-started.md, typed from the top to the bottom; what it shows must come. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { follow, readGuide } from '../support/guide.ts';
import { startJourney, type Journey } from '../support/journey.ts';
import { sweep } from '../support/leftovers.ts';

let journey: Journey;
beforeAll(async () => {
  // No GPUs, whatever this machine has: the page says what happens without.
  journey = await startJourney({ args: ['--resources', 'cpus=2,mem=4Gi'] });
});
afterAll(async () => {
  await journey.close();
  sweep(journey.home);
});

test('every command works and shows what the page says', async () => {
  const { steps } = readGuide('getting-started.md');
  const typed = steps.filter(({ commands }) => commands !== 'make up\n');
  expect(typed.length).toBeGreaterThan(7);
  await follow(typed, {
    env: { HOME: journey.home },
    replace: { 'http://127.0.0.1:7070': journey.url },
    atTheEnd: 'kill %1; wait',
  });
}, 180_000);
