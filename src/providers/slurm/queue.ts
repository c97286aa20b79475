/**
 * What squeue prints, read. Text and not JSON, whose shape changes with Slurm's version; with the
 * heading, which proves that it was squeue that spoke. A job that cannot be read is not a job that
 * is not there: then nothing is known.
 */
import { expandHostlist } from './hostlist.ts';

/** Printed between two columns; no name of a job has it. */
const BETWEEN = '\u001F';
const COLUMNS = ['%i', '%T', '%r', '%N', '%S', '%L', '%u', '%D', '%b', '%P', '%j'];
export const QUEUE_FORMAT = COLUMNS.join(BETWEEN);
/** Older ways to print columns know neither how often a job was restarted nor how it ended. */
export const DETAIL_FORMAT = 'JobArrayID:64,RestartCnt:16,exit_code:16';

export interface QueuedJob {
  /** `4711`, or of a member of an array `4711_3`. */
  id: string;
  /** Its place in the array; null: it is in none. */
  place: number | null;
  name: string;
  user: string;
  state: string;
  reason: string;
  /** As Slurm writes them: `n[1-2]`. */
  nodes: string;
  /** One node's name; empty where there are several or none. */
  host: string;
  /** When it started, or is expected to. */
  startsAtMs: number | null;
  leftMs: number | null;
  nodeCount: string;
  devices: string;
  partition: string;
}

export type Queue = { jobs: QueuedJob[] } | { problem: string };

/** `isOurs`: a line with such a name that cannot be read makes all of it unknown. */
export function readQueue(stdout: string, ours: string): Queue {
  const lines = stdout.split('\n');
  const heading = lines.findIndex((line) => line.trimStart().startsWith(`JOBID${BETWEEN}`));
  if (heading < 0) return { problem: `squeue printed no list${sample(stdout)}` };
  const jobs: QueuedJob[] = [];
  for (const line of lines.slice(heading + 1)) {
    const job = readJob(line);
    if (job) jobs.push(job);
    else if (line.includes(ours)) return { problem: `squeue printed a cut line${sample(line)}` };
  }
  return { jobs };
}

function readJob(line: string): QueuedJob | undefined {
  const parts = line.split(BETWEEN).map((part) => part.trim());
  if (parts.length < COLUMNS.length) return undefined;
  const [id = '', state = '', reason = '', nodes = '', start = '', left = '', user = ''] = parts;
  const [nodeCount = '', devices = '', partition = ''] = parts.slice(7);
  // Whole arrays that have not been spread show a range for their place; -r spreads them.
  const match = /^(\d+)(?:_(\d+))?(?:\+\d+)?$/.exec(id);
  if (!match || !/^[A-Z_]+$/.test(state)) return undefined;
  return {
    ...{ id, state, reason, nodes, user, nodeCount, devices, partition },
    place: match[2] === undefined ? null : Number(match[2]),
    name: parts.slice(10).join(BETWEEN),
    host: oneHost(nodes),
    startsAtMs: readTime(start),
    leftMs: readSpan(left),
  };
}

function oneHost(nodes: string): string {
  if (!/^[\w.[\],-]+$/.test(nodes)) return '';
  const names = expandHostlist(nodes) ?? [];
  return names.length === 1 ? (names[0] ?? '') : '';
}

/** The commands are run with TZ=UTC, so a time without a zone is that. */
export function readTime(text: string): number | null {
  const match = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$/.exec(text.trim());
  const time = match ? Date.parse(`${match[0]}Z`) : Number.NaN;
  return Number.isFinite(time) ? time : null;
}

/**
 * `1-02:03:04`, `02:03:04`, `03:04`; null for UNLIMITED, NOT_SET and the like. Of a job that is
 * over its limit and not yet ended Slurm prints INVALID: nothing is left.
 */
export function readSpan(text: string): number | null {
  if (text.trim() === 'INVALID') return 0;
  const match = /^(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)$/.exec(text.trim());
  if (!match) return null;
  const [days = 0, hours = 0, minutes = 0, seconds = 0] = match.slice(1).map((n) => Number(n ?? 0));
  return (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000;
}

export interface JobDetail {
  restarts: number;
  /** How its script ended: a code, or the signal that ended it. */
  code: number;
  signal: number;
}

/** By id. What an older Slurm cannot print is left out. */
export function readDetails(stdout: string): Map<string, JobDetail> {
  const details = new Map<string, JobDetail>();
  for (const line of stdout.split('\n')) {
    const match = /^\s*(\d+(?:_\d+)?)\s+(\d+)\s+(\d+)(?::(\d+))?\s*$/.exec(line);
    if (!match) continue;
    const [, id = '', restarts, first, second] = match;
    const status = Number(first);
    // One number is a status as wait(2) gives it; two are code and signal.
    const ended =
      second === undefined
        ? { code: status >> 8, signal: status & 0x7f }
        : { code: status, signal: Number(second) };
    details.set(id, { restarts: Number(restarts), ...ended });
  }
  return details;
}

/** For a person: how it begins. */
function sample(text: string): string {
  const line = text.trim().split('\n', 1)[0] ?? '';
  return line ? `: ${line.replaceAll(/\p{Cc}/gu, ' ').slice(0, 200)}` : '';
}
