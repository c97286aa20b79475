/**
 * One step of an attempt: look at its files and processes, do what is due, say when to look again.
 * Start, stop, end, adoption by a new agent and repair after a crash are all this one step, which
 * may be repeated at any time.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { ChildProcess } from 'node:child_process';
import type { Clock } from '../../lib/clock.ts';
import type { Log } from '../../lib/log.ts';
import type { AttemptOrder, Observation } from '../../protocol/agent.ts';
import type { Kept } from './around.ts';
import type { CgroupHost } from './cgroups.ts';
import { decideEnd, type End } from './ending.ts';
import {
  forbidStart,
  outputBytes,
  readExit,
  readIfThere,
  readProcesses,
  removeLease,
  replaceFile,
  type DataFolder,
  type EndRecord,
  type Exit,
  type Processes,
  type StopRequest,
} from './folder.ts';
import { findByMarker, isSameProcess, sendSignal, signalGroup } from './processes.ts';
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
/**
 * Killed stragglers that are still there after this long hang in the kernel; the end is reported.
 */
const STRAGGLER_LIMIT_MS = 5000;
/** The protocol takes 4096; a command's name can be longer. */
const MESSAGE_LENGTH = 1000;
/** A shim writes who it is in one go; what is still half written after this long stays so. */
const HALF_WRITTEN_LIMIT_MS = 1000;

export interface Attempt {
  uid: string;
  directory: string;
  observation: Observation;
  attemptLeaseMs: number;
  graceMs: number;
  memoryBytes: number;
  cgroups: string[];
  /** Set while it is prepared, or a gang's member waits for the others: nothing runs yet. */
  starting: AbortController | undefined;
  /** Set while what it left is being kept: nothing runs any more. */
  finishing: AbortController | undefined;
  facts: Record<string, string> | undefined;
  order: AttemptOrder | undefined;
  /** Set when this process started the shim. */
  child: ChildProcess | undefined;
  processes: Processes | 'none' | undefined;
  stop: StopRequest | undefined;
  stragglersSinceBootMs: number | undefined;
  halfWrittenSinceBootMs: number | undefined;
  writtenLeaseBootMs: number;
}

export function newAttempt(
  uid: string,
  directory: string,
  order: AttemptOrder | undefined,
): Attempt {
  return {
    uid,
    directory,
    observation: { uid, state: 'STARTING' },
    attemptLeaseMs: order?.attemptLeaseMs ?? 0,
    graceMs: order?.graceMs ?? 0,
    memoryBytes: order?.memoryBytes ?? 0,
    cgroups: [],
    starting: undefined,
    finishing: undefined,
    facts: undefined,
    order,
    child: undefined,
    processes: undefined,
    stop: undefined,
    stragglersSinceBootMs: undefined,
    halfWrittenSinceBootMs: undefined,
    writtenLeaseBootMs: 0,
  };
}

export interface Machine {
  folder: DataFolder;
  bootId: string;
  clock: Clock;
  cgroups: CgroupHost | undefined;
  log: Log;
  /** Keeps what an attempt left; undefined while that goes on. Absent: nothing is kept. */
  keep?: (attempt: Attempt, how: End) => Kept | undefined;
}

/** In how many ms to look again; undefined when an event will tell. */
export function advance(machine: Machine, attempt: Attempt): number | undefined {
  if (attempt.observation.state === 'ENDED') return releaseCgroups(machine, attempt);
  attempt.processes ??= readProcesses(attempt.directory);
  const { processes, directory } = attempt;
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
  const { uid, facts } = attempt;
  attempt.observation = { uid, state: stop ? 'STOPPING' : 'RUNNING', ...(facts && { facts }) };
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
  const now = machine.clock.bootMs();
  if (left.length > 0) {
    if (attempt.stop?.signalled && now < attempt.stop.killAtBootMs) return GRACE_LOOK_MS;
    attempt.stragglersSinceBootMs ??= now;
    for (const pid of left) sendSignal(pid, 'SIGKILL');
    if (now - attempt.stragglersSinceBootMs < STRAGGLER_LIMIT_MS) return LEAVING_LOOK_MS;
    machine.log.warn({ attempt: attempt.uid, pids: left }, 'processes cannot be killed');
  }
  const whyLost = 'its processes are gone and left no exit code';
  return conclude(machine, attempt, decide(machine, attempt, exit, whyLost));
}

/** Its processes are gone: what it left is kept before its end is told. */
function conclude(machine: Machine, attempt: Attempt, how: End): number | undefined {
  const kept = machine.keep ? machine.keep(attempt, how) : {};
  if (!kept) return undefined;
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
