/**
 * Short jobs on one node of a real Slurm: `make bench-slurm [JOBS=100]`. One sbatch each, then the
 * same jobs through a Drover agent in one allocation of that node, in one run. Prints a table and
 * writes bench/results/slurm.json. It is asked that Drover's finish at least ten times faster.
 */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { startSlurm } from '../../test/support/slurm.ts';
import { throughDrover } from './drover.ts';
import { oneSbatchEach } from './sbatch.ts';

export interface Measured {
  seconds: number;
  note: string;
}

interface Row {
  scenario: string;
  system: string;
  jobs: number;
  seconds: number;
  jobsPerSecond: number;
  /** How many times faster than one sbatch each, in the same run on the same Slurm. */
  ratioToSbatch: number;
  target: number | null;
  met: boolean | null;
  note: string;
}

const TARGET = 10;
const RESULT = path.resolve(import.meta.dirname, '../results/slurm.json');

/** What each job takes of the node, and whether Slurm waits as it does where nobody tuned it. */
const SCENARIOS = [
  { name: 'jobs with one GPU', gpus: 1, unhurried: true, target: TARGET },
  { name: 'jobs with one core', gpus: 0, unhurried: true, target: null },
  { name: 'jobs with one GPU, Slurm tuned for turnover', gpus: 1, unhurried: false, target: null },
];

const { values } = parseArgs({
  options: {
    jobs: { type: 'string', default: '100' },
    only: { type: 'string' },
    out: { type: 'string', default: RESULT },
  },
});
const jobs = Number(values.jobs);
const chosen = SCENARIOS.filter((_, index) => !values.only || values.only.includes(String(index)));

const rows: Row[] = [];
for (const scenario of chosen) rows.push(...(await measure(scenario)));
console.table(rows.map(({ note, ...shown }) => ({ ...shown, note: note.slice(0, 60) })));
for (const { scenario, system, ratioToSbatch } of rows) {
  if (system === 'drover') console.log(`${scenario}: ${ratioToSbatch} times faster than sbatch`);
}
if (!values.only) writeFileSync(values.out, `${JSON.stringify(rows, null, 2)}\n`);

async function measure(scenario: (typeof SCENARIOS)[number]): Promise<Row[]> {
  const slurm = await startSlurm({ unhurried: scenario.unhurried });
  try {
    const sbatch = await oneSbatchEach(slurm, jobs, scenario.gpus);
    const drover = await throughDrover(slurm, jobs, scenario.gpus);
    return [
      rowOf(scenario.name, 'sbatch', sbatch, sbatch, null),
      rowOf(scenario.name, 'drover', drover, sbatch, scenario.target),
    ];
  } finally {
    await slurm.close();
  }
}

function rowOf(
  scenario: string,
  system: string,
  { seconds, note }: Measured,
  beside: Measured,
  target: number | null,
): Row {
  const ratio = Number((beside.seconds / seconds).toFixed(2));
  return {
    ...{ scenario, system, jobs },
    seconds: Number(seconds.toFixed(2)),
    jobsPerSecond: Number((jobs / seconds).toFixed(1)),
    ratioToSbatch: ratio,
    target,
    met: target === null ? null : ratio >= target,
    note,
  };
}
