/** One sleeper that others can wake: a wake-up while nobody sleeps is kept for the next sleep. */
import type { Clock } from '../../lib/clock.ts';

export interface WakeUp {
  /** Returns after `delayMs`, or as soon as somebody called `wake` since the last sleep. */
  sleep(delayMs: number): Promise<void>;
  wake(): void;
}

export function createWakeUp(clock: Clock): WakeUp {
  let woken = false;
  let end: (() => void) | undefined;
  return {
    async sleep(delayMs) {
      if (!woken) {
        await new Promise<void>((resolve) => {
          const timer = clock.setTimer(delayMs, resolve);
          end = () => {
            timer.cancel();
            resolve();
          };
        });
      }
      end = undefined;
      woken = false;
    },
    wake() {
      woken = true;
      end?.();
    },
  };
}
