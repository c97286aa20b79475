/** The profile stream: where a process of a running attempt spends its time, as folded stacks. */
import { readFileSync, readlinkSync } from 'node:fs';
import { basename, delimiter, dirname, isAbsolute } from 'node:path';
import type { Clock } from '../../../lib/clock.ts';
import { DroverError } from '../../../lib/errors.ts';
import type { Log } from '../../../lib/log.ts';
import {
  parseInside,
  type ProfileResult,
  type ProfileTool,
} from '../../../protocol/tunnel/inside.ts';
import type { StreamHandler } from '../dialer.ts';
import { sampleProcesses, sendDocument } from '../processList.ts';
import { requireRunning, type ExecContext, type FindRunning } from '../running.ts';
import { profileByNode } from './node.ts';
import { profileByPerf } from './perf.ts';
import { profileByPySpy } from './pySpy.ts';

export interface ProfileOrder {
  pid: number;
  seconds: number;
  /** Where tools are looked for: as the process itself does, then as the attempt does. */
  path: string;
  clock: Clock;
  /** The client has left. */
  signal: AbortSignal;
}

/** Each returns folded stacks, or throws what is missing and what to do about it. */
const TOOLS: Record<ProfileTool, (order: ProfileOrder) => Promise<string>> = {
  'py-spy': profileByPySpy,
  node: profileByNode,
  perf: profileByPerf,
};

export function createProfileHandler(options: {
  execContext: FindRunning;
  clock: Clock;
  log: Log;
}): StreamHandler {
  return async (stream) => {
    const { attemptUid } = stream.header;
    const context = requireRunning(options.execContext, attemptUid);
    const request = parseInside(stream.header);
    if (request.kind !== 'profile') throw new DroverError('INVALID_ARGUMENT', 'not a profile');
    const { pid, command } = await chooseProcess(context, request.pid, options.clock);
    const tool = request.tool ?? toolFor(pid);
    const left = new AbortController();
    void stream.closed.then(() => left.abort());
    options.log.info({ attemptUid, pid, tool, seconds: request.seconds }, 'profile started');
    const folded = await TOOLS[tool]({
      pid,
      seconds: request.seconds,
      path: searchPath(pid, context),
      clock: options.clock,
      signal: left.signal,
    });
    if (folded.trim() === '') {
      throw new DroverError('UNAVAILABLE', `process ${pid} did nothing in ${request.seconds} s`);
    }
    await sendDocument(stream, { pid, command, tool, folded } satisfies ProfileResult);
  };
}

/** The busiest, unless one is named; never one of somebody else. */
async function chooseProcess(
  context: ExecContext,
  wanted: number | undefined,
  clock: Clock,
): Promise<{ pid: number; command: string }> {
  const members = context.members();
  if (wanted !== undefined && !members.includes(wanted)) {
    throw new DroverError('NOT_FOUND', `process ${wanted} is none of this task (see drover ps)`);
  }
  const processes = await sampleProcesses(wanted === undefined ? members : [wanted], clock);
  const [busiest] = processes.toSorted(
    (a, b) => b.cpuPercent - a.cpuPercent || b.cpuMs - a.cpuMs || b.rssBytes - a.rssBytes,
  );
  if (busiest === undefined) throw new DroverError('NOT_FOUND', 'the task has no process now');
  return busiest;
}

function toolFor(pid: number): ProfileTool {
  let program: string;
  try {
    program = basename(readlinkSync(`/proc/${pid}/exe`));
  } catch (cause) {
    throw new DroverError('NOT_FOUND', `process ${pid} has ended`, { cause });
  }
  if (program.startsWith('python')) return 'py-spy';
  return program === 'node' ? 'node' : 'perf';
}

function searchPath(pid: number, { env }: ExecContext): string {
  const read = (file: string): string[] => {
    try {
      return readFileSync(`/proc/${pid}/${file}`, 'utf8').split('\0');
    } catch {
      // It has ended, which the tool will say.
      return [];
    }
  };
  const own = read('environ').find((entry) => entry.startsWith('PATH='));
  const program = read('cmdline')[0] ?? '';
  const folders = [
    // An interpreter of an environment that was not activated has its tools beside it.
    isAbsolute(program) ? dirname(program) : '',
    own?.slice('PATH='.length) ?? '',
    env['PATH'] ?? '',
    process.env['PATH'] ?? '',
  ];
  return folders.filter((folder) => folder !== '').join(delimiter);
}
