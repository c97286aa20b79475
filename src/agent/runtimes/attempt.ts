/** An attempt as this agent holds it in memory, and the machine it runs on. */
import type { ChildProcess } from 'node:child_process';
import type { Clock } from '../../lib/clock.ts';
import type { Log } from '../../lib/log.ts';
import type { AttemptOrder, Observation } from '../../protocol/agent.ts';
import type { Kept } from './around.ts';
import type { CgroupHost } from './cgroups.ts';
import type { End } from './ending.ts';
import type { DataFolder, Processes, StopRequest } from './folder.ts';
import type { Held } from './hold.ts';

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
  /** Set once it has failed and is kept for a look. */
  held: Held | undefined;
  facts: Record<string, string> | undefined;
  /** Set while its devices have nothing to do. */
  idle: Observation['idle'];
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
    held: undefined,
    facts: undefined,
    idle: undefined,
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
