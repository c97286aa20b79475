/**
 * A failed attempt that is held for a look: its directory and its place on the worker stay, and its
 * end is told when the time is over or somebody lets it go.
 */
import { join } from 'node:path';
import type { Observation } from '../../protocol/agent.ts';
import type { Attempt, Machine } from './attempt.ts';
import type { Kept } from './around.ts';
import type { End } from './ending.ts';
import { replaceFile } from './folder.ts';

export interface Held {
  /** Wall time: it goes on across a restart of the agent. */
  untilMs: number;
  how: End;
  kept: Kept;
}

/** Written down before anybody is told. Undefined: it is not to be held. */
export function hold(machine: Machine, attempt: Attempt, how: End, kept: Kept): Held | undefined {
  const forMs = attempt.order?.keepOnFailureMs ?? 0;
  if (forMs === 0 || attempt.stop || !hasFailed(how, kept)) return undefined;
  const held = { untilMs: machine.clock.now() + forMs, how, kept };
  try {
    replaceFile(join(attempt.directory, 'held.json'), JSON.stringify(held));
    return held;
  } catch (error) {
    machine.log.error({ attempt: attempt.uid, error }, 'a failed attempt cannot be held');
    return undefined;
  }
}

function hasFailed({ cause, exitCode }: End, { unstored }: Kept): boolean {
  if (cause === 'exited') return exitCode !== 0 || unstored === true;
  return cause === 'signalled' || cause === 'oom';
}

export function heldObservation({ uid, facts, order }: Attempt, held: Held): Observation {
  const until = new Date(held.untilMs).toISOString().slice(11, 16);
  const letGo = `drover cancel ${order?.job ?? ''} lets go`;
  const progress = `${describe(held)}; kept until ${until} UTC (${letGo})`;
  return { uid, state: 'RUNNING', progress, ...(facts && { facts }) };
}

function describe({ how: { cause, exitCode, signal }, kept }: Held): string {
  if (cause === 'oom') return 'failed: out of memory';
  if (cause === 'signalled') return `killed by ${signal ?? 'a signal'}`;
  return kept.unstored ? 'its result could not be kept' : `failed with exit code ${exitCode}`;
}
