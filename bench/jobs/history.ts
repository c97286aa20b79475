/** Scenario 7: what a million ended jobs in the store cost those that are submitted and run now. */
import { closeSync, copyFileSync, fsyncSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { executeRate } from './execute.ts';
import { DROVER_SYSTEM, DroverServer, STORE_FILE } from './servers/drover.ts';
import { seedEndedJobs } from './servers/seed.ts';
import { submitRate } from './submit.ts';
import { folder, measure, type Bench } from './support/bench.ts';

const ENDED_JOBS = 1_000_000;
const QUICK_ENDED_JOBS = 20_000;
/** Both stores in turn, so often: one pair would compare two moments of the machine. */
const ROUNDS = 2;
const TASKS = 30_000;
const QUICK_TASKS = 4000;

interface Rates {
  execute: number;
  submit: number;
}

export async function history(bench: Bench): Promise<void> {
  const ended = bench.quick ? QUICK_ENDED_JOBS : ENDED_JOBS;
  await measure(bench, DROVER_SYSTEM, ['historySubmit', 'historyExecute'], async () => {
    const seeded = join(folder(bench, 'seed'), STORE_FILE);
    await seedEndedJobs(seeded, ended);
    const empty: Rates[] = [];
    const full: Rates[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      empty.push(await ratesOn(bench, null));
      full.push(await ratesOn(bench, seeded));
    }
    for (const [metric, what] of [
      ['historySubmit', 'submit'],
      ['historyExecute', 'execute'],
    ] as const) {
      const [with0, with1] = [meanOf(empty, what), meanOf(full, what)];
      const note =
        `${Math.round(with1)}/s with ${ended} ended jobs, ${Math.round(with0)}/s without, ` +
        `${ROUNDS} times each in turn`;
      bench.report.add(metric, { ...DROVER_SYSTEM, value: with1 / with0, note });
    }
  });
}

/** On a store of its own: a copy of the seeded one, or an empty one. */
async function ratesOn(bench: Bench, seeded: string | null): Promise<Rates> {
  const directory = folder(bench, 'drover');
  if (seeded !== null) copyToDisk(seeded, join(directory, STORE_FILE));
  const server = await DroverServer.start(directory);
  try {
    await server.drainLocalAgent();
    const execute = await executeRate(server, bench.quick ? QUICK_TASKS : TASKS);
    const half = { ...bench, seconds: bench.seconds / 2 };
    return { execute, submit: await submitRate(server, half, 'history') };
  } finally {
    // Its folder stays until the end: to free a gigabyte keeps the disk busy for a while.
    await server.close();
  }
}

/** On disk before the clock starts: else the first fsync of the store would write all of it. */
function copyToDisk(from: string, to: string): void {
  copyFileSync(from, to);
  const file = openSync(to, 'r+');
  fsyncSync(file);
  closeSync(file);
}

function meanOf(rates: Rates[], what: keyof Rates): number {
  return rates.reduce((sum, rate) => sum + rate[what], 0) / rates.length;
}
