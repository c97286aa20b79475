/**
 * Runs seeds on all cores: one process each, so that a plant can change the code of one of them.
 */
import { fork } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { addCounts } from './coverage.ts';
import { PLANTS } from './plants/all.ts';
import type { Plant } from './plants/plant.ts';
import type { StoryName } from './run.ts';
import type { Found, Range, Report, Tally } from './seedProcess.ts';

export interface Summary extends Omit<Tally, 'found'> {
  found: Found[];
  seconds: number;
}

export interface SeedsOptions {
  /** Left out: the usual one. */
  story?: StoryName;
  from: number;
  count: number;
  twice?: boolean;
  plant?: string;
  processes?: number;
  progress?: (seeds: number) => void;
}

/** Stops at the first violation, with whatever the other processes have found by then. */
export async function runSeeds(options: SeedsOptions): Promise<Summary> {
  const begun = performance.now();
  const stride = Math.min(options.count, options.processes ?? availableParallelism());
  const stop: (() => void)[] = [];
  const stopAll = (): void => stop.forEach((one) => one());
  const tallies = await Promise.all(
    Array.from({ length: stride }, async (_, offset) => {
      const { story = 'usual', from, count, twice = false } = options;
      const range = { story, from, count, offset, stride, twice };
      const tally = await runRange(range, options, stop);
      if (tally.found) stopAll();
      return tally;
    }),
  );
  const summary: Summary = {
    ...{ seeds: 0, events: 0, boots: 0, virtualMs: 0, coverage: {}, found: [] },
    seconds: (performance.now() - begun) / 1000,
  };
  for (const tally of tallies) {
    summary.seeds += tally.seeds;
    summary.events += tally.events;
    summary.boots += tally.boots;
    summary.virtualMs += tally.virtualMs;
    addCounts(summary.coverage, tally.coverage);
    if (tally.found) summary.found.push(tally.found);
  }
  return summary;
}

function runRange(range: Range, options: SeedsOptions, stop: (() => void)[]): Promise<Tally> {
  const planted = options.plant === undefined ? [] : ['--import', path('./plants/hook.ts')];
  return new Promise((resolve, reject) => {
    const child = fork(path('./seedProcess.ts'), {
      execArgv: planted,
      env: { ...process.env, ...(options.plant !== undefined && { SIM_PLANT: options.plant }) },
    });
    stop.push(() => child.connected && child.send('stop'));
    child.on('message', (report: Report) => {
      if (report.kind === 'progress') options.progress?.(report.seeds);
      else {
        child.disconnect();
        resolve(report.tally);
      }
    });
    child.once('exit', (code) => reject(new Error(`a seed process ended with code ${code}`)));
    child.send(range);
  });
}

function path(file: string): string {
  return fileURLToPath(new URL(file, import.meta.url));
}

export interface PlantResult {
  plant: Plant;
  /** How many seeds it took; null when none showed it. */
  seeds: number | null;
  found: Found | null;
}

export const PLANT_SEEDS = 1000;

/** Each plant alone in a process, as many at a time as there are cores. */
export async function runPlants(told: (result: PlantResult) => void): Promise<PlantResult[]> {
  const waiting = [...PLANTS];
  const results: PlantResult[] = [];
  const worker = async (): Promise<void> => {
    for (let plant = waiting.shift(); plant; plant = waiting.shift()) {
      const count = PLANT_SEEDS;
      const { name, story = 'usual' } = plant;
      const summary = await runSeeds({ story, from: 1, count, plant: name, processes: 1 });
      const found = summary.found[0] ?? null;
      const shown = found !== null && plant.shownBy.includes(found.invariant);
      const result = { plant, seeds: shown ? summary.seeds : null, found };
      told(result);
      results.push(result);
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, worker));
  return results;
}
