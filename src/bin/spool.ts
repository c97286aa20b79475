/** Starts an agent's spool thread and tells it whose output there is. */
import type { SpoolSource } from '../agent/spool.ts';
import type { SpoolCalls, SpoolThreadOptions } from './threads/spool.ts';
import { startThread } from './threads/start.ts';

export interface SpoolThread {
  /** The source has attempts it had not, or some ended. */
  changed(): void;
  whenDrained(uid: string): Promise<void>;
  close(): Promise<void>;
}

export function startSpool(
  source: SpoolSource,
  options: SpoolThreadOptions,
  onDeath: (name: string, error: unknown) => void,
): SpoolThread {
  const thread = startThread<SpoolCalls, SpoolThreadOptions>(
    'spool',
    options,
    ['follow', 'whenDrained', 'close'],
    onDeath,
  );
  let isStale = false;
  let isClosed = false;
  let telling: Promise<void> | null = null;

  /** One list at a time; what changes meanwhile is in the next. */
  const tell = async (): Promise<void> => {
    while (isStale) {
      isStale = false;
      await thread.calls.follow(source.list());
    }
  };
  const changed = (): void => {
    if (isClosed) return;
    isStale = true;
    telling ??= Promise.resolve()
      .then(tell)
      .finally(() => {
        telling = null;
      });
  };
  changed();
  return {
    changed,
    whenDrained(uid) {
      changed();
      return thread.calls.whenDrained(uid).finally(changed);
    },
    async close() {
      isClosed = true;
      await telling;
      await thread.calls.close();
      await thread.end();
    },
  };
}
