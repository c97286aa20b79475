/**
 * One step of an attempt: look at its files and processes, do what is due, say when to look again.
 * Start, stop, end, adoption by a new agent and repair after a crash are all this one step, which
 * may be repeated at any time.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Observation } from '../../protocol/agent.ts';
import type { Kept } from './around.ts';
import type { Attempt, Machine } from './attempt.ts';
import { decideEnd, type End } from './ending.ts';
import {
  forbidStart,
  outputBytes,
  readExit,
  readIfThere,
  readProcesses,
  removeLease,
  replaceFile,
  type EndRecord,
  type Exit,
  type Processes,
  type StopRequest,
} from './folder.ts';
import { findByMarker, isSameProcess, sendSignal, signalGroup } from './processes.ts';
import { heldObservation, hold, type Held } from './hold.ts';
import { hasEnded } from './shim.ts';

/**
 * How often an attempt is looked at that another agent process started: its exit is no event here.
 */
const ADOPTED_LOOK_MS = 200;
/** How soon to look again while processes are on their way out. */
const LEAVING_LOOK_MS = 10;
const GRACE_LOOK_MS = 50;
const KILL_AGAIN_MS = 200;
const CGROUP_LOOK_MS = 500;
/** Timers cannot be as long as a hold may be. */
const HELD_LOOK_MS = 3_600_000;
/**
 * Killed stragglers that are still there after this long hang in the kernel; the end is reported.
 */
const STRAGGLER_LIMIT_MS = 5000;
/** The protocol takes 4096; a command's name can be longer. */
const MESSAGE_LENGTH = 1000;
/** A shim writes who it is in one go; what is still half written after this long stays so. */
const HALF_WRITTEN_LIMIT_MS = 1000;

/** In how many ms to look again; undefined when an event will tell. */
export function advance(machine: Machine, attempt: Attempt): number | undefined {
  if (attempt.observation.state === 'ENDED') return releaseCgroups(machine, attempt);
  attempt.processes ??= readProcesses(attempt.directory);
  const { processes, directory } = attempt;
  if (attempt.held) return advanceHeld(machine, attempt, attempt.held);
  if (processes === undefined) return advanceStarting(attempt, machine);
  if (processes === 'none') {
    return end(machine, attempt, endOfUnstarted(attempt));
  }
  if (processes.bootId !== machine.bootId) {
    const exit = readExit(directory, true);
    return conclude(machine, attempt, decide(machine, attempt, exit, 'the machine was restarted'));
  }
  const shimLives = attempt.child
    ? !hasEnded(attempt.child)
    : isSameProcess(processes.shim, processes.shimBegan);
  const exit = readExit(directory, !shimLives);
  if (exit === undefined && (shimLives || isSameProcess(processes.task, processes.taskBegan))) {
    return advanceRunning(machine, attempt, processes);
  }
  return advanceOver(machine, attempt, processes, exit);
}

/** Until `pid` is written nothing runs: whoever writes it first decides. */
function advanceStarting(attempt: Attempt, machine: Machine): number | undefined {
  const { child, directory } = attempt;
  const underWay = attempt.starting !== undefined || (child && !hasEnded(child));
  if (underWay && !attempt.stop) return undefined;
  if (!forbidStart(directory) && !gaveUpStarting(attempt, machine)) return LEAVING_LOOK_MS;
  attempt.processes = 'none';
  return end(machine, attempt, endOfUnstarted(attempt));
}

/**
 * A shim that could not write its whole line, on a full disk, ends without becoming the command.
 */
function gaveUpStarting(attempt: Attempt, machine: Machine): boolean {
  const now = machine.clock.bootMs();
  attempt.halfWrittenSinceBootMs ??= now;
  return now - attempt.halfWrittenSinceBootMs > HALF_WRITTEN_LIMIT_MS;
}

function endOfUnstarted(attempt: Attempt): End {
  const how = { exitCode: null, signal: null };
  // Without a message: the controller knows why it asked for the stop.
  if (attempt.stop) return { ...how, cause: attempt.stop.cause };
  const message = 'the machine or the agent failed before it could start it';
  return { ...how, cause: 'never-started', message, hostFault: true };
}

function advanceRunning(
  machine: Machine,
  attempt: Attempt,
  processes: Processes,
): number | undefined {
  const { stop } = attempt;
  const { uid, facts, idle } = attempt;
  const state = stop ? 'STOPPING' : 'RUNNING';
  attempt.observation = { uid, state, ...(facts && { facts }), ...(idle && { idle }) };
  const look = attempt.child ? undefined : ADOPTED_LOOK_MS;
  // Over already, only not written down yet: then this end is its own.
  if (!stop || !isSameProcess(processes.task, processes.taskBegan)) return look;
  const leftMs = stop.killAtBootMs - machine.clock.bootMs();
  if (!stop.signalled) {
    stop.signalled = true;
    writeStop(machine, attempt, stop);
    if (leftMs > 0) signalGroup(processes, 'SIGTERM');
  }
  if (leftMs > 0) return Math.min(leftMs, look ?? leftMs);
  signalGroup(processes, 'SIGKILL');
  for (const pid of remaining(machine, attempt, processes)) sendSignal(pid, 'SIGKILL');
  return KILL_AGAIN_MS;
}

