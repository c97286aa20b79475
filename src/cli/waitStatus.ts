/** While nothing is printed yet: one line on the terminal that says why the job waits. */
import { setTimeout as delay } from 'node:timers/promises';
import type { DroverClient } from '../protocol/client.ts';
import { shortDuration } from './durations.ts';
import { colours, type CliIo } from './io.ts';
import { printable } from './table.ts';

export interface WaitStatus {
  /** Takes the line away for good; called before the first output. */
  clear(): Promise<void>;
}

const FIRST_LOOK_MS = 1000;
const LOOK_EVERY_MS = 2000;
const ERASE_LINE = '\r\x1b[2K';

export function showWaitStatus(io: CliIo, client: DroverClient, id: string): WaitStatus {
  if (!io.stderr.isTTY) return { async clear() {} };
  const stop = new AbortController();
  const shown = show(io, client, id, stop.signal);
  let cleared = false;
  return {
    async clear() {
      if (cleared) return;
      cleared = true;
      stop.abort();
      if (await shown) await io.stderr.write(ERASE_LINE);
    },
  };
}

/** Resolves to whether a line stands there. */
async function show(
  io: CliIo,
  client: DroverClient,
  id: string,
  stop: AbortSignal,
): Promise<boolean> {
  const startedAtMs = io.now();
  let drawn = false;
  for (let pauseMs = FIRST_LOOK_MS; await pause(pauseMs, stop); pauseMs = LOOK_EVERY_MS) {
    const line = await waitingLine(client, id);
    if (stop.aborted || line === undefined) break;
    const room = (io.stderr.columns || 80) - 1;
    const text = `${line} (${shortDuration(io.now() - startedAtMs)})`.slice(0, room);
    await io.stderr.write(ERASE_LINE + colours(io, io.stderr).dim(text));
    drawn = true;
  }
  return drawn;
}

/** Undefined once the job does not wait any more. */
async function waitingLine(client: DroverClient, id: string): Promise<string | undefined> {
  try {
    const job = await client.getJob(id);
    if (job.state !== 'PENDING') return undefined;
    return printable(`job ${id} waits: ${job.reason || 'not looked at yet'}`);
  } catch (error) {
    // The log stream decides whether the server is gone for good; here it is only shown.
    return printable(`job ${id}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

async function pause(pauseMs: number, stop: AbortSignal): Promise<boolean> {
  try {
    await delay(pauseMs, undefined, { signal: stop });
    return true;
  } catch (error) {
    if (stop.aborted) return false;
    throw error;
  }
}
