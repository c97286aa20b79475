/**
 * Ends a role: on a signal, or when the process that started it is gone. Parts close in reverse.
 */

export interface Shutdown {
  /** Closes `part` when the role ends, before everything added earlier. */
  add(close: () => Promise<unknown>): void;
  /** Resolves with the exit code when everything is closed. */
  ended: Promise<number>;
  end(code: number): void;
}

/** A close that takes longer than this will not end; what it leaves is found at the next start. */
const CLOSE_LIMIT_MS = 20_000;

export function shutdownOnSignals(
  signals: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM'],
): Shutdown {
  const parts: (() => Promise<unknown>)[] = [];
  const { promise, resolve } = Promise.withResolvers<number>();
  let ending = false;
  const end = (code: number): void => {
    if (ending) return;
    ending = true;
    const limit = setTimeout(() => process.exit(code || 1), CLOSE_LIMIT_MS);
    void closeAll(parts).then((failed) => {
      clearTimeout(limit);
      resolve(failed ? 1 : code);
    });
  };
  for (const signal of signals) process.once(signal, () => end(0));
  // Started by `drover up`: without it nobody would stop this process.
  process.once('disconnect', () => end(0));
  return { add: (close) => void parts.push(close), ended: promise, end };
}

async function closeAll(parts: (() => Promise<unknown>)[]): Promise<boolean> {
  let failed = false;
  for (const close of parts.toReversed()) {
    try {
      await close();
    } catch (error) {
      failed = true;
      process.stderr.write(`error while stopping: ${String(error)}\n`);
    }
  }
  return failed;
}

/** Tells the parent that this role is up. */
export function tellReady(message: object): void {
  process.send?.({ ready: true, ...message });
}
