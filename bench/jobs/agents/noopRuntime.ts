/**
 * A runtime that runs nothing: an attempt ends at once with code 0, or goes on until it is
 * stopped.
 */
import type { LocalAttempt, Runtime } from '../../../src/agent/runtimes/contract.ts';
import type { Observation } from '../../../src/protocol/agent.ts';

export type Behaviour = 'end' | 'hold';

export function noopRuntime(behaviour: Behaviour): Runtime {
  const attempts = new Map<string, LocalAttempt>();
  let changed: (() => void) | undefined;
  const set = (uid: string, observation: Observation, leaseMs: number, graceMs: number): void => {
    attempts.set(uid, { observation, attemptLeaseMs: leaseMs, graceMs });
    changed?.();
  };
  return {
    list: () => [...attempts.values()],
    start(order) {
      const { uid, attemptLeaseMs, graceMs } = order;
      if (attempts.has(uid)) return;
      const first: Observation =
        behaviour === 'end' ? ended(uid, 'exited', 0) : { uid, state: 'RUNNING' };
      set(uid, first, attemptLeaseMs, graceMs);
    },
    stop({ uid, cause, graceMs }) {
      const known = attempts.get(uid);
      if (known?.observation.state === 'ENDED') return;
      const end = known ? ended(uid, cause, null) : ended(uid, 'never-started', null);
      set(uid, end, known?.attemptLeaseMs ?? 0, graceMs);
    },
    forget: (uid) => void attempts.delete(uid),
    renewLease: () => undefined,
    onChange(listener) {
      changed = listener;
    },
    close: () => Promise.resolve(),
  };
}

function ended(uid: string, cause: Observation['cause'], exitCode: number | null): Observation {
  return { uid, state: 'ENDED', cause, exitCode, stdoutBytes: 0, stderrBytes: 0 };
}
