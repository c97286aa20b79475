/** make sim: runs seeds on all cores, prints what was found and the command that replays it. */
import { parseArgs } from 'node:util';
import { addCounts, missingFrom, SOMETIMES, type Counts } from './coverage.ts';
import { runPlants, runSeeds, type PlantResult } from './parallel.ts';
import { PROVISION_SOMETIMES } from './provision/sometimes.ts';
import type { StoryName } from './run.ts';
import type { Found } from './seedProcess.ts';
import { describe } from './summary.ts';

/** Fewer seeds than this need not have reached everything. */
const ENOUGH_SEEDS = 500;
const PORTION_SEEDS = 20;

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '500' },
    from: { type: 'string', default: '1' },
    seed: { type: 'string' },
    twice: { type: 'boolean', default: false },
    story: { type: 'string', default: 'usual' },
    /** Of the story of machines that come by themselves: until so many have been asked for. */
    provisionings: { type: 'string' },
    plant: { type: 'string' },
    plants: { type: 'boolean', default: false },
  },
});

const story = values.provisionings === undefined ? (values.story as StoryName) : 'provision';
const reached: Record<StoryName, readonly string[]> = {
  usual: SOMETIMES,
  provision: PROVISION_SOMETIMES,
};

if (values.plants) await plants();
else if (values.provisionings !== undefined) await provision(Number(values.provisionings));
else if (values.seed === undefined) await many(Number(values.from), Number(values.seeds));
else await one(Number(values.seed));

async function many(from: number, count: number): Promise<void> {
  const { twice, plant } = values;
  let done = 0;
  const progress = (seeds: number): void => {
    done += seeds;
    if (process.stderr.isTTY) process.stderr.write(`\r${done} of ${count} seeds `);
  };
  const summary = await runSeeds({
    story,
    from,
    count,
    twice,
    progress,
    ...(plant !== undefined && { plant }),
  });
  if (process.stderr.isTTY) process.stderr.write('\r');
  table(summary.coverage);
  console.log(describe(summary));
  for (const found of summary.found) tell(found);
  if (count >= ENOUGH_SEEDS && !plant && summary.found.length === 0) tooTame(summary.coverage);
}

function table(coverage: Counts): void {
  for (const what of reached[story]) {
    console.log(`${String(coverage[what] ?? 0).padStart(9)}  ${what}`);
  }
}

function tooTame(coverage: Counts): void {
  const missing = missingFrom(coverage, reached[story]);
  if (missing.length === 0) return;
  console.log(`too tame: never reached: ${missing.join(', ')}`);
  process.exitCode = 1;
}

/** Seeds, one portion after another, until enough machines have been asked for. */
async function provision(wanted: number): Promise<void> {
  const coverage: Counts = {};
  const asked = (): number => coverage['provisioning'] ?? 0;
  let from = Number(values.from);
  while (asked() < wanted && process.exitCode === undefined) {
    const summary = await runSeeds({ story: 'provision', from, count: PORTION_SEEDS });
    from += PORTION_SEEDS;
    addCounts(coverage, summary.coverage);
    console.log(`${describe(summary)}; ${asked()} provisionings so far`);
    for (const found of summary.found) tell(found);
  }
  table(coverage);
  console.log(`${asked()} provisionings in ${from - Number(values.from)} seeds`);
  if (process.exitCode === undefined) tooTame(coverage);
}

function tell(found: Found): void {
  for (const line of found.trace) console.log(line);
  console.log(`\nseed ${found.seed} breaks ${found.message}`);
  const args = [
    ...(story === 'usual' ? [] : [`--story ${story}`]),
    ...(values.plant === undefined ? [] : [`--plant ${values.plant}`]),
  ];
  const told = args.length > 0 ? ` ARGS='${args.join(' ')}'` : '';
  console.log(`see all of it with: make sim SEED=${found.seed}${told}`);
  process.exitCode = 1;
}

/** In a process of its own, like many: a plant must be there before the code is. */
async function one(seed: number): Promise<void> {
  if (values.plant !== undefined) {
    process.env['SIM_PLANT'] = values.plant;
    await import('./plants/hook.ts');
  }
  const { runSeed } = await import('./run.ts');
  const result = await runSeed(story, seed, 1_000_000);
  for (const line of result.trace) console.log(line);
  console.log(`\nseed ${seed}: ${result.events} events, history ${result.hash}`);
  console.log(result.violation ? `it breaks ${result.violation.message}` : 'no violation');
  if (result.violation) process.exitCode = 1;
}

async function plants(): Promise<void> {
  const results = await runPlants((result) => console.log(row(result)));
  const hidden = results.filter(({ seeds }) => seeds === null);
  console.log(`${results.length - hidden.length} of ${results.length} planted bugs found`);
  if (hidden.length > 0) process.exitCode = 1;
}

function row({ plant, seeds, found }: PlantResult): string {
  const told = found ? found.message.slice(0, 90) : plant.what;
  return `${String(seeds ?? 'NOT').padStart(5)}  ${plant.name.padEnd(32)} ${told}`;
}
