/**
 * The usual story: machines that are there, a workload, faults until a time, then peace in which
 * everything must end.
 */
import { Cluster } from './cluster.ts';
import { boundMs } from './checkers/liveness.ts';
import { Violation } from './checkers/violation.ts';
import { TIMERS } from './controllerProcess.ts';
import { drain } from './drains.ts';
import { scheduleFaults, supervise } from './faults.ts';
import { CALL_TIMEOUT_MS } from './network.ts';
import { Operator } from './operator.ts';
import { startRogue } from './rogue.ts';
import type { Story } from './run.ts';
import { drawPools, SITES } from './sites.ts';
import { drawSpec } from './specs.ts';
import { Workload } from './workload.ts';
import type { World } from './world.ts';

const FAULTS_MS = 90_000;
const PEACE_STEP_MS = 5000;
/**
 * After the last end agents hear that it was noted, and forget; a call may have to be sent again.
 */
const FORGET_MS = CALL_TIMEOUT_MS + 10_000;

/** A follow waits ten minutes for what a machine announced and does not bring. */
const FOLLOWED_MS = 12 * 60_000;

export function usualStory(world: World, file: string): Story {
  const cluster = new Cluster(world, file, { sites: SITES, pools: drawPools(world) });
  return { cluster, play: () => play(cluster) };
}

async function play(cluster: Cluster): Promise<void> {
  const { world, checker, network, coverage } = cluster;
  const check = (): void => checker.check();
  let peace = false;
  // Swarm: in some seeds a second planner plans nonsense, and the state must not take it.
  const rogue = world.chance(0.3);
  await cluster.start();
  const workload = new Workload({
    ...{ world, network, checker, coverage },
    target: () => cluster.target(),
    draw: (tenant, name) =>
      drawSpec({ world, pools: cluster.pools, tenant, particular: !rogue, name }),
    jobs: world.between(4, 16),
    overMs: FAULTS_MS,
    talkative: cluster.talkative,
  });
  const operator = new Operator(cluster, workload);
  operator.schedule(FAULTS_MS);
  if (rogue) startRogue(cluster, () => peace);
  scheduleFaults(cluster, FAULTS_MS);
  supervise(cluster, () => peace);
  await world.run(FAULTS_MS, check);
  peace = true;
  world.note('world', 'peace');
  cluster.calm();
  const untilMs = FAULTS_MS + boundMs(workload.work, TIMERS.attemptLeaseMs);
  const quiet = (): boolean => workload.unanswered === 0 && checker.liveness.pending() === 0;
  while (world.nowMs < untilMs && !quiet()) {
    world.after(0, () => void drain(cluster, false));
    world.after(0, () => operator.makeRoom());
    await world.run(Math.min(untilMs, world.nowMs + PEACE_STEP_MS), check);
  }
  if (workload.unanswered > 0) {
    throw new Violation('L1', `${workload.unanswered} submissions were never answered`);
  }
  explainPending(cluster);
  checker.liveness.late(untilMs - FAULTS_MS);
  operator.checkHolds();
  const followedMs = world.nowMs + FOLLOWED_MS;
  while (workload.following > 0 && world.nowMs < followedMs) {
    await world.run(Math.min(followedMs, world.nowMs + PEACE_STEP_MS), check);
  }
  if (workload.following > 0) throw new Violation('L5', 'a follow does not end');
  await world.run(world.nowMs + FORGET_MS, check);
  for (const machine of cluster.machines) {
    const [uid] = machine.attempts();
    if (uid) throw new Violation('L1', `${machine.name} still has ${uid} when all is over`);
  }
}

/** What the controller itself thinks of what has not ended. */
export function explainPending({ world, controller }: Cluster): void {
  const state = controller.controller?.state;
  for (const { job, tasks, waitsFor, attempts } of state?.jobs.values() ?? []) {
    const told = tasks.map((task) => `${task.index} ${task.state} ${task.reason}`).join('; ');
    const waits = [...(waitsFor ?? [])].join(' ');
    world.note('stuck', `${job.id} ${told}; waits for: ${waits}; attempts: ${attempts.size}`);
  }
  for (const claim of state?.claims.values() ?? []) world.note('stuck', JSON.stringify(claim));
}
