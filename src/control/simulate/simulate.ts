/** `drover simulate`: a workload on one fleet or several, and what came of it. */
import { seededRandom } from '../../lib/random.ts';
import type { RunReport, Simulate, SimulationRequest, Variant } from '../../protocol/simulation.ts';
import { createPlanner } from '../planner.ts';
import type { Fleet } from './fleet.ts';
import { readFleet } from './fleetFile.ts';
import { readHistory, serverFleet } from './history.ts';
import { readPolicy, underPolicy, type Policy } from './policy.ts';
import type { Readers } from './readers.ts';
import { reportOf } from './report.ts';
import { runSimulation } from './run.ts';
import { readSacct } from './sacct.ts';
import { drawRuns } from './svg.ts';
import type { Workload } from './workload.ts';
import { readWorkload } from './workloadFile.ts';

/** Apart from the workload's, so that neither changes the other. */
const RUN_SEED_OFFSET = 7_919;

export function createSimulate(readers: Readers, stopwatch: () => number): Simulate {
  return async (request) => {
    const variants = await Promise.all(
      request.variants.map(async (variant) => ({
        name: variant.name,
        policy: readPolicy(variant.policy, readers),
        fleet: await fleetOf(variant, request, readers),
      })),
    );
    const [first] = variants;
    if (!first) throw new Error('a simulation needs a fleet');
    const workload = await workloadOf(request, first, readers);
    const runs: RunReport[] = [];
    for (const { name, fleet, policy } of variants) {
      runs.push(await runOne(name, fleet, policy, workload, request));
    }
    return {
      workload: workload.summary,
      runs,
      svg: request.svg ? drawRuns(workload.summary.name, runs) : null,
    };

    async function runOne(
      name: string,
      fleet: Fleet,
      policy: Policy,
      work: Workload,
      { horizonMs, progress }: SimulationRequest,
    ): Promise<RunReport> {
      const random = seededRandom(work.summary.seed + RUN_SEED_OFFSET);
      const used = policy.budgets ? fleet : { ...fleet, budgets: [] };
      const outcome = await runSimulation({
        fleet: used,
        jobs: underPolicy(work.jobs(), policy),
        startMs: work.startMs,
        horizonMs: horizonMs ?? work.horizonMs,
        planner: createPlanner(random, policy.schedule),
        halfLifeMs: policy.schedule.halfLifeMs,
        random,
        tickMs: policy.tickMs,
        startDelayMs: policy.startDelayMs,
        stopwatch,
        progress: (simulatedMs, submitted) => {
          const hours = (simulatedMs / 3_600_000).toFixed(1);
          progress(`${name}: ${submitted} jobs submitted, ${hours} h simulated`);
        },
      });
      return reportOf(name, used, outcome);
    }
  };
}

async function fleetOf(
  { fleet }: Variant,
  { workload }: SimulationRequest,
  readers: Readers,
): Promise<Fleet> {
  if (fleet) return readFleet(fleet, readers);
  if (workload.kind !== 'server') throw new Error('only a server has a fleet of its own');
  return serverFleet(workload.client);
}

async function workloadOf(
  { workload, seed, progress }: SimulationRequest,
  { fleet, policy }: { fleet: Fleet; policy: Policy },
  readers: Readers,
): Promise<Workload> {
  switch (workload.kind) {
    case 'file':
      return readWorkload(workload, seed, readers);
    case 'sacct': {
      const pools = new Set(fleet.pools.map((pool) => pool.policy.name));
      return readSacct(workload, { pools, bandOf: policy.bandOf, seed: seed ?? 1 });
    }
    case 'server':
      return readHistory({ ...workload, seed: seed ?? 1, progress });
  }
}
