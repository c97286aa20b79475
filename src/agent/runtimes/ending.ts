/** How an attempt ended, decided from what its files and its cgroup say. */
import { constants } from 'node:os';
import type { Observation } from '../../protocol/agent.ts';
import type { Exit, StopRequest } from './folder.ts';

export interface EndEvidence {
  exit: Exit | undefined;
  stop: StopRequest | undefined;
  /** The watchdog killed it because its lease ran out. */
  expired: boolean;
  /** Why it never became the command, in the shim's words. */
  failed: string | undefined;
  /** Also of children: the command may have outlived them. */
  oomKills: number;
  /** Its limit; 0 means none. */
  memoryBytes: number;
  peakBytes: number | undefined;
  /** Why there is no exit file, for a person. */
  whyLost: string;
}

export type End = Pick<Observation, 'cause' | 'exitCode' | 'signal' | 'message' | 'hostFault'>;

export function decideEnd(evidence: EndEvidence): End {
  const { exit, stop } = evidence;
  if (evidence.failed !== undefined) {
    return { cause: 'never-started', exitCode: null, message: evidence.failed, hostFault: true };
  }
  const how = describeExit(exit);
  if (stop?.signalled) return { ...how, cause: stop.cause };
  if (evidence.expired) {
    return { ...how, cause: 'lost', message: 'killed: no contact before its lease ran out' };
  }
  if (!exit) return { ...how, cause: 'lost', message: evidence.whyLost };
  if (evidence.oomKills > 0 && exit.code !== 0) {
    return { ...how, cause: 'oom', message: describeOom(evidence) };
  }
  if (how.signal === 'SIGKILL') {
    const message = `Drover did not send it${describePeak(evidence.peakBytes)}`;
    return { ...how, cause: 'signalled', message };
  }
  return { ...how, cause: how.signal === null ? 'exited' : 'signalled' };
}

const MIB = 2 ** 20;
/** The kernel gives up a little below the limit: the last charge is what did not fit. */
const CLOSE_TO_LIMIT = 0.95;
const LARGEST_CHARGE_BYTES = 4 * MIB;

/** Reads on from `out of memory: `. */
function describeOom({ memoryBytes: limit, peakBytes: peak }: EndEvidence): string {
  const used = describePeak(peak);
  if (limit === 0) return `the machine had no more${used}`;
  const atLimit = Math.min(limit * CLOSE_TO_LIMIT, limit - LARGEST_CHARGE_BYTES);
  if (peak === undefined || peak >= atLimit) {
    return `the limit of ${mebibytes(limit)} was reached${used}`;
  }
  // A limit around the agent (its container, its service), or all of the machine's.
  return `the machine had no more${used} of its ${mebibytes(limit)}`;
}

function describePeak(bytes: number | undefined): string {
  return bytes === undefined ? '' : `; it used up to ${mebibytes(bytes)}`;
}

function mebibytes(bytes: number): string {
  return `${Math.ceil(bytes / MIB)} MiB`;
}

/**
 * A shell gives 128 + n both for signal n and for an exit with that code; only what it printed
 * tells them apart. About INT and PIPE it prints nothing, and the custom of 130 and 141 decides.
 */
function describeExit(exit: Exit | undefined): { exitCode: number | null; signal: string | null } {
  if (!exit) return { exitCode: null, signal: null };
  const silent = exit.code === 128 + constants.signals.SIGINT || exit.code === 128 + SIGPIPE;
  const signal = exit.killed || silent ? signalName(exit.code - 128) : undefined;
  if (signal === undefined) return { exitCode: exit.code, signal: null };
  return { exitCode: null, signal };
}

const SIGPIPE = constants.signals.SIGPIPE;

function signalName(number: number): string | undefined {
  if (number <= 0) return undefined;
  const known = Object.entries(constants.signals).find(([, value]) => value === number);
  return known?.[0] ?? `SIG${number}`;
}
