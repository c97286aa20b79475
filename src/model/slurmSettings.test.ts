/** Slurm's settings: what is refused, with a sentence that names it. */
import { describe, expect, test } from 'vitest';
import { checkSlurm, slurmPool, slurmSite } from './slurmSettings.ts';

const pool = (more: object) => slurmPool.safeParse({ site: 'alpha', ...more });

describe('a pool', () => {
  test.each([
    '--exclusive',
    '--mem=0',
    '--constraint=a100',
    '--export-file=x',
    '--gres=gpu:4',
    '--mail-user=a@b',
  ])('takes the option %s', (option) => {
    expect(pool({ options: [option] }).success).toBe(true);
  });

  test.each([
    '--job-name=x',
    '-J x',
    '--job-n=x',
    '--outp=x',
    '-C a100',
    '--array=1-3',
    '--wait',
    '-W',
    '--wrap=true',
    '--export=NONE',
    '--comment=x',
    'exclusive',
    '--mem=0\n#SBATCH',
    '--uid=0',
  ])('refuses the option %j', (option) => {
    expect(pool({ options: [option] }).success).toBe(false);
  });

  test('has names without line breaks or leading dashes', () => {
    expect(pool({ partition: '--uid=0' }).success).toBe(false);
    expect(pool({ account: 'a\nb' }).success).toBe(false);
    expect(pool({ partition: 'gpu,long', constraint: '[a100|h100]' }).success).toBe(true);
  });
});

describe('a site', () => {
  test('has a host that is no option, and users with both names', () => {
    expect(slurmSite.safeParse({ ssh: { host: '-oProxyCommand=x' } }).success).toBe(false);
    expect(slurmSite.safeParse({ users: { ada: 'ada' } }).success).toBe(false);
    expect(slurmSite.safeParse({ users: { 'physics/ada': '-u root' } }).success).toBe(false);
    expect(slurmSite.safeParse({ users: { 'physics/*': 'phys_01' } }).success).toBe(true);
  });

  test('is one that exists, with users where they are needed', () => {
    const said: string[] = [];
    const slurm = slurmPool.parse({ site: 'beta', userMap: 'submit-as-user' });
    const check = (sites: Record<string, object>): string[] => {
      said.length = 0;
      const parsed = Object.entries(sites).map(([name, site]) => [name, slurmSite.parse(site)]);
      checkSlurm({ sites: Object.fromEntries(parsed), pools: { p: { slurm }, q: {} } }, (at, why) =>
        said.push(`${at}: ${why}`),
      );
      return said;
    };
    expect(check({ alpha: {} })).toEqual([
      'fleet.pools.p.slurm.site: there is no fleet.sites.beta; there are: alpha',
    ]);
    expect(check({ beta: {} })[0]).toMatch(/^fleet\.pools\.p\.slurm\.userMap: .*beta\.users$/);
    expect(check({ beta: { users: { 'a/b': 'c' } } })).toEqual([]);
    expect(check({ beta: { users: { 'a/b': 'c' }, become: 'login' } })[0]).toMatch(/needs ssh/);
  });
});
