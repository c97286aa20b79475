/**
 * Machines that come by themselves: pools on a provider that fails in every way it can, a workload
 * that needs them, controllers that die at every step of a launch; then peace, in which all work
 * ends and every machine is given back.
 */
import type { Clock } from '../../../src/lib/clock.ts';
import type { ManagedPool } from '../../../src/control/pools/pool.ts';
import { Cluster } from '../cluster.ts';
import { Violation } from '../checkers/violation.ts';
import { openOwn } from '../drains.ts';
import { scheduleFaults, supervise } from '../faults.ts';
import { PEOPLE } from '../people.ts';
import type { Story } from '../run.ts';
import { SITES } from '../sites.ts';
import { explainPending } from '../story.ts';
import { Workload } from '../workload.ts';
import type { World } from '../world.ts';
import { drawRates, scheduleProviderFaults } from './faults.ts';
import { mortalProvider } from './mortalProvider.ts';
import { drawRentedPools, type RentedPool } from './pools.ts';
import { Rented } from './rented.ts';
import { drawRentedSpec } from './specs.ts';
import { Watch } from './watch.ts';

const FAULTS_MS = 6 * 60_000;
const STEP_MS = 5000;
/** Work that waits for machines which fail: each try has a boot timeout and a back-off. */
const LONGEST_PEACE_MS = 60 * 60_000;
const LOOK_MS = 2000;

export function provisionStory(world: World, file: string): Story {
  const pools = drawRentedPools(world);
  const rented: Rented = new Rented({
    cluster: () => cluster,
    ...{ pools, rates: drawRates(world) },
    onFault: (fault) => cluster.coverage.saw(fault),
  });
  const manage = (clock: Clock): ManagedPool[] =>
    pools.map((pool) => ({
      ...{ name: pool.name, kind: 'fake', policy: pool.policy, settings: pool.settings },
      provider: mortalProvider(
        rented.provider(pool, clock),
        (point) => cluster.controller.point(point),
        (batch) => watch.asked(batch),
      ),
      ...{ longestMs: 0, perUser: false },
    }));
  const free = { ...pools[0]!.policy, name: 'default' };
  const cluster = new Cluster(world, file, {
    sites: SITES.slice(0, 1),
    pools: [free, ...pools.map(({ policy }) => policy)],
    manage,
  });
  const watch = new Watch(cluster, rented, pools);
  return { cluster, play: () => play(cluster, rented, pools, watch) };
}

async function play(
  cluster: Cluster,
  rented: Rented,
  pools: readonly RentedPool[],
  watch: Watch,
): Promise<void> {
  const { world, checker, network, coverage } = cluster;
  const check = (): void => checker.check();
  let peace = false;
  await cluster.start();
  const workload = new Workload({
    ...{ world, network, checker, coverage },
    target: () => cluster.target(),
    draw: (tenant, name) => drawRentedSpec(world, pools, tenant, name),
    jobs: world.between(20, 60),
    overMs: FAULTS_MS,
    talkative: false,
  });
  // Limits are by the hour of the controller's clock.
  const capped = pools.some(({ settings }) => settings.spendPerHour > 0);
  scheduleFaults(cluster, FAULTS_MS, !capped);
  scheduleProviderFaults(cluster, rented, pools, FAULTS_MS);
  supervise(cluster, () => peace);
  const look = (): void => {
    watch.look(peace && workload.unanswered === 0 && checker.liveness.pending() === 0);
    world.after(LOOK_MS, look);
  };
  look();
  await world.run(FAULTS_MS, check);
  peace = true;
  world.note('world', 'peace');
  cluster.calm();
  rented.calm();
  const untilMs = FAULTS_MS + LONGEST_PEACE_MS;
  const quiet = (): boolean => workload.unanswered === 0 && checker.liveness.pending() === 0;
  while (world.nowMs < untilMs && !(quiet() && watch.given())) {
    world.after(0, () => void openOwn(cluster));
    // With a limit there may be no money left for the rest.
    if (capped) world.after(0, () => void cancelAll(cluster));
    await world.run(world.nowMs + STEP_MS, check);
  }
  explainPending(cluster);
  if (workload.unanswered > 0) throw new Violation('L1', 'a submission was never answered');
  checker.liveness.late(untilMs - FAULTS_MS);
  watch.ended();
}

/** As their owners would, when they hear that the money is spent. */
async function cancelAll({ controller: { controller } }: Cluster): Promise<void> {
  for (const { job } of controller ? [...controller.state.jobs.values()] : []) {
    const { coordinator } = controller!;
    const owner = PEOPLE.find(({ tenant, user }) => tenant === job.tenant && user === job.owner);
    const who = owner && (await coordinator.authenticate(owner.secret));
    if (who) await coordinator.cancelJob(who, job.id).catch(() => undefined);
  }
}
