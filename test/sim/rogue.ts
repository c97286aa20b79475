/**
 * A second planner that plans at random: it preempts, nominates and assigns what it likes, mostly
 * wrongly. The state's guards must hold whatever is planned.
 */
import { Capacity, claimOf } from '../../src/core/placement/capacity.ts';
import { attemptUid } from '../../src/model/ids.ts';
import type { Claim } from '../../src/model/claim.ts';
import type { Task } from '../../src/model/task.ts';
import type { Controller } from '../../src/control/controller.ts';
import type { LiveJob, LiveWorker } from '../../src/state/live.ts';
import { requestOf } from '../../src/state/requests.ts';
import type { State } from '../../src/state/state.ts';
import type { Cluster } from './cluster.ts';
import { mayUse, SITES } from './sites.ts';

const PERIOD_MS = { least: 200, most: 3000 };

type Members = { task: Task['id']; version: number; claim: Claim }[];

export function startRogue(cluster: Cluster, over: () => boolean): void {
  const { world, controller: process } = cluster;
  world.after(world.between(PERIOD_MS.least, PERIOD_MS.most), () => {
    // In peace the planner must see to what was left half done.
    if (over()) return;
    const { controller } = process;
    const alive = process.process?.alive && !process.process.paused;
    if (controller && alive) step(cluster, controller);
    startRogue(cluster, over);
  });
}

function step(cluster: Cluster, controller: Controller): void {
  const { world, coverage } = cluster;
  const { state, mutate } = controller;
  for (const [live, members] of nominated(state)) {
    const [first] = members;
    if (!first) continue;
    if (world.chance(0.1)) {
      const result = mutate({ kind: 'withdraw', owner: first.claim.owner, reason: 'withdrawn' });
      if (result.kind === 'done') coverage.saw('nomination withdrawn');
    } else if (world.chance(0.7)) {
      const tasks = members.map((one) => ({
        ...one,
        claim: { ...one.claim, state: 'HELD' as const },
      }));
      const result = mutate({ kind: 'assign', job: live.job.id, round: live.job.round, tasks });
      if (result.kind === 'done') coverage.saw('nominated, then assigned');
    }
  }
  plan(cluster, controller);
}

function nominated(state: State): Map<LiveJob, Members> {
  const jobs = new Map<LiveJob, Members>();
  for (const { live, task, claim } of state.nominations.values()) {
    const members = jobs.get(live) ?? [];
    members.push({ task: task.id, version: task.version, claim });
    jobs.set(live, members);
  }
  return jobs;
}

function plan(cluster: Cluster, { state, mutate }: Controller): void {
  const { world, coverage } = cluster;
  const waiting = [...state.jobs.values()].filter(({ counts }) => counts.PENDING > 0);
  if (waiting.length === 0 || state.workers.size === 0) return;
  const live = world.pick(waiting);
  const pending = live.tasks.filter((task) => task.state === 'PENDING');
  const tasks = live.job.spec.shape.kind === 'gang' ? live.tasks : [world.pick(pending)];
  const preempts = world.chance(0.6);
  const victims = new Set<string>();
  const members = claimAll(cluster, state, live, tasks, preempts ? victims : null);
  if (!members) return;
  const { id: job, round } = live.job;
  if (!preempts) {
    mutate({ kind: 'assign', job, round, tasks: members });
    return;
  }
  // Sometimes it forgets whom it meant to stop: then there is no room.
  const named = [...victims].filter(() => !world.chance(0.1));
  const result = mutate({
    kind: 'preempt',
    ...{ job, round, tasks: members, reason: 'preempted by a random plan' },
    victims: named.map((uid) => ({ uid: uid as Claim['owner'] })),
  });
  if (result.kind === 'done') coverage.saw('task nominated', members.length);
  if (result.kind === 'done' && named.length > 0) coverage.saw('attempt preempted', named.length);
}

/** Claims that fit where some of what is there is left out: victims, or what it overlooks. */
function claimAll(
  cluster: Cluster,
  state: State,
  live: LiveJob,
  tasks: readonly Task[],
  victims: Set<string> | null,
): Members | null {
  const { world, pools } = cluster;
  const usable = [...state.workers.values()].filter(({ worker }) => {
    const site = SITES.find(({ name }) => name === worker.machine);
    return site && mayUse(site, pools, live.job.spec, live.job.tenant);
  });
  if (usable.length === 0) return null;
  const rooms = new Map<LiveWorker, Capacity>();
  const { resources } = requestOf(live.job);
  const members: Members = [];
  for (const task of tasks) {
    const worker = world.pick(usable);
    const room = rooms.get(worker) ?? imagined(cluster, state, worker, victims);
    rooms.set(worker, room);
    const fit = room.fit(resources);
    if (!fit.fits) return null;
    const uid = attemptUid(task.id, task.attempts + 1, world.random.hex(12));
    const claim = claimOf(uid, worker.worker.id, resources, fit);
    room.take(claim);
    if (victims) claim.state = 'NOMINATED';
    members.push({ task: task.id, version: task.version, claim });
  }
  return members;
}

function imagined(
  { world }: Cluster,
  state: State,
  { worker }: LiveWorker,
  victims: Set<string> | null,
): Capacity {
  const room = new Capacity(worker.resources);
  for (const claim of state.claims.values()) {
    if (claim.worker !== worker.id) continue;
    if (claim.state === 'NOMINATED' && world.chance(0.5)) continue;
    if (claim.state === 'HELD' && world.chance(victims ? 0.5 : 0.1)) victims?.add(claim.owner);
    else if (claim.state !== 'RELEASING' || !victims) room.take(claim);
  }
  return room;
}
