/** What a person does without Drover: one sbatch for each job, several calls at once. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Slurm } from '../../test/support/slurm.ts';
import type { Measured } from './main.ts';

/** More of them make slurmctld no faster here. */
const CALLS_AT_ONCE = 4;
const LOOK_MS = 50;

export async function oneSbatchEach(slurm: Slurm, jobs: number, gpus: number): Promise<Measured> {
  const script = path.join(slurm.root, 'short.sh');
  writeFileSync(script, '#!/bin/sh\ntrue\n');
  const wants = gpus > 0 ? [`--gres=gpu:${gpus}`] : [];
  const command = ['sbatch', '--parsable', '--nodelist=n1', '--output=/dev/null', ...wants, script];
  const begun = performance.now();
  let next = 0;
  const submit = async (): Promise<void> => {
    while (next++ < jobs) await slurm.ask(...command);
  };
  await Promise.all(Array.from({ length: CALLS_AT_ONCE }, submit));
  const submittedS = (performance.now() - begun) / 1000;
  while ((await slurm.ask('squeue', '--noheader', '--format=%i')) !== '') await delay(LOOK_MS);
  const seconds = (performance.now() - begun) / 1000;
  const done = (await slurm.jobs()).filter(({ state }) => state === 'COMPLETED').length;
  if (done !== jobs) throw new Error(`${done} of ${jobs} jobs were completed`);
  return { seconds, note: `submitted after ${submittedS.toFixed(2)} s` };
}
