/** make sim-fleet: a day of a large fleet on the production planner and state, without protocol. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { createPlanner } from '../../src/control/planner.ts';
import { reportOf } from '../../src/control/simulate/report.ts';
import { runSimulation } from '../../src/control/simulate/run.ts';
import { USUAL_START_MS } from '../../src/control/simulate/workload.ts';
import { DEFAULT_POLICY } from '../../src/core/schedule/plan.ts';
import { seededRandom } from '../../src/lib/random.ts';
import { printSimulation } from '../../src/cli/simulateOutput.ts';
import { systemIo } from '../../src/cli/io.ts';
import { DAY_MS, largeFleet, largeWorkload } from './fleetWorkload.ts';

const { values } = parseArgs({
  options: {
    workers: { type: 'string', default: '100000' },
    jobs: { type: 'string', default: '1000000' },
    seed: { type: 'string', default: '1' },
    tick: { type: 'string', default: '10000' },
  },
});
const [workers, jobs, seed, tickMs] = [values.workers, values.jobs, values.seed, values.tick].map(
  Number,
) as [number, number, number, number];

const fleet = largeFleet(workers);
const random = seededRandom(seed);
let saidMs = performance.now();
const outcome = await runSimulation({
  fleet,
  jobs: largeWorkload(jobs, workers, seed),
  startMs: USUAL_START_MS,
  horizonMs: DAY_MS,
  planner: createPlanner(random),
  halfLifeMs: DEFAULT_POLICY.halfLifeMs,
  random,
  tickMs,
  startDelayMs: 0,
  stopwatch: () => performance.now(),
  progress(simulatedMs, submitted) {
    if (performance.now() - saidMs < 5000) return;
    saidMs = performance.now();
    console.error(`${(simulatedMs / 3_600_000).toFixed(2)} h, ${submitted} jobs submitted`);
  },
});
const report = reportOf(`${workers} workers`, fleet, outcome);
const io = systemIo();
const print = (text: string): Promise<void> => io.stdout.write(`${text}\n`);
await printSimulation(
  { io, print, notice: async () => {} },
  {
    workload: {
      source: 'file',
      name: `${jobs} jobs in a day`,
      seed,
      jobs,
      skipped: [],
      recorded: null,
    },
    runs: [report],
    svg: null,
  },
);
const { wallMs, planMs, plans, placements, placementsPerSecond } = report.speed;
const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;
const memory = Math.round(process.memoryUsage.rss() / 2 ** 20);
console.log(
  `\n${seconds(wallMs)} of real time, ${seconds(planMs)} of it in ${plans} plans; ` +
    `${placements} placements, ${placementsPerSecond}/s; ${memory} MiB at the end`,
);
mkdirSync('bench/results', { recursive: true });
const all = report.wait.find(({ band }) => band === 'all');
const row = {
  workers,
  jobs,
  seed,
  tickMs,
  wallMs: Math.round(wallMs),
  planMs: Math.round(planMs),
  placements,
  placementsPerSecond,
  devicesInUse: report.utilisation.devices,
  waitP50Ms: all?.p50Ms,
  waitP90Ms: all?.p90Ms,
  waitP99Ms: all?.p99Ms,
  fairness: report.fairness,
  preemptions: report.preemptions,
};
writeFileSync('bench/results/sim-fleet.json', `${JSON.stringify([row], null, 2)}\n`);
