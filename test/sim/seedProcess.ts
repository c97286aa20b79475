/** One of the processes that run seeds: takes every n-th of a range, reports what it found. */
import { addCounts, type Counts } from './coverage.ts';
import { runSeed, type RunResult, type StoryName } from './run.ts';

export interface Range {
  story: StoryName;
  from: number;
  count: number;
  /** This process takes the seeds `from + offset`, `from + offset + stride`, … */
  offset: number;
  stride: number;
  /** Each seed again, to see that it gives the same history. */
  twice: boolean;
}

export interface Found {
  seed: number;
  invariant: string;
  message: string;
  /** The last lines of its history. */
  trace: string[];
}

export interface Tally {
  seeds: number;
  events: number;
  boots: number;
  virtualMs: number;
  coverage: Counts;
  found: Found | null;
}

export type Report = { kind: 'progress'; seeds: number } | { kind: 'done'; tally: Tally };

const TRACE_LINES = 40;
const PROGRESS_SEEDS = 100;
const stopping = new AbortController();

process.on('message', (message: Range | 'stop') => {
  if (message === 'stop') stopping.abort();
  else run(message).catch(failed);
});
process.on('disconnect', () => process.exit(1));

/** Of the simulator itself: a rejection in the code under test is a finding, and seeds go on. */
function failed(error: unknown): void {
  console.error(error);
  process.exit(1);
}

async function run(range: Range): Promise<void> {
  const tally: Tally = { seeds: 0, events: 0, boots: 0, virtualMs: 0, coverage: {}, found: null };
  const end = range.from + range.count;
  for (let seed = range.from + range.offset; seed < end; seed += range.stride) {
    if (stopping.signal.aborted) break;
    const result = await runSeed(range.story, seed);
    tally.seeds++;
    tally.events += result.events;
    tally.boots += result.boots;
    tally.virtualMs += result.virtualMs;
    addCounts(tally.coverage, result.coverage);
    tally.found = result.violation ? await trace(range, result) : null;
    if (!tally.found && range.twice) tally.found = await again(range, result);
    if (tally.found) break;
    if (tally.seeds % PROGRESS_SEEDS === 0) report({ kind: 'progress', seeds: PROGRESS_SEEDS });
    await new Promise(setImmediate);
  }
  report({ kind: 'done', tally });
}

async function trace({ story }: Range, { seed }: RunResult): Promise<Found> {
  const { violation, trace: lines } = await runSeed(story, seed, TRACE_LINES * 100);
  const { invariant, message } = violation ?? { invariant: 'replay', message: 'gone in a replay' };
  return { seed, invariant, message, trace: lines.slice(-TRACE_LINES) };
}

async function again({ story }: Range, { seed, hash }: RunResult): Promise<Found | null> {
  const second = await runSeed(story, seed);
  if (second.hash === hash) return null;
  return { seed, invariant: 'replay', message: 'a second run gave another history', trace: [] };
}

function report(message: Report): void {
  process.send?.(message);
}
