/** What sacct prints, as real sites have it, and what nobody should have. */
import { describe, expect, test } from 'vitest';
import type { Priority } from '../../model/job.ts';
import { readSacct, SACCT_FIELDS } from './sacct.ts';
import {
  sacctDuration,
  sacctGres,
  sacctIdKind,
  sacctMemory,
  sacctTime,
  sacctTres,
} from './sacctFields.ts';
import type { SimulatedJob } from './workload.ts';

const GIB = 2 ** 30;
const MIB = 2 ** 20;

test.each([
  ['00:00:10', 10_000],
  ['1-02:03:04', 93_784_000],
  ['02:03.500', 123_000],
  ['10:00:00', 36_000_000],
  ['UNLIMITED', undefined],
  ['Partition_Limit', undefined],
  ['', undefined],
])('the duration %j', (text, ms) => expect(sacctDuration(text)).toBe(ms));

test.each([
  ['2026-03-01T12:00:05', Date.UTC(2026, 2, 1, 12, 0, 5)],
  ['2026-03-01 12:00', Date.UTC(2026, 2, 1, 12)],
  ['1772366405', 1_772_366_405_000],
  ['Unknown', undefined],
  ['None', undefined],
  ['yesterday', undefined],
])('the time %j', (text, ms) => expect(sacctTime(text)).toBe(ms));

test.each([
  ['4000M', 4000 * MIB],
  ['16Gn', 2 * 16 * GIB],
  ['4Gc', 8 * 4 * GIB],
  ['4000Mc', 8 * 4000 * MIB],
  ['1.5T', 1.5 * 2 ** 40],
  ['512', 512 * MIB],
  ['0n', 0],
  ['', 0],
  ['lots', undefined],
])('the memory %j of 8 CPUs on 2 nodes', (text, bytes) => {
  expect(sacctMemory(text, 2, 8)).toBe(bytes);
});

test.each([
  ['123', 'job'],
  ['123_4', 'job'],
  ['123+0', 'job'],
  ['123.batch', 'step'],
  ['123_4.0', 'step'],
  ['123_[5-9%2]', 'unstarted'],
  ['garbage', 'bad'],
  ['', 'bad'],
])('the id %j is a %s', (id, kind) => expect(sacctIdKind(id)).toBe(kind));

test('trackable resources with and without a model', () => {
  expect(sacctTres('billing=8,cpu=8,gres/gpu:a100=4,gres/gpu=4,mem=64G,node=2')).toEqual({
    cpus: 8,
    memory: '64G',
    nodes: 2,
    gpus: 4,
    model: 'a100',
  });
  expect(sacctTres('cpu=1')).toMatchObject({ gpus: 0, model: '' });
  expect(sacctGres('gpu:a100:2')).toEqual({ gpus: 2, model: 'a100' });
  expect(sacctGres('gpu:2,craynetwork:1')).toEqual({ gpus: 2, model: '' });
  expect(sacctGres('gpu')).toEqual({ gpus: 1, model: '' });
});

async function read(
  text: string,
  { pools = [] as string[], bands = [] as [string, Priority][] } = {},
) {
  async function* lines() {
    yield* text.split('\n');
  }
  const workload = await readSacct(
    { name: 'sacct.txt', lines: lines() },
    { pools: new Set(pools), bandOf: new Map(bands), seed: 1 },
  );
  const jobs: SimulatedJob[] = [];
  const iterator = workload.jobs();
  for (let next = iterator.next(); !next.done; next = iterator.next()) jobs.push(next.value);
  return { workload, jobs };
}

const HEADER = SACCT_FIELDS.join('|');
const row = (values: Partial<Record<(typeof SACCT_FIELDS)[number], string>>): string =>
  SACCT_FIELDS.map(
    (field) =>
      values[field] ??
      {
        JobID: '1',
        User: 'ada',
        Account: 'vision',
        Partition: 'gpu',
        QOS: 'normal',
        Submit: '2026-03-01T12:00:00',
        Start: '2026-03-01T12:01:00',
        End: '2026-03-01T13:01:00',
        Elapsed: '01:00:00',
        State: 'COMPLETED',
        NNodes: '1',
        ReqCPUS: '8',
        ReqMem: '64G',
        ReqTRES: 'billing=8,cpu=8,gres/gpu:a100=2,gres/gpu=2,mem=64G,node=1',
        Timelimit: '02:00:00',
      }[field],
  ).join('|');

