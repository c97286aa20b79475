/** The simulator as a test: no violation, identical replays, every planted bug found. */
import { expect, test } from 'vitest';
import { missingFrom } from './coverage.ts';
import { PLANT_SEEDS, runPlants, runSeeds } from './parallel.ts';
import { PLANTS } from './plants/all.ts';
import { describe as describeRun } from './summary.ts';

/** As many as fit half a minute on two busy cores. `make sim SEEDS=10000` runs more. */
const SEEDS = process.env['SOAK'] ? 20_000 : 500;
const REPLAYED_SEEDS = 50;
/** Some ten seconds; `make sim-provision` runs as many as 10,000 machines need. */
const PROVISION_SEEDS = process.env['SOAK'] ? 2000 : 20;
const LONGEST_MS = 20 * 60_000;

test(
  `${SEEDS} seeds hold every invariant and reach every state`,
  { timeout: LONGEST_MS },
  async () => {
    const summary = await runSeeds({ from: 1, count: SEEDS });
    console.log(describeRun(summary));
    expect(summary.found.map(({ seed, message }) => `make sim SEED=${seed}: ${message}`)).toEqual(
      [],
    );
    expect(missingFrom(summary.coverage)).toEqual([]);
  },
);

test(
  `${PROVISION_SEEDS} seeds of machines that come by themselves hold every invariant`,
  { timeout: LONGEST_MS },
  async () => {
    const summary = await runSeeds({ story: 'provision', from: 1, count: PROVISION_SEEDS });
    const { provisioning = 0 } = summary.coverage;
    console.log(`${describeRun(summary)}; ${provisioning} provisionings`);
    const again = `make sim ARGS='--story provision' SEED=`;
    expect(summary.found.map(({ seed, message }) => `${again}${seed}: ${message}`)).toEqual([]);
    expect(provisioning).toBeGreaterThan(5 * PROVISION_SEEDS);
    const twice = { from: 100_000, count: 2, twice: true };
    expect((await runSeeds({ story: 'provision', ...twice })).found).toEqual([]);
  },
);

test(`${REPLAYED_SEEDS} seeds give the same history twice`, { timeout: LONGEST_MS }, async () => {
  const summary = await runSeeds({ from: 100_000, count: REPLAYED_SEEDS, twice: true });
  expect(summary.found).toEqual([]);
});

test(`${PLANTS.length} planted bugs are found`, { timeout: LONGEST_MS }, async () => {
  const results = await runPlants(({ plant, seeds, found }) =>
    console.log(`${plant.name}: ${seeds ?? `not in ${PLANT_SEEDS}`} seeds, ${found?.message}`),
  );
  const hidden = results.filter(({ seeds }) => seeds === null);
  expect(hidden.map(({ plant, found }) => `${plant.name}: ${found?.message}`)).toEqual([]);
});

test('a plant whose text is not in the code is refused', { timeout: LONGEST_MS }, async () => {
  const unknown = runSeeds({ from: 1, count: 1, plant: 'no such plant' });
  await expect(unknown).rejects.toThrow('ended with code 1');
});
