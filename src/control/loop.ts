/**
 * The one driver of all loops. A step takes no input and is idempotent; it runs on a period and on
 * a hint, one at a time. A step that throws is logged and counted, and runs again at the next
 * period.
 */
import type { Clock, Timer } from '../lib/clock.ts';
import type { Log } from '../lib/log.ts';
import type { LoopHealth } from '../protocol/coordinator.ts';

export interface Loop {
  /** Something happened that the loop may want to see soon. */
  hint(): void;
  /** Resolves when what was hinted at before has been seen. */
  settled(): Promise<void>;
  health(): LoopHealth;
  steps(): number;
  /** Resolves when a step in progress is over; none starts after. */
  close(): Promise<void>;
}

export interface LoopOptions {
  name: string;
  periodMs: number;
  clock: Clock;
  log: Log;
  step: () => Promise<void>;
}

/**
 * A loop that has not finished a step for this many periods (and at least a while) is unhealthy.
 */
const LATE_PERIODS = 5;
const LATE_AT_LEAST_MS = 10_000;

export function startLoop(options: LoopOptions): Loop {
  const { name, periodMs, clock, log, step } = options;
  const health: LoopHealth = {
    name,
    periodMs,
    lastStartedAtMs: null,
    lastFinishedAtMs: null,
    failures: 0,
    lastError: null,
    healthy: true,
  };
  let timer: Timer | null = null;
  let running: Promise<void> | null = null;
  let again = false;
  let closed = false;
  let steps = 0;
  let finishedAtBootMs = clock.bootMs();

  const run = async (): Promise<void> => {
    again = false;
    timer?.cancel();
    health.lastStartedAtMs = clock.now();
    try {
      await step();
      health.lastError = null;
    } catch (error) {
      health.failures++;
      health.lastError = error instanceof Error ? error.message : String(error);
      log.error({ loop: name, err: error }, 'a loop step failed');
    }
    steps++;
    health.lastFinishedAtMs = clock.now();
    finishedAtBootMs = clock.bootMs();
    running = null;
    if (closed) return;
    if (again && health.lastError === null) start();
    else timer = clock.setTimer(periodMs, start);
  };

  const start = (): void => {
    if (closed || running) return;
    // Not before what hinted is done: a commit it asked for goes first.
    running = new Promise<void>((resolve) => clock.soon(resolve)).then(run);
  };

  timer = clock.setTimer(periodMs, start);
  return {
    hint() {
      again = true;
      if (!running) start();
    },
    async settled() {
      // A step in progress may have begun before the hint; the next one has not.
      await running;
      await running;
    },
    health() {
      const lateMs = Math.max(LATE_AT_LEAST_MS, LATE_PERIODS * periodMs);
      const late = clock.bootMs() - finishedAtBootMs > lateMs;
      return { ...health, healthy: !late && health.lastError === null };
    },
    steps: () => steps,
    async close() {
      closed = true;
      timer?.cancel();
      await running;
    },
  };
}
