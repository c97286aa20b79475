/** make sim: runs seeds on all cores, prints what was found and the command that replays it. */
import { parseArgs } from 'node:util';
import { missingFrom, SOMETIMES } from './coverage.ts';
import { runPlants, runSeeds, type PlantResult } from './parallel.ts';
import type { Found } from './seedProcess.ts';
import { describe } from './summary.ts';

/** Fewer seeds than this need not have reached everything. */
const ENOUGH_SEEDS = 500;

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '500' },
    from: { type: 'string', default: '1' },
    seed: { type: 'string' },
    twice: { type: 'boolean', default: false },
    plant: { type: 'string' },
    plants: { type: 'boolean', default: false },
  },
});

if (values.plants) await plants();
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
    from,
    count,
    twice,
    progress,
    ...(plant !== undefined && { plant }),
  });
  if (process.stderr.isTTY) process.stderr.write('\r');
  for (const what of SOMETIMES) {
    console.log(`${String(summary.coverage[what] ?? 0).padStart(9)}  ${what}`);
  }
  console.log(describe(summary));
  for (const found of summary.found) tell(found);
  const missing = count >= ENOUGH_SEEDS && !plant ? missingFrom(summary.coverage) : [];
  if (summary.found.length === 0 && missing.length > 0) {
    console.log(`too tame: never reached: ${missing.join(', ')}`);
    process.exitCode = 1;
  }
}

function tell(found: Found): void {
  for (const line of found.trace) console.log(line);
  console.log(`\nseed ${found.seed} breaks ${found.message}`);
  const planted = values.plant === undefined ? '' : ` ARGS='--plant ${values.plant}'`;
  console.log(`see all of it with: make sim SEED=${found.seed}${planted}`);
  process.exitCode = 1;
}

/** In a process of its own, like many: a plant must be there before the code is. */
async function one(seed: number): Promise<void> {
  if (values.plant !== undefined) {
    process.env['SIM_PLANT'] = values.plant;
    await import('./plants/hook.ts');
  }
  const { runSeed } = await import('./run.ts');
  const result = await runSeed(seed, 1_000_000);
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
