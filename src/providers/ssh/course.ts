/** What becomes of an instance on a host, decided from one look at it. */
import type { FailureClass } from '../../model/instance.ts';
import { CANNOT_FETCH } from './hostScript.ts';
import type { InstanceReport } from './report.ts';

/** The wait before the first restart; each further one in a row doubles it. */
const RESTART_MS = 1000;
const RESTART_MAX_MS = 60_000;
/** The line by which host.sh begins each run in the log. */
const BEGINNING = 'drover: start ';
/** Enough to say what went wrong. */
const TOLD_LINES = 3;
const TOLD_LENGTH = 500;

export type Course =
  | { kind: 'running' }
  | { kind: 'ending' }
  /** `upload`: it could not fetch the agent, which is sent to it first. */
  | { kind: 'restart'; waitMs: number; upload: boolean; reason: string }
  | { kind: 'over'; failure: FailureClass; reason: string };

export function courseOf(instance: InstanceReport, clockS: number, restarts: number): Course {
  const { state, exit, starts, rebooted, log } = instance;
  if (state === 'running') return { kind: 'running' };
  if (state === 'stopping') return { kind: 'ending' };
  if (state === 'cut') {
    return { kind: 'over', failure: 'INFRA_FATAL', reason: 'its launch was cut off' };
  }
  if (rebooted) {
    const reason = 'the machine was started anew: starting its agent again';
    return { kind: 'restart', waitMs: 0, upload: false, reason };
  }
  const how = exit ? `the agent ended with code ${exit.code}` : 'the agent was killed';
  const words = `${how}${lastWords(log)}`;
  if (starts.inRow > restarts) {
    const times = `${starts.inRow} times in a row, and is not started again`;
    return { kind: 'over', failure: 'INFRA_FATAL', reason: `${words}. It did so ${times}` };
  }
  const pauseMs = Math.min(RESTART_MAX_MS, RESTART_MS * 2 ** Math.max(0, starts.inRow - 1));
  const sinceMs = (clockS - (exit?.atS ?? starts.lastS)) * 1000;
  const waitMs = Math.min(pauseMs, Math.max(0, pauseMs - sinceMs));
  const reason = `${words}. Starting it again (${starts.inRow} of ${restarts})`;
  return { kind: 'restart', waitMs, upload: exit?.code === CANNOT_FETCH, reason };
}

/** `: ` and the end of its log; a line of JSON by its message. */
export function lastWords(log: string): string {
  const lines = log.split('\n').filter((line) => line.trim() !== '');
  const began = lines.findLastIndex((line) => line.startsWith(BEGINNING));
  const told = lines
    .slice(began + 1)
    .slice(-TOLD_LINES)
    .map((line) => message(line.trim()));
  return told.length === 0 ? '' : `: ${told.join(' | ').slice(0, TOLD_LENGTH)}`;
}

function message(line: string): string {
  if (!line.startsWith('{')) return line;
  try {
    const { msg, err } = JSON.parse(line) as { msg?: string; err?: { message?: string } };
    return [msg, err?.message].filter(Boolean).join(': ') || line;
  } catch {
    // Cut in the middle by the limit of what is read.
    return line;
  }
}
