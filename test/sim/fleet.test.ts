/** A small day of fleet mode: it fits into seconds, repeats, and forgets what has ended. */
import { expect, test } from 'vitest';
import { createPlanner } from '../../src/control/planner.ts';
import { reportOf } from '../../src/control/simulate/report.ts';
import { runSimulation } from '../../src/control/simulate/run.ts';
import { USUAL_START_MS } from '../../src/control/simulate/workload.ts';
import { DEFAULT_POLICY } from '../../src/core/schedule/plan.ts';
import { seededRandom } from '../../src/lib/random.ts';
import { DAY_MS, largeFleet, largeWorkload } from './fleetWorkload.ts';

/** On a machine that does other things as well; it takes some 5 s of one core. */
const LONGEST_MS = 60_000;

async function day(workers: number, jobs: number, seed: number) {
  const fleet = largeFleet(workers);
  const random = seededRandom(seed);
  const outcome = await runSimulation({
    fleet,
    jobs: largeWorkload(jobs, workers, seed),
    startMs: USUAL_START_MS,
    horizonMs: DAY_MS,
    planner: createPlanner(random),
    random,
    halfLifeMs: DEFAULT_POLICY.halfLifeMs,
    tickMs: 30_000,
    startDelayMs: 0,
    stopwatch: () => performance.now(),
  });
  return { outcome, report: reportOf('fleet', fleet, outcome) };
}

test('1,000 workers and 20,000 jobs', { timeout: 2 * LONGEST_MS }, async () => {
  const { outcome, report } = await day(1000, 20_000, 1);
  const { submitted, succeeded, running, waiting, failed, refused } = report.jobs;
  expect(report.speed.wallMs).toBeLessThan(LONGEST_MS);
  expect(submitted).toBe(20_000);
  expect({ failed, refused }).toEqual({ failed: 0, refused: 0 });
  expect(succeeded + running + waiting).toBe(submitted);
  expect(succeeded).toBeGreaterThan(12_000);
  expect(outcome.state.jobs.size).toBe(running + waiting);
  expect(report.utilisation.devices).toBeGreaterThan(0.4);
  expect(report.utilisation.devices).toBeLessThanOrEqual(1);
  const [production, , batch] = report.wait;
  expect(production!.meanMs).toBeLessThanOrEqual(batch!.meanMs + 60_000);
});

test('one seed is one day', async () => {
  const plain = async (seed: number) => {
    const { speed: _, ...report } = (await day(50, 500, seed)).report;
    return report;
  };
  const first = await plain(3);
  expect(await plain(3)).toEqual(first);
  expect(await plain(4)).not.toEqual(first);
});
