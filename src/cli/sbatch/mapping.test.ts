/** What becomes of each option, and what is said about those that become nothing. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { jobSpec } from '../../protocol/jobSpec.ts';
import { toSpec } from '../jobDraft.ts';
import { mapSbatch } from './map.ts';
import { readCommandLine, readScript, mergeSettings } from './settings.ts';
import { EMPTY_TABLE, parseTable, type SiteTable } from './table.ts';

const EXAMPLES = path.resolve(import.meta.dirname, '../../../examples/sbatch');
const CONTEXT = { cwd: '/data', env: {}, label: (key: string) => key };

interface Given {
  script?: string;
  table?: SiteTable;
  workdir?: string;
}

function map(
  options: string[],
  { script = '#!/bin/sh\n', table = EMPTY_TABLE, workdir }: Given = {},
) {
  const { settings, rest } = readCommandLine(options);
  const all = mergeSettings(readScript(script, 'job.sh'), settings);
  const env = { HOME: '/x', COLOUR: 'red', SECRET: 's' };
  const from = { cwd: '/data', user: 'ada', host: 'login1', env };
  const given = { settings: all, script, name: 'job.sh', args: rest, workdir, table };
  const mapped = mapSbatch({ ...given, ...from });
  const spec = jobSpec.parse(toSpec(mapped.draft, CONTEXT));
  const left = mapped.unmapped.map(({ option }) => option);
  return { ...mapped, spec, left };
}

const table = (text: string): Promise<SiteTable> => parseTable(text, 'sbatch.yaml');

describe('resources', () => {
  test.each([
    [['--gres=gpu:a100:2'], { count: 2, models: ['a100'] }],
    [['--gres=gpu'], { count: 1, models: [] }],
    [['--gres', 'gpu:3'], { count: 3, models: [] }],
    [['-G', 'h100:4', '-N', '2', '-n', '2'], { count: 2, models: ['h100'] }],
    [['--gpus-per-node=2'], { count: 2, models: [] }],
    [['--gpus-per-task=v100:1', '-n3'], { count: 3, models: ['v100'] }],
  ])('%j', (options, device) => {
    expect(map(options).spec.resources.device).toMatchObject(device);
  });

  test.each([
    [[], 1000, 0],
    [['-c8', '--mem=4G'], 8000, 4096],
    [['-n', '4', '-c', '2', '--mem-per-cpu=512'], 8000, 4096],
    [['--gpus=2', '--cpus-per-gpu=6', '--mem-per-gpu=10G'], 12_000, 20_480],
    [['-N2', '--ntasks-per-node=4', '--mem=1T'], 4000, 1024 * 1024],
    [['-n8', '--ntasks-per-node=4'], 4000, 0],
    [['--mem=1.5G', '--mincpus=3'], 3000, 1536],
  ])('%j: cores and memory of a node', (options, cpuMillis, megabytes) => {
    const { resources } = map(options).spec;
    expect(resources).toMatchObject({ cpuMillis, memoryBytes: megabytes * 2 ** 20 });
  });

  test.each([
    [['-N', '4'], { kind: 'gang', size: 4 }],
    [['-n', '8', '--ntasks-per-node=2'], { kind: 'gang', size: 4 }],
    [['-n', '8'], { kind: 'single' }],
    [['-N', '4', '-n', '2'], { kind: 'gang', size: 2 }],
    [['-a', '1-7:3%2'], { kind: 'array', indices: [1, 4, 7], limit: 2 }],
    [['--array=3,5-6'], { kind: 'array', indices: [3, 5, 6], limit: 0 }],
  ])('%j: shape', (options, shape) => {
    expect(map(options).spec.shape).toEqual(shape);
  });

  test('an array over several nodes is refused with what to do', () => {
    expect(() => map(['-a', '0-3', '-N2'])).toThrow(/an array of jobs over 2 nodes/);
  });

  test.each([
    [['--gres=gpu:a:b:c']],
    [['--mem=lots']],
    [['-n', '0']],
    [['-N', 'x']],
    [['-t', 'soon']],
    [['--signal=@5', '-t1']],
  ])('%j is refused', (options) => {
    expect(() => map(options)).toThrow();
  });
});

describe('time', () => {
  test.each([
    ['90', 90 * 60],
    ['1:30', 90],
    ['2:00:00', 7200],
    ['1-0', 86_400],
    ['1-2:30', 86_400 + 9000],
    ['1-02:30:05', 86_400 + 9005],
    ['UNLIMITED', 0],
    ['0', 0],
    ['-1', 0],
  ])('%s', (text, seconds) => {
    expect(map([`--time=${text}`]).spec.timeLimitMs).toBe(seconds * 1000);
  });

  test('a signal before the end, to the script or to its steps', () => {
    expect(map(['-t', '10', '--signal=B:USR1@90']).spec.env).toMatchObject({
      DROVER_SBATCH_SIGNAL: 'USR1',
      DROVER_SBATCH_SIGNAL_TO: 'batch',
      DROVER_SBATCH_SIGNAL_AFTER: '510',
    });
    expect(map(['-t', '10', '--signal=SIGTERM']).spec.env).toMatchObject({
      DROVER_SBATCH_SIGNAL: 'TERM',
      DROVER_SBATCH_SIGNAL_TO: 'steps',
      DROVER_SBATCH_SIGNAL_AFTER: '540',
    });
    expect(map(['--signal=USR1@9']).left).toEqual(['--signal=USR1@9']);
  });
});

describe('where and when', () => {
  test('partitions, QOS and features by the table', async () => {
    const site = await table(
      'partitions: {gpu: a100s, long: {pool: slow, spot: true}, old: v100s}\n' +
        'qos: {high: interactive}\nconstraints: {ib: network=fabric}\n',
    );
    const plain = map(['-p', 'gpu', '-q', 'high', '-C', 'ib&nvme'], { table: site });
    expect(plain.left).toEqual([]);
    expect(plain.spec).toMatchObject({ pool: 'a100s', priority: 'interactive' });
    expect(plain.spec.placement.constraints).toMatchObject([
      { attribute: 'network', operator: 'EQ', values: ['fabric'] },
      { attribute: 'nvme', operator: 'EXISTS' },
    ]);
    expect(map(['-p', 'long'], { table: site }).spec).toMatchObject({
      pool: 'slow',
      placement: { interruptible: true },
    });
    expect(map(['-p', 'gpu,old'], { table: site }).spec.placement.constraints).toMatchObject([
      { attribute: 'pool', operator: 'IN', values: ['a100s', 'v100s'] },
    ]);
  });

  test('without a table they are listed; a band is its own name', () => {
    expect(map(['-p', 'gpu', '-q', 'high']).left).toEqual(['--partition=gpu', '--qos=high']);
    expect(map(['-q', 'interactive']).spec.priority).toBe('interactive');
  });

  test.each(['[', 'pools: {}', 'partitions: [a]', 'qos: {a: 3}'])(
    'a table %j is refused',
    async (text) => {
      await expect(table(text)).rejects.toThrow('sbatch.yaml');
    },
  );

  test('hosts, exclusive, spread', () => {
    const { spec, left } = map(['-w', 'n[1-2]', '-x', 'n3', '--exclusive', '--spread-job']);
    expect(left).toEqual([]);
    expect(spec.placement).toMatchObject({ exclusive: true, arrangement: 'spread' });
    expect(spec.placement.constraints).toMatchObject([
      { attribute: 'name', operator: 'IN', values: ['n1', 'n2'] },
      { attribute: 'name', operator: 'NE', values: ['n3'] },
    ]);
  });

  test('dependencies', () => {
    const { spec, left, singleton } = map([
      '-d',
      'afterok:j1:j2+5,afternotok:j3,afterany:j4,singleton,after:j5',
    ]);
    expect(spec.after).toEqual([
      { job: 'j1', when: 'ok' },
      { job: 'j2', when: 'ok' },
      { job: 'j3', when: 'failed' },
      { job: 'j4', when: 'any' },
    ]);
    expect([left, singleton]).toEqual([['--dependency=after:j5'], true]);
    expect(map(['-d', 'afterok:a?afterok:b']).left).toEqual(['--dependency=afterok:a?afterok:b']);
  });
});

describe('running', () => {
  test('only named variables leave this shell', () => {
    const { spec, left } = map(['--export=ALL,COLOUR,SIZE=3,NOT_SET']);
    expect(spec.env).toMatchObject({ COLOUR: 'red', SIZE: '3' });
    expect(spec.env).not.toHaveProperty('SECRET');
    expect(left).toEqual(['--export=ALL', '--export=NOT_SET']);
    expect(map([]).spec.env).not.toHaveProperty('SECRET');
    expect(map(['--export=NONE']).left).toEqual([]);
  });

  test('requeue, no-requeue, comment, name, directory', () => {
    expect(map(['--requeue']).spec).toMatchObject({ maxInterruptions: 100, retries: 0 });
    expect(map(['--no-requeue']).spec.maxInterruptions).toBe(0);
    const script = '#!/bin/sh\nscontrol requeue $SLURM_JOB_ID\n';
    expect(map([], { script }).spec.rules?.requeueExitCode).toBe(85);
    expect(map(['--no-requeue'], { script }).spec.rules).toBeUndefined();
    const options = ['--comment', 'a note', '-J', 'a name', '-D', 'sub'];
    const { spec } = map(options);
    expect(spec).toMatchObject({ name: 'a name', workdir: '/data/sub' });
    expect(spec.labels).toEqual({ comment: 'a note' });
    const sent = map(['-D', 'sub'], { workdir: '.' });
    expect([sent.spec.workdir, sent.left]).toEqual(['.', ['--chdir=sub']]);
    expect(sent.spec.env).not.toHaveProperty('SLURM_SUBMIT_DIR');
  });

  test('mail goes to the channel that the table names', async () => {
    const site = await table('mail: lab\n');
    const options = ['--mail-type=END,FAIL,STAGE_OUT', '--mail-user=ada@example.org'];
    const { spec, left } = map(options, { table: site });
    expect(spec.rules?.notify).toEqual([{ to: 'lab', on: ['done', 'failed'] }]);
    expect(left).toEqual(['--mail-type=STAGE_OUT']);
    expect(map(options).left).toEqual(options);
  });

  test("variables as Slurm's: some only where their option was given", () => {
    const { env } = map(['-N2', '--ntasks-per-node=2', '-c', '3', '--gpus-per-task=1']).spec;
    expect(env).toMatchObject({
      SLURM_NNODES: '2',
      SLURM_NTASKS: '4',
      SLURM_NTASKS_PER_NODE: '2',
      SLURM_TASKS_PER_NODE: '2(x2)',
      SLURM_CPUS_PER_TASK: '3',
      SLURM_CPUS_ON_NODE: '6',
      SLURM_GPUS_ON_NODE: '2',
      SLURM_GPUS_PER_TASK: '1',
      SLURM_SUBMIT_DIR: '/data',
    });
    const plain = map([]).spec.env;
    expect(plain).not.toHaveProperty('SLURM_CPUS_PER_TASK');
    expect(plain).not.toHaveProperty('SLURM_MEM_PER_NODE');
    expect(plain).not.toHaveProperty('DROVER_SBATCH_STEPS');
  });

  test('what has no equivalent is listed with where it stands and why', () => {
    const script =
      '#!/bin/tcsh\n#SBATCH -A physics\n#SBATCH --mail-type=ALL -b 16:00\n#SBATCH -H\n';
    expect(map(['--mem=0', '-L', 'matlab'], { script }).unmapped).toEqual([
      { option: '--mem=0', from: 'the command line', why: expect.stringContaining('memory') },
      { option: '--account=physics', from: 'line 2', why: expect.stringContaining('usage') },
      { option: '--mail-type=ALL', from: 'line 3', why: expect.any(String) },
      { option: '--begin=16:00', from: 'line 3', why: expect.any(String) },
      { option: '--hold', from: 'line 4', why: expect.any(String) },
      { option: '--licenses=matlab', from: 'the command line', why: expect.any(String) },
    ]);
  });
});

/** Each example with what of it goes nowhere. */
test.each([
  ['single-gpu.sh', ['--partition=gpu', '--mail-type=END,FAIL', '--mail-user=ada@example.org']],
  ['sweep.sh', []],
  ['torchrun.sh', []],
  ['mpi.sh', ['--hint=nomultithread', '--account=astro']],
  ['prepare.sh', []],
  ['evaluate.sh', []],
  ['requeue.sh', []],
  ['modules.sh', []],
  ['heredoc.sh', []],
  ['arguments.sh', []],
  ['analysis.py', []],
])('%s is a job the API takes', (file, expected) => {
  const { left, spec } = map([], { script: readFileSync(path.join(EXAMPLES, file), 'utf8') });
  expect(left).toEqual(expected);
  expect(spec.env['DROVER_SBATCH_SCRIPT']).toContain('#!');
});
