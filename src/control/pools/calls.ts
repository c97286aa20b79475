/** Calls of providers: bounded in time, and what throws is not known rather than none. */
import type { Clock } from '../../lib/clock.ts';

/** No call of a provider is waited for longer. */
const CALL_TIMEOUT_MS = 60_000;

export async function withinTime<Result>(
  clock: Clock,
  call: () => Promise<Result>,
  unknown: (reason: string) => Result,
): Promise<Result> {
  return new Promise((resolve) => {
    const timer = clock.setTimer(CALL_TIMEOUT_MS, () => {
      resolve(unknown(`no answer within ${CALL_TIMEOUT_MS / 1000} s`));
    });
    const settle = (result: Result): void => {
      timer.cancel();
      resolve(result);
    };
    Promise.resolve()
      .then(call)
      .then(settle, (error: unknown) => settle(unknown(wordsOf(error))));
  });
}

function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