/** The task itself is over; what it left behind gets the rest of the grace, or none. */
function advanceOver(
  machine: Machine,
  attempt: Attempt,
  processes: Processes,
  exit: Exit | undefined,
): number | undefined {
  const left = remaining(machine, attempt, processes);
  if (left.length > 0) {
    const { stop } = attempt;
    if (stop?.signalled && machine.clock.bootMs() < stop.killAtBootMs) return GRACE_LOOK_MS;
    if (!killStragglers(machine, attempt, left)) return LEAVING_LOOK_MS;
  }
  const whyLost = 'its processes are gone and left no exit code';
  return conclude(machine, attempt, decide(machine, attempt, exit, whyLost));
}

/** False while they may still go. */
function killStragglers(machine: Machine, attempt: Attempt, left: number[]): boolean {
  const now = machine.clock.bootMs();
  attempt.stragglersSinceBootMs ??= now;
  for (const pid of left) sendSignal(pid, 'SIGKILL');
  if (now - attempt.stragglersSinceBootMs < STRAGGLER_LIMIT_MS) return false;
  machine.log.warn({ attempt: attempt.uid, pids: left }, 'processes cannot be killed');
  return true;
}

/** Held until its time is over or a stop lets it go; whoever looks around in it then goes too. */
function advanceHeld(machine: Machine, attempt: Attempt, held: Held): number | undefined {
  const leftMs = held.untilMs - machine.clock.now();
  const { processes } = attempt;
  const restarted = processes && processes !== 'none' && processes.bootId !== machine.bootId;
  if (leftMs > 0 && !attempt.stop && !restarted) {
    attempt.observation = heldObservation(attempt, held);
    return Math.min(leftMs, HELD_LOOK_MS);
  }
  const left = membersOf(machine, attempt);
  if (left.length > 0 && !killStragglers(machine, attempt, left)) return LEAVING_LOOK_MS;
  return endKept(machine, attempt, held.how, { ...held.kept, held: true });
}

/** Its processes are gone: what it left is kept before its end is told. */
function conclude(machine: Machine, attempt: Attempt, how: End): number | undefined {
  const kept = machine.keep ? machine.keep(attempt, how) : {};
  if (!kept) return undefined;
  attempt.held = hold(machine, attempt, how, kept);
  if (!attempt.held) return endKept(machine, attempt, how, kept);
  attempt.stragglersSinceBootMs = undefined;
  return advanceHeld(machine, attempt, attempt.held);
}

function endKept(machine: Machine, attempt: Attempt, how: End, kept: Kept): number | undefined {
  const message = [how.message, kept.message].filter(Boolean).join('; ');
  return end(machine, attempt, { ...how, ...kept, ...(message !== '' && { message }) });
}

/** Processes of it that run now. */
export function membersOf(machine: Machine, attempt: Attempt): number[] {
  const { processes, order } = attempt;
  if (!processes || processes === 'none') return [];
  const found = remaining(machine, attempt, processes);
  if (!order?.environment?.image) return found;
  // A container's processes may have been started by a daemon, outside the attempt's cgroup.
  return [...new Set([...found, ...findByMarker(attempt.uid, processes)])];
}

function remaining(machine: Machine, attempt: Attempt, processes: Processes): number[] {
  if (machine.cgroups && attempt.cgroups.length > 0) {
    return machine.cgroups.members(attempt.cgroups);
  }
  return findByMarker(attempt.uid, processes);
}

function decide(machine: Machine, attempt: Attempt, exit: Exit | undefined, whyLost: string): End {
  return decideEnd({
    exit,
    stop: attempt.stop,
    expired: existsSync(join(attempt.directory, 'expired')),
    failed: readIfThere(join(attempt.directory, 'failed'))?.trim(),
    oomKills: machine.cgroups?.oomKills(attempt.cgroups) ?? 0,
    peakBytes: machine.cgroups?.peakBytes(attempt.cgroups),
    memoryBytes: attempt.memoryBytes,
    whyLost,
  });
}

/** Writes down how it ended before anybody is told, so that a new agent tells the same. */
export function end(machine: Machine, attempt: Attempt, how: End & Kept): number | undefined {
  const observation: Observation = {
    uid: attempt.uid,
    state: 'ENDED',
    ...how,
    ...(how.message === undefined ? {} : { message: how.message.slice(0, MESSAGE_LENGTH) }),
    stdoutBytes: outputBytes(join(attempt.directory, 'stdout')),
    stderrBytes: outputBytes(join(attempt.directory, 'stderr')),
  };
  attempt.observation = observation;
  const { attemptLeaseMs, graceMs } = attempt;
  const record: EndRecord = { observation, attemptLeaseMs, graceMs };
  try {
    replaceFile(join(attempt.directory, 'ended.json'), JSON.stringify(record));
  } catch (error) {
    // Still told by this agent; a next one works it out again from the other files.
    machine.log.error({ attempt: attempt.uid, error }, 'the end could not be written down');
  }
  removeLease(machine.folder, attempt.uid);
  return releaseCgroups(machine, attempt);
}

/** A group cannot be removed before the last process has left it. */
function releaseCgroups(machine: Machine, attempt: Attempt): number | undefined {
  if (machine.cgroups && !machine.cgroups.remove(attempt.cgroups)) return CGROUP_LOOK_MS;
  attempt.cgroups = [];
  return undefined;
}

export function writeStop(machine: Machine, attempt: Attempt, stop: StopRequest): void {
  try {
    replaceFile(join(attempt.directory, 'stop.json'), JSON.stringify(stop));
  } catch (error) {
    // Stopping goes on; only an agent that starts meanwhile would have to be asked again.
    machine.log.error({ attempt: attempt.uid, error }, 'the stop could not be written down');
  }
}
