/** docs/md-on-slurm.md, typed from the top to the bottom on a real Slurm with a real GROMACS. */
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { follow, readGuide } from '../support/guide.ts';
import { DROVER, startJourney, until, type Journey } from '../support/journey.ts';
import { sweep } from '../support/leftovers.ts';
import { programsAreHere } from '../support/programs.ts';
import { slurmIsHere, startSlurm, type Slurm } from '../support/slurm.ts';

const isHere = slurmIsHere() && programsAreHere({ gmx: 'gromacs' });

describe.runIf(isHere)('molecular dynamics on Slurm', () => {
  let slurm: Slurm;
  let journey: Journey;
  const guide = readGuide('md-on-slurm.md');

  beforeAll(async () => {
    slurm = await startSlurm();
    const { SLURM_CONF = '', PATH = '' } = slurm.env();
    const config = path.join(slurm.root, 'drover.yaml');
    writeFileSync(config, settingsFor(guide.settings[0] ?? '', slurm.root));
    journey = await startJourney({
      args: ['--resources', 'cpus=2,mem=4Gi'],
      env: { SLURM_CONF, PATH, DROVER_CONFIG: config },
    });
    await until('the workstation has joined', async () => {
      const { items } = await journey.client.listWorkers({});
      return items.length === 1;
    });
  });
  afterAll(async () => {
    const live = (await slurm?.liveJobs()) ?? [];
    if (live.length > 0) await slurm.run(['scancel', ...live.map(({ id }) => id)]);
    await journey?.close();
    if (journey) sweep(journey.home);
    await slurm?.close();
  });

  test('a killed run ends elsewhere with the trajectory of an undisturbed one', async () => {
    const steps = guide.steps.filter(({ commands }) => commands !== 'make up\n');
    expect(steps.length).toBeGreaterThan(4);
    const { SLURM_CONF = '', PATH = '' } = slurm.env();
    const env = { HOME: journey.home, SLURM_CONF, PATH };
    await follow(steps, { env, limitMs: 240_000 });
  }, 300_000);
});

/** The page's own, with agents that run from this checkout and everything in the test's folder. */
function settingsFor(page: string, root: string): string {
  const settings = parse(page) as {
    fleet: { pools: { cluster: Record<string, unknown> & { slurm: Record<string, unknown> } } };
  };
  const { cluster } = settings.fleet.pools;
  Object.assign(cluster, { pollMs: 500, cooldownMs: 500 });
  const [folder, scratch] = [path.join(root, 'output'), path.join(root, 'scratch')];
  mkdirSync(scratch);
  const agentCommand = `exec ${DROVER} agent --join "$DROVER_URL"`;
  Object.assign(cluster.slurm, { folder, scratch, agentCommand });
  return stringify(settings);
}
