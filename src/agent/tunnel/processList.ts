/** The ps stream: the processes of a running attempt, as /proc shows them. */
import { readFileSync } from 'node:fs';
import { sleep, type Clock } from '../../lib/clock.ts';
import type { ProcessList } from '../../protocol/tunnel/inside.ts';
import type { TunnelStream } from '../../protocol/tunnel/stream.ts';
import type { StreamHandler } from './dialer.ts';
import { requireRunning, type FindRunning } from './running.ts';

/** How long CPU time is counted to say who is busy. */
const SAMPLE_MS = 250;
/** Linux counts CPU time in hundredths of a second on every machine we meet (USER_HZ). */
const TICK_MS = 10;
const PAGE_BYTES = 4096;
/** A list is for a person; a command line may have two megabytes. */
const COMMAND_CHARACTERS = 4096;

type ProcessView = ProcessList['processes'][number];

export function createProcessListHandler(options: {
  execContext: FindRunning;
  clock: Clock;
}): StreamHandler {
  return async (stream) => {
    const context = requireRunning(options.execContext, stream.header.attemptUid);
    const processes = await sampleProcesses(context.members(), options.clock);
    await sendDocument(stream, { processes } satisfies ProcessList);
  };
}

export async function sendDocument(stream: TunnelStream, document: object): Promise<void> {
  await stream.write(Buffer.from(JSON.stringify(document)));
  stream.end();
  await stream.closed;
}

/** The busiest first. */
export async function sampleProcesses(pids: number[], clock: Clock): Promise<ProcessView[]> {
  const before = new Map(pids.map((pid) => [pid, readProcess(pid, clock)]));
  const begunAt = clock.bootMs();
  await sleep(clock, SAMPLE_MS);
  const tookMs = Math.max(1, clock.bootMs() - begunAt);
  const views: ProcessView[] = [];
  for (const [pid, earlier] of before) {
    const now = readProcess(pid, clock);
    // Gone meanwhile, or a number that was given again.
    if (now === undefined || earlier === undefined || now.cpuMs < earlier.cpuMs) continue;
    const busy = ((now.cpuMs - earlier.cpuMs) / tookMs) * 100;
    views.push({ ...now, cpuPercent: Math.round(busy * 10) / 10 });
  }
  return views.toSorted((a, b) => b.cpuPercent - a.cpuPercent || a.pid - b.pid);
}

function readProcess(pid: number, clock: Clock): ProcessView | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const nameEnd = text.lastIndexOf(')');
    const fields = text.slice(nameEnd + 2).split(' ');
    const number = (at: number): number => Number(fields[at]);
    const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
    return {
      pid,
      // See proc(5): the third field of the file is the first here.
      state: fields[0] ?? '?',
      parent: number(1),
      cpuPercent: 0,
      cpuMs: (number(11) + number(12)) * TICK_MS,
      threads: number(17),
      elapsedMs: Math.max(0, clock.bootMs() - number(19) * TICK_MS),
      rssBytes: number(21) * PAGE_BYTES,
      // A kernel's or a dying process has no command line.
      command: (command || `[${text.slice(text.indexOf('(') + 1, nameEnd)}]`).slice(
        0,
        COMMAND_CHARACTERS,
      ),
    };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ESRCH') return undefined;
    throw error;
  }
}
