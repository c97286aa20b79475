/** Tells when a file has changed, by looking at it now and then: also over links and renames. */
import { readFile, stat } from 'node:fs/promises';
import type { Clock, Timer } from './clock.ts';

export interface WatchOptions {
  path: string;
  clock: Clock;
  periodMs: number;
  /** With the whole text, each time that the file is another than before. */
  onChange: (text: string) => void;
  /** It cannot be read; told once until that is different. */
  onUnreadable: (error: Error) => void;
}

export interface Watch {
  close(): void;
}

/** What it is like when this is called counts as known. */
export function watchFile(options: WatchOptions, known: string): Watch {
  const { path, clock, periodMs } = options;
  let seen = known;
  let told = '';
  let stamp = '';
  let isClosed = false;
  let timer: Timer;
  const look = async (): Promise<void> => {
    const found = await stampOf(path);
    if (found === stamp) return;
    // Taken before it is read: what is written meanwhile changes it once more.
    const text = await readFile(path, 'utf8');
    stamp = found;
    told = '';
    if (isClosed || text === seen) return;
    seen = text;
    options.onChange(text);
  };
  const turn = async (): Promise<void> => {
    try {
      await look();
    } catch (error) {
      const { message } = error as Error;
      stamp = '';
      if (message !== told && !isClosed) options.onUnreadable(error as Error);
      told = message;
    }
    if (!isClosed) wait();
  };
  const wait = (): void => {
    timer = clock.setTimer(periodMs, () => void turn());
  };
  wait();
  return {
    close() {
      isClosed = true;
      timer.cancel();
    },
  };
}

/** A file written within the clock's own step has another size or number, mostly both. */
async function stampOf(path: string): Promise<string> {
  const { mtimeNs, ctimeNs, size, ino } = await stat(path, { bigint: true });
  return `${mtimeNs} ${ctimeNs} ${size} ${ino}`;
}
