/**
 * What goes wrong in a seed: which faults, how often and when; and the supervisor that starts
 * again.
 */
import type { Cluster } from './cluster.ts';
import { drain } from './drains.ts';
import type { Machine } from './machine.ts';
import type { Process } from './world.ts';

const STEPS_MS = [60_000, 3_600_000, 43_200_000] as const;

/** Draws the seed's storm. A fault that is on happens up to `most` times, at any time. */
/** `steps`: also clocks that are set anew. */
export function scheduleFaults(cluster: Cluster, overMs: number, steps = true): void {
  const { world } = cluster;
  const times = (most: number, run: () => void): void => {
    const count = most > 0 && world.chance(0.5) ? world.between(1, most) : 0;
    for (let i = 0; i < count; i++) world.after(world.between(0, overMs), run);
  };
  times(5, () => crashController(cluster));
  times(3, () => {
    if (pause(cluster, cluster.controller.process)) cluster.coverage.saw('controller paused');
  });
  times(6, () => crashAgent(cluster, 'at any time'));
  times(4, () => pauseAgent(cluster, world.pick(cluster.machines)));
  // With an order on its way to it: what it finds on waking is older than it looks.
  times(3, () => {
    cluster.onAssigned = (machine) => pauseAgent(cluster, machine);
  });
  times(2, () => {
    cluster.onAssigned = (machine) => dieAfterStart(cluster, machine);
  });
  times(3, () => reboot(cluster));
  times(2, () => forgetIdentity(cluster));
  times(2, () => breakToken(cluster));
  times(4, () => cutOff(cluster, world.pick(cluster.machines)));
  times(steps ? 4 : 0, () => stepClock(cluster));
  times(steps ? 2 : 0, () => {
    cluster.onBackOff = () => stepBack(cluster);
  });
  times(2, () => void drain(cluster, true));
  times(2, () => void drain(cluster, false));
}

/** What systemd would do: starts the controller again when it has died. */
export function supervise(cluster: Cluster, peace: () => boolean): void {
  const { world, controller } = cluster;
  const delayMs = peace() ? 1000 : world.between(200, 6000);
  world.after(delayMs, () => {
    if (!controller.process?.alive) void controller.start();
    supervise(cluster, peace);
  });
}

function crashController({ controller, coverage }: Cluster): void {
  if (!controller.process?.alive) return;
  coverage.saw('controller crash at any time');
  controller.crash('at any time');
}

/** Mostly shorter than a lease, sometimes longer. */
function awayMs({ world }: Cluster): number {
  return world.chance(0.7) ? world.between(100, 20_000) : world.between(20_000, 80_000);
}

function crashAgent(cluster: Cluster, why: string): void {
  const machine = cluster.world.pick(cluster.machines);
  if (!cluster.agentOf(machine)?.alive) return;
  cluster.coverage.saw('agent crash at any time');
  cluster.endAgent(machine, why, awayMs(cluster));
}

function reboot(cluster: Cluster): void {
  const { world, coverage } = cluster;
  const machine = world.pick(cluster.machines);
  if (!cluster.agentOf(machine)?.alive) return;
  cluster.endAgent(machine, 'reboot', world.between(3000, 40_000));
  machine.reboot();
  coverage.saw('machine rebooted');
  if (!world.chance(0.3)) return;
  machine.wipe();
  cluster.checker.wiped(machine.name);
  world.note(machine.name, 'disk replaced');
  coverage.saw('machine wiped');
}

/** The agent's own file is lost; the attempts and their directories are still there. */
function forgetIdentity(cluster: Cluster): void {
  const machine = cluster.world.pick(cluster.machines);
  if (!cluster.agentOf(machine)?.alive) return;
  cluster.endAgent(machine, 'identity lost', awayMs(cluster));
  machine.identity = null;
  cluster.coverage.saw('agent forgot its identity');
}

/** Its token is not (any more) one that the controller takes: it must join again. */
function breakToken(cluster: Cluster): void {
  const machine = cluster.world.pick(cluster.machines);
  if (!machine.identity || !cluster.agentOf(machine)?.alive) return;
  cluster.endAgent(machine, 'token revoked', cluster.world.between(100, 5000));
  machine.identity = { ...machine.identity, token: 'drw_revoked' };
}

/**
 * Sometimes the network is gone too when it wakes, so that only what it has already heard counts.
 */
function pauseAgent(cluster: Cluster, machine: Machine): void {
  if (!pause(cluster, cluster.agentOf(machine))) return;
  cluster.coverage.saw('agent paused');
  if (cluster.world.chance(0.3)) cutOff(cluster, machine);
}

/** It wakes with an order that is not young any more, begins to follow it and dies half way. */
function dieAfterStart(cluster: Cluster, machine: Machine): void {
  if (!pause(cluster, cluster.agentOf(machine), cluster.world.between(0, 20_000))) return;
  cluster.coverage.saw('agent paused');
  cluster.doomed.set(machine, cluster.world.pick(['start', 'renew', 'renew']));
}

function pause(cluster: Cluster, process: Process | null, forMs = awayMs(cluster)): boolean {
  const { world } = cluster;
  if (!process?.alive || process.paused) return false;
  process.paused = true;
  world.note(process.name, 'paused');
  world.after(forMs, () => {
    world.note(process.name, 'resumes');
    world.resume(process);
  });
  return true;
}

function cutOff(cluster: Cluster, { name }: Machine): void {
  const { world, network, coverage } = cluster;
  const way = world.pick(['both', 'requests', 'replies'] as const);
  network.cut.set(name, way);
  world.note(name, `cut off (${way})`);
  coverage.saw(way === 'both' ? 'machine cut off' : 'machine cut off one way');
  world.after(awayMs(cluster), () => network.cut.delete(name));
}

function stepClock(cluster: Cluster): void {
  const { world, coverage } = cluster;
  const host = world.pick([cluster.controller, ...cluster.machines]).host;
  const most = world.pick(STEPS_MS);
  const byMs = world.between(-most, most);
  host.wallOffsetMs += byMs;
  if (host === cluster.controller.host && byMs > 0) cluster.checker.leapt();
  world.note('clock', `steps to ${host.wallOffsetMs}`);
  coverage.saw('clock stepped');
}

/** While somebody waits for a time: that is far ahead now. */
function stepBack({ world, controller, coverage }: Cluster): void {
  controller.host.wallOffsetMs -= world.pick(STEPS_MS);
  world.note('clock', `steps to ${controller.host.wallOffsetMs}`);
  coverage.saw('clock stepped');
}
