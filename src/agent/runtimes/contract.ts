/**
 * A runtime starts and stops attempts on this machine and remembers them across restarts of the
 * agent. Verbs are idempotent and return at once; what became of them is seen by `list`.
 */
import type { AttemptOrder, Observation, StopOrder } from '../../protocol/agent.ts';

export interface LocalAttempt {
  observation: Observation;
  attemptLeaseMs: number;
  graceMs: number;
}

export interface Runtime {
  /**
   * Every attempt on the machine that was not forgotten, also those of an earlier agent process.
   */
  list(): LocalAttempt[];
  /**
   * Starts it once, ever: a uid that is or was here is left alone. Its lease is there before its
   * process is, and ends at `killAtBootMs`, because the agent may die before it can renew one; a
   * whole lease from now when none is given.
   */
  start(order: AttemptOrder, killAtBootMs?: number): void;
  /** TERM to the group, KILL after the grace. An unknown uid becomes an ENDED never-started one. */
  stop(order: StopOrder): void;
  /**
   * Called when the end was acknowledged: removes it and its files (a spool may delay the files).
   */
  forget(uid: string): void;
  /**
   * Contact was made: attempts may run until this boot time each. Also written where the watchdog
   * of the machine reads it, which kills what outlives it even if the agent is gone or stopped.
   */
  renewLease(deadlines: { uid: string; killAtBootMs: number }[]): void;
  /** Called whenever `list` would show something new. */
  onChange(changed: () => void): void;
  close(): Promise<void>;
}
