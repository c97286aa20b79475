/** What the provider makes of odd replies, and what it renders and asks for. */
import { readdirSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { silentLog as log } from '../../lib/log.ts';
import { systemRandom } from '../../lib/random.ts';
import { systemClock, type Clock } from '../../lib/clock.ts';
import { slurmPool, slurmSite } from '../../model/slurmSettings.ts';
import type { LaunchBatch } from '../contract.ts';
import type { RemoteShell, RunResult } from '../remote/contract.ts';
import { createSlurmProvider } from './provider.ts';
import { QUEUE_FORMAT } from './queue.ts';
import { openSlurmSites, type SiteCommand, type SlurmSite } from './site.ts';

const HEADING = QUEUE_FORMAT.replaceAll(/%\w/g, 'X').replace('X', 'JOBID');
const LOGIN = 'user=drover\nfolder=/scratch/drover\nversion=slurm-wlm 22.05.8\n';
const SURROUNDINGS = 'No reservations in the system\n\ngpu*|n[1-2]\n';
const ok = (stdout: string): RunResult => ({ kind: 'ended', code: 0, stdout, stderr: '' });

const lost: RunResult = { kind: 'lost', reason: 'no end' };

interface Replies {
  login?: RunResult;
  queue?: RunResult;
  surroundings?: RunResult;
  sbatch?: RunResult;
  scancel?: RunResult;
}

/** A site that answers what it is told to, and remembers what it was asked. */
function siteOf(replies: Replies, more: object): { site: SlurmSite; asked: SiteCommand[] } {
  const asked: SiteCommand[] = [];
  const answer = (command: SiteCommand): Promise<RunResult> => {
    asked.push(command);
    const { words } = command;
    const has = (word: string): boolean => words.includes(word);
    if (has('squeue')) return Promise.resolve(replies.queue ?? ok(`${HEADING}\n`));
    if (has('sbatch')) return Promise.resolve(replies.sbatch ?? ok('4711\n'));
    if (has('scancel')) return Promise.resolve(replies.scancel ?? ok(''));
    if (has('scontrol')) return Promise.resolve(replies.surroundings ?? ok(SURROUNDINGS));
    return Promise.resolve(replies.login ?? ok(LOGIN));
  };
  const site: SlurmSite = {
    ...{
      name: 'lab',
      settings: slurmSite.parse({ account: 'team', ...more }),
      where: 'this machine',
    },
    ...{ path: (program: string) => program, ask: answer, submit: answer },
    close: () => Promise.resolve(),
  };
  return { site, asked };
}

/** Time that passes when it is told to. */
function handClock(): Clock & { advance(ms: number): void } {
  let passedMs = 0;
  return { ...systemClock, bootMs: () => passedMs, advance: (ms) => void (passedMs += ms) };
}

function providerOf(
  replies: Replies,
  more: object = {},
  clock: Clock = systemClock,
  ofSite: object = {},
) {
  const { site, asked } = siteOf(replies, ofSite);
  const settings = slurmPool.parse({ site: 'lab', template: 'agents', ...more });
  const provider = createSlurmProvider({ pool: 'p', settings, site, clusterId: 'c', clock, log });
  const sbatch = (): SiteCommand | undefined => asked.find(({ words }) => words.includes('sbatch'));
  return { provider, asked, sbatch };
}

const batch = (more: Partial<LaunchBatch> = {}): LaunchBatch => ({
  ...{ id: 'i0a', intents: [{ label: 'i0a', joinToken: 'secret-token' }], resources: null },
  ...{
    workers: 1,
    timeLimitMs: 0,
    noticeMs: 0,
    runAs: null,
    name: 'a\nname',
    avoid: [],
    target: 1,
  },
  agent: { url: 'https://g', authorities: '', selfDestructAfterMs: 1000 },
  ...more,
});

describe('odd replies', () => {
  const odd: [string, RunResult][] = [
    ['nothing', ok('')],
    ['a page', ok('<html>Please accept our terms</html>')],
    ['an error', { kind: 'ended', code: 1, stdout: '', stderr: 'slurm_load_jobs error: x' }],
    ['no end', { kind: 'lost', reason: 'no end within 30000 ms' }],
    ['no connection', { kind: 'unreachable', problem: 'network', reason: 'no route' }],
  ];
  test.each(odd)('%s from squeue: nothing is known, and nothing done', async (_, queue) => {
    const { provider, asked, sbatch } = providerOf({ queue });
    expect(await provider.list()).toMatchObject({ kind: 'unknown' });
    expect(await provider.launch(batch())).toMatchObject({ kind: 'refused' });
    const machines = [{ label: 'i0a', handle: '7' }];
    expect(await provider.destroy({ machines, target: 0 })).toMatchObject({ kind: 'unknown' });
    expect(sbatch()).toBeUndefined();
    expect(asked.some(({ words }) => words[0] === 'scancel')).toBe(false);
  });

  test.each([
    ['4711', 'launched'],
    ['4711;alpha', 'launched'],
    ['Your quota is 80 % used.\n4711\n', 'launched'],
    ['Submitted, thank you', 'unknown'],
    ['', 'unknown'],
  ])('sbatch prints %j: %s', async (stdout, kind) => {
    const { provider } = providerOf({ sbatch: ok(stdout) });
    const result = await provider.launch(batch());
    expect(result.kind).toBe(kind);
    if (result.kind === 'launched') expect(result.handles).toEqual(['4711']);
  });

  test('after a lost reply a refusal stays unknown until the queue was read', async () => {
    const replies: Replies = { sbatch: { kind: 'lost', reason: 'gone' } };
    const time = handClock();
    const { provider } = providerOf(replies, {}, time);
    expect(await provider.launch(batch())).toMatchObject({ kind: 'unknown' });
    replies.queue = { kind: 'unreachable', problem: 'network', reason: 'no route' };
    expect(await provider.launch(batch())).toMatchObject({ kind: 'unknown', reason: 'no route' });
    expect(await provider.launch(batch({ id: 'i0b' }))).toMatchObject({ kind: 'refused' });
    // The queue is read and it is not in it: it may still come, so it is not sent twice.
    delete replies.queue;
    const early = { kind: 'unknown', reason: expect.stringContaining('under way') };
    expect(await provider.launch(batch())).toMatchObject(early);
    replies.sbatch = ok('4711');
    time.advance(60_000);
    expect(await provider.launch(batch())).toMatchObject({ kind: 'launched' });
  });

  test('a login that says something else is no login', async () => {
    const { provider } = providerOf({ login: ok('This account is locked') });
    const words = { reason: expect.stringContaining('This account is locked') };
    expect(await provider.launch(batch())).toMatchObject({ kind: 'refused', ...words });
    expect(await provider.list()).toMatchObject({ kind: 'unknown', ...words });
  });

  test('only jobs under our name are cancelled, whatever id is remembered', async () => {
    const line = (id: string, name: string): string =>
      [id, 'RUNNING', 'None', 'n1', 'N/A', '1:00', 'drover', '1', 'N/A', 'gpu', name].join(
        '\u001F',
      );
    const lines = [
      HEADING,
      line('7', 'theirs'),
      line('8', 'drover-c-p.i0a'),
      line('9', 'drover-c-p.i0a'),
    ];
    const { provider, asked } = providerOf({ queue: ok(lines.join('\n')) });
    const machines = [
      { label: 'i0z', handle: '7' },
      { label: 'i0a', handle: '8' },
    ];
    expect(await provider.destroy({ machines, target: 0 })).toEqual({ kind: 'asked' });
    const cancelled = asked.filter(({ words }) => words[0] === 'scancel');
    expect(cancelled.map(({ words }) => words)).toEqual([['scancel', '8', '9']]);
  });
});

describe('accounts', () => {
  const users = { 'physics/ada': 'ada', 'chemistry/*': 'chem' };
  const each = { userMap: 'submit-as-user' };
  const squeues = (asked: SiteCommand[]): string[][] =>
    asked
      .filter(({ words }) => words.includes('squeue'))
      .map(({ account, words }) => [account, ...words.filter((word) => word.startsWith('--user'))]);

  test('where jobs are private each is asked for its own', async () => {
    const config = ok('AccountingStoreFlags = x\nPrivateData             = accounts,jobs\n');
    const { provider, asked } = providerOf({ surroundings: config }, each, systemClock, { users });
    expect(await provider.list()).toMatchObject({ kind: 'known' });
    const own = ['', '--user=drover'];
    expect(squeues(asked)).toEqual([own, ['ada', '--user=ada'], ['chem', '--user=chem']]);
  });

  test('where they are not, one look sees all; what is not known is not guessed', async () => {
    const config = ok('PrivateData             = none\n');
    const { provider, asked } = providerOf({ surroundings: config }, each, systemClock, { users });
    await provider.list();
    expect(squeues(asked)).toEqual([['']]);
    const broken = providerOf({ surroundings: lost }, each, systemClock, { users });
    expect(await broken.provider.list()).toMatchObject({ kind: 'unknown' });
  });

  test('a site without a folder for output is listed, and takes nothing', async () => {
    const { provider, sbatch } = providerOf({ login: ok('user=drover\nversion=slurm 23.11\n') });
    expect(await provider.list()).toMatchObject({ kind: 'known' });
    const refused = { kind: 'refused', reason: expect.stringContaining('slurm.folder') };
    expect(await provider.launch(batch())).toMatchObject(refused);
    expect(sbatch()).toBeUndefined();
  });
});

test('a site with a connector is reached by it alone', async () => {
  const said: unknown[] = [];
  const shell: RemoteShell = {
    name: 'the connector of lab',
    run: (command) => Promise.resolve(ok(String(said.push(command)))),
    close: () => Promise.resolve(),
  };
  const parts = { clock: systemClock, random: systemRandom, log };
  const settings = slurmSite.parse({ connector: true, commandFolder: '/opt/slurm/bin/' });
  const sites = openSlurmSites({ lab: settings }, { ...parts, connectors: { shell: () => shell } });
  const site = sites.site('lab');
  expect(site?.where).toBe('the connector of lab');
  expect(sites.site('lab')).toBe(site);
  expect(sites.site('other')).toBeUndefined();
  await site?.ask({ words: [site.path('squeue')], account: 'ada' });
  expect(said[0]).toEqual([
    ...['sudo', '-n', '-u', 'ada', '--', '/bin/sh', '-c', expect.any(String), 'sh'],
    '/opt/slurm/bin/squeue',
  ]);
  await sites.close();
  expect(() => openSlurmSites({ lab: settings }, parts).site('lab')).toThrow(/no connectors/);
});

describe('what is asked for', () => {
  const optionsOf = async (
    more: Partial<LaunchBatch>,
    settings: object = {},
  ): Promise<string[]> => {
    const { provider, sbatch } = providerOf({}, settings);
    expect(await provider.launch(batch(more))).toMatchObject({ kind: 'launched' });
    const words = sbatch()?.words ?? [];
    return words.slice(words.indexOf('sbatch') + 1);
  };

  test('carries the intent, the size, the time and the notice', async () => {
    const device = { kind: 'gpu', count: 2, share: 1000, models: [], memoryBytes: 0 } as const;
    const resources = {
      cpuMillis: 2500,
      memoryBytes: 2 ** 30 + 1,
      device: { ...device, models: [] },
      ports: 0,
    };
    const options = await optionsOf(
      { resources, timeLimitMs: 90 * 60_000, noticeMs: 120_000, workers: 3, avoid: ['n2', 'x'] },
      { gres: { type: 'a100' }, qos: 'high', options: ['--exclusive'] },
    );
    expect(options).toEqual([
      ...[
        '--parsable',
        '--job-name=drover-c-p.i0a',
        '--comment=drover pool=p batch=i0a for a name',
      ],
      ...['--output=/scratch/drover/%x-%j.out', '--open-mode=append', '--nodes=3'],
      ...[
        '--ntasks-per-node=1',
        '--account=team',
        '--qos=high',
        '--cpus-per-task=3',
        '--mem=1025M',
      ],
      ...['--gres=gpu:a100:2', '--time=0-01:37:00', '--signal=B:USR1@120', '--exclude=n2'],
      '--exclusive',
    ]);
  });

  test('is the longest the pool gives where nobody said more', async () => {
    const day = 24 * 60 * 60_000;
    expect(await optionsOf({}, { timeLimitMs: 2 * day })).toContain('--time=2-00:00:00');
    expect(await optionsOf({ timeLimitMs: day }, { timeLimitMs: day })).toContain(
      '--time=1-00:00:00',
    );
    expect((await optionsOf({})).some((option) => option.startsWith('--time'))).toBe(false);
  });
});

describe('the templates of deploy/slurm', () => {
  const names = readdirSync('deploy/slurm').map((name) => name.replace('.sbatch.j2', ''));

  test.each(names)('%s renders, with the secret on its way and masked for people', async (name) => {
    const intents = [0, 1].map((n) => ({ label: `i0a.${n}`, joinToken: `secret-'${n}` }));
    const agent = { url: "https://g/it's", authorities: '-----PEM-----', selfDestructAfterMs: 1 };
    const { provider, sbatch } = providerOf({}, { template: name });
    const result = await provider.launch(batch({ intents, workers: 2, agent }));
    if (result.kind !== 'launched') throw new Error(result.reason);
    expect(result.handles).toEqual(['4711_0', '4711_1']);
    expect(result.script).toMatch(/^#!\/bin\/bash\n# Submitted by: sbatch\n# {3}--parsable\n/);
    expect(result.script).not.toContain('secret');
    expect(sbatch()?.stdin).toContain(String.raw`DROVER_JOIN_TOKEN='secret-'\''1'`);
    expect(sbatch()?.words.join(' ')).not.toContain('secret');
  });

  test('a script that is too long is refused', async () => {
    const agent = { url: 'x', authorities: 'P'.repeat(5 * 2 ** 20), selfDestructAfterMs: 1 };
    expect(await providerOf({}).provider.launch(batch({ agent }))).toMatchObject({
      kind: 'refused',
      refusal: 'configuration',
    });
  });
});