describe('a file', () => {
  test('becomes jobs in order of their submission', async () => {
    const { jobs, workload } = await read(
      [HEADER, row({ JobID: '2', Submit: '2026-03-01T12:00:30' }), row({})].join('\n'),
    );
    expect(jobs.map(({ atMs }) => atMs)).toEqual([0, 30_000]);
    expect(workload.startMs).toBe(Date.UTC(2026, 2, 1, 12));
    expect(jobs[0]).toMatchObject({
      tenant: 'vision',
      user: 'ada',
      durationMs: 3_600_000,
      exitCode: 0,
      spec: {
        pool: '',
        priority: 'batch',
        timeLimitMs: 7_200_000,
        shape: { kind: 'single' },
        resources: {
          cpuMillis: 8000,
          memoryBytes: 64 * GIB,
          device: { count: 2, models: ['a100'] },
        },
      },
    });
    expect(jobs[0]?.spec).toBe(jobs[1]?.spec);
    expect(workload.summary.recorded?.at(-1)).toMatchObject({ count: 2, maxMs: 60_000 });
  });

  test('without a header has the usual columns', async () => {
    expect((await read(row({}))).jobs).toHaveLength(1);
  });

  test('with other columns in another order is read by its header', async () => {
    const { jobs } = await read(
      'Elapsed|JobIDRaw|Comment|JobID|Start|Submit|AllocCPUS|AllocTRES\n' +
        '00:10:00|7|x|7|2026-03-01T12:00:00|2026-03-01T12:00:00|4|cpu=4,mem=8G,node=1,gres/gpu=1\n',
    );
    expect(jobs[0]).toMatchObject({
      tenant: 'default',
      spec: { resources: { cpuMillis: 4000, memoryBytes: 8 * GIB, device: { count: 1 } } },
    });
  });

  test('several nodes are a gang with a share of each', async () => {
    const { jobs } = await read(
      [HEADER, row({ NNodes: '4', ReqCPUS: '128', ReqMem: '16Gn', ReqTRES: 'gres/gpu=32' })].join(
        '\n',
      ),
    );
    expect(jobs[0]?.spec).toMatchObject({
      shape: { kind: 'gang', size: 4 },
      resources: { cpuMillis: 32_000, memoryBytes: 16 * GIB, device: { count: 8, models: [] } },
    });
  });

  test('a partition is a pool where there is one; bands come by name', async () => {
    const text = [HEADER, row({}), row({ Partition: 'debug' }), row({ QOS: 'urgent' })].join('\n');
    const { jobs } = await read(text, {
      pools: ['gpu'],
      bands: [
        ['urgent', 'production'],
        ['debug', 'interactive'],
      ],
    });
    expect(jobs.map(({ spec }) => [spec.pool, spec.priority])).toEqual([
      ['gpu', 'batch'],
      ['', 'interactive'],
      ['gpu', 'production'],
    ]);
  });

  test('what cannot be used is counted by reason, with its lines', async () => {
    const { workload, jobs } = await read(
      [
        HEADER,
        row({}),
        row({ JobID: '1.batch' }),
        row({ JobID: '9_[1-5]' }),
        row({ Start: 'Unknown', State: 'PENDING' }),
        'one|two|three',
        row({ JobID: 'garbage' }),
        row({ Submit: 'Unknown' }),
        row({ Elapsed: 'INVALID', End: 'Unknown' }),
        row({ Elapsed: '00:00:00', State: 'CANCELLED by 0' }),
        row({ ReqMem: '??' }),
        row({ NNodes: '5000' }),
        '',
      ].join('\n'),
    );
    expect(jobs).toHaveLength(1);
    expect(
      Object.fromEntries(workload.summary.skipped.map((one) => [one.reason, one.lines])),
    ).toEqual({
      'a step of a job (ask sacct for -X)': [3],
      'it had not started': [4, 5],
      'too few columns': [6],
      'no job id': [7],
      'no time of submission': [8],
      'no elapsed time': [9],
      'it ran for no time': [10],
      'memory that cannot be read': [11],
      'more than 1024 nodes': [12],
    });
  });

  test.each(['', 'hello\nworld\n', `${HEADER}\n`, 'a|b|c\n1|2|3\n'])(
    'that is none is refused with the command that makes one: %j',
    async (text) => {
      await expect(read(text)).rejects.toMatchObject({
        code: 'INVALID_ARGUMENT',
        hint: expect.stringContaining('sacct -a -X -P'),
      });
    },
  );
});
