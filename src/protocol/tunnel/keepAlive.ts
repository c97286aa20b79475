/**
 * Pings a peer and tells when it has been silent for too long, so that no one waits on a dead
 * machine.
 */
import type { Clock, Timer } from '../../lib/clock.ts';

export interface KeepAlive {
  /** Something came from the peer. */
  heard(): void;
  stop(): void;
}

/**
 * Counts pings instead of time, so that a paused process first pings again before it calls anyone
 * dead.
 */
export function keepAlive(options: {
  clock: Clock;
  intervalMs: number;
  silentPings: number;
  ping(): void;
  dead(): void;
}): KeepAlive {
  let silent = 0;
  let timer: Timer = options.clock.setTimer(options.intervalMs, tick);
  function tick(): void {
    if (silent >= options.silentPings) {
      options.dead();
      return;
    }
    silent++;
    timer = options.clock.setTimer(options.intervalMs, tick);
    options.ping();
  }
  return {
    heard() {
      silent = 0;
    },
    stop: () => timer.cancel(),
  };
}
