/** One seed of a story, from an empty database to the last event. */
import type { Cluster } from './cluster.ts';
import { Violation } from './checkers/violation.ts';
import type { Counts } from './coverage.ts';
import { freshDatabase, removeDatabase } from './database.ts';
import { provisionStory } from './provision/story.ts';
import { usualStory } from './story.ts';
import { World } from './world.ts';

export interface RunResult {
  seed: number;
  hash: string;
  events: number;
  virtualMs: number;
  boots: number;
  violation: { invariant: string; message: string } | null;
  coverage: Counts;
  trace: string[];
}

/** A cluster in a world, and what happens to it. */
export interface Story {
  cluster: Cluster;
  play(): Promise<void>;
}

/** usual: machines that are there. provision: machines that come by themselves. */
const STORIES = { usual: usualStory, provision: provisionStory } as const;
export type StoryName = keyof typeof STORIES;

let current: Cluster | null = null;
// A promise nobody waits for would end a production process: here it is a finding of the seed.
process.on('unhandledRejection', (error) => current?.checker.broken(`unhandled: ${stack(error)}`));

export async function runSeed(name: StoryName, seed: number, keepLines = 0): Promise<RunResult> {
  // Most errors here are answers; their stacks would cost more than the answers do.
  Error.stackTraceLimit = keepLines > 0 ? 20 : 0;
  const world = new World(seed, keepLines);
  const file = await freshDatabase();
  const story = STORIES[name](world, file);
  const { cluster } = story;
  current = cluster;
  let violation: RunResult['violation'] = null;
  try {
    await story.play();
  } catch (error) {
    const invariant = error instanceof Violation ? error.invariant : 'error';
    violation = { invariant, message: error instanceof Violation ? error.message : stack(error) };
  } finally {
    cluster.controller.crash('the end');
    removeDatabase(file);
  }
  return {
    seed,
    hash: world.hash(),
    events: world.events,
    virtualMs: world.nowMs,
    boots: cluster.controller.boots,
    violation,
    coverage: cluster.coverage.counts,
    trace: world.lines,
  };
}

function stack(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
