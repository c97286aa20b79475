/** Time, passed in: production reads the machine's clocks, the simulator owns its own. */
import { readFileSync } from 'node:fs';

export interface Timer {
  cancel(): void;
}

export interface Clock {
  /**
   * Wall time in ms since 1970. May step; never used to decide whether a lease ran out on an agent.
   */
  now(): number;
  /** Ms since boot, suspend included. Never steps, so leases are counted on it. */
  bootMs(): number;
  setTimer(delayMs: number, run: () => void): Timer;
  /** After the input that is already waiting was handled: what batches are made of. */
  soon(run: () => void): void;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  bootMs: () => bootMs(),
  setTimer(delayMs, run) {
    const timer = setTimeout(run, delayMs);
    return { cancel: () => clearTimeout(timer) };
  },
  soon: (run) => void setImmediate(run),
};

export function sleep(clock: Clock, delayMs: number): Promise<void> {
  return new Promise((resolve) => clock.setTimer(delayMs, resolve));
}

/** /proc/uptime counts suspend, process.hrtime does not. Elsewhere the monotonic clock must do. */
function bootMs(): number {
  try {
    return Math.round(Number.parseFloat(readFileSync('/proc/uptime', 'latin1')) * 1000);
  } catch {
    return Math.round(performance.now() + performance.timeOrigin);
  }
}
