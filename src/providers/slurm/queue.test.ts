/** What squeue prints, whole, cut and garbled; lists of nodes; names of jobs. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { expandHostlist, HOSTLIST_NODES } from './hostlist.ts';
import { batchOf, createJobNames } from './names.ts';
import { QUEUE_FORMAT, readDetails, readQueue, readSpan, readTime } from './queue.ts';

const BETWEEN = '\u001F';
const HEADING = QUEUE_FORMAT.replaceAll(/%\w/g, 'X').replace('X', 'JOBID');
const line = (...parts: string[]): string => parts.join(BETWEEN);
const ours = (id: string, state = 'RUNNING'): string =>
  line(
    ...[id, state, 'None', 'n1', '2026-11-15T20:25:03', '9:59', 'drover', '1', 'N/A', 'gpu'],
    'drover-c1-gpus.i0abc',
  );
const PREFIX = 'drover-c1-gpus.';

describe('the list of jobs', () => {
  test('is read, whatever a login prints before it', () => {
    const text = ['<html>Welcome</html>', '', HEADING, ours('8_1'), ours('9', 'PENDING'), ''];
    const queue = readQueue(text.join('\n'), PREFIX);
    expect(queue).toMatchObject({
      jobs: [
        {
          ...{ id: '8_1', place: 1, state: 'RUNNING', host: 'n1', leftMs: 599_000 },
          ...{ startsAtMs: Date.UTC(2026, 10, 15, 20, 25, 3), name: 'drover-c1-gpus.i0abc' },
        },
        { id: '9', place: null, state: 'PENDING' },
      ],
    });
  });

  test.each([
    ['nothing at all', ''],
    ['a page', '<html><body>502 Bad Gateway</body></html>'],
    ['an error that ended with 0', 'slurm_load_jobs error: Unable to contact slurm controller'],
    ['jobs without a heading', ours('8')],
  ])('%s is no empty list', (_, text) => {
    expect(readQueue(text, PREFIX)).toHaveProperty('problem');
  });

  test('a line of ours that was cut makes all of it unknown, one of others does not', () => {
    const cut = (text: string) => readQueue(`${HEADING}\n${ours('8')}\n${text}`, PREFIX);
    expect(cut(`7${BETWEEN}RUNNING${BETWEEN}drover-c1-gpus.i0abc`)).toHaveProperty('problem');
    expect(cut('a name\nwith a line break')).toMatchObject({ jobs: [{ id: '8' }] });
    expect(readQueue(HEADING, PREFIX)).toEqual({ jobs: [] });
  });

  test('never throws, and never invents a job of ours', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 200 }), (noise) => {
        const queue = readQueue(`${HEADING}\n${noise}\n${ours('8')}`, PREFIX);
        if ('problem' in queue) return;
        const mine = queue.jobs.filter(({ name }) => name.startsWith(PREFIX));
        expect(mine.map(({ id }) => id)).toEqual(['8']);
      }),
    );
  });

  test('every job that Slurm can show is read back', () => {
    const word = fc.stringMatching(/^[\w .|,:()[\]-]{0,30}$/);
    const job = fc.tuple(fc.nat(), fc.option(fc.nat({ max: 9999 })), word, word);
    fc.assert(
      fc.property(fc.array(job), (jobs) => {
        const lines = jobs.map(([id, place, reason, name]) =>
          line(
            ...[
              place === null ? `${id}` : `${id}_${place}`,
              'PENDING',
              reason,
              '',
              'N/A',
              'UNLIMITED',
            ],
            ...['ada', '1', 'gres:gpu:1', 'gpu', name],
          ),
        );
        const queue = readQueue([HEADING, ...lines].join('\n'), PREFIX);
        const found = 'jobs' in queue ? queue.jobs : [];
        expect(found.map(({ reason, name, place }) => [place, reason, name])).toEqual(
          jobs.map(([, place, reason, name]) => [place, reason.trim(), name.trim()]),
        );
      }),
    );
  });

  test('restarts and ends are read in both ways that Slurm writes them', () => {
    const details = readDetails(
      [
        '8_0    2    0  ',
        '10  0  768',
        '11 0 9',
        '12 1 3:0',
        '13 0 0:15',
        '',
        'squeue: error',
      ].join('\n'),
    );
    expect(Object.fromEntries(details)).toEqual({
      '8_0': { restarts: 2, code: 0, signal: 0 },
      '10': { restarts: 0, code: 3, signal: 0 },
      '11': { restarts: 0, code: 0, signal: 9 },
      '12': { restarts: 1, code: 3, signal: 0 },
      '13': { restarts: 0, code: 0, signal: 15 },
    });
  });

  test('times and spans', () => {
    expect(readTime('N/A')).toBeNull();
    expect(readTime('2026-02-31T99:00:00')).toBeNull();
    const spans = { '1-02:03:04': 93_784_000, '02:03:04': 7_384_000, '3:04': 184_000, '0:00': 0 };
    for (const [text, ms] of Object.entries(spans)) expect(readSpan(text)).toBe(ms);
    for (const text of ['UNLIMITED', 'NOT_SET', '']) expect(readSpan(text)).toBeNull();
    expect(readSpan('INVALID')).toBe(0);
  });
});

describe('lists of nodes', () => {
  test.each([
    ['n1', ['n1']],
    ['n[1-3,7]', ['n1', 'n2', 'n3', 'n7']],
    ['n[08-10],login', ['n08', 'n09', 'n10', 'login']],
    ['r[1-2]c[1-2]', ['r1c1', 'r1c2', 'r2c1', 'r2c2']],
    ['gpu-a[1],gpu-a1', ['gpu-a1']],
    ['', []],
  ])('%s', (text, names) => {
    expect(expandHostlist(text)).toEqual(names);
  });

  test.each(['n[', 'n[1-', 'n]1[', 'n[3-1]', 'n[a-b]', 'n1 n2', 'n[1-999999999]', '(null)['])(
    'what is none: %s',
    (text) => {
      expect(expandHostlist(text)).toBeUndefined();
    },
  );

  test(`at most ${HOSTLIST_NODES}`, () => {
    expect(expandHostlist(`n[1-${HOSTLIST_NODES}]`)).toHaveLength(HOSTLIST_NODES);
    expect(expandHostlist(`n[0-${HOSTLIST_NODES}]`)).toBeUndefined();
    expect(expandHostlist('a[1-999]b[1-999]')).toBeUndefined();
  });

  test('never throws, and gives back plain names as they are', () => {
    fc.assert(fc.property(fc.string(), (text) => void expandHostlist(text)));
    const name = fc.stringMatching(/^[a-z][a-z0-9.-]{0,20}$/);
    fc.assert(
      fc.property(fc.uniqueArray(name, { minLength: 1 }), (names) => {
        expect(expandHostlist(names.join(','))).toEqual(names);
      }),
    );
  });
});

describe('names of jobs', () => {
  test('any pool and cluster knows its own, and no other', () => {
    const name = fc.string({ minLength: 1, maxLength: 100 });
    const batch = fc.stringMatching(/^i0[a-z0-9]{1,20}$/);
    fc.assert(
      fc.property(name, name, name, batch, (cluster, pool, other, id) => {
        const names = createJobNames(cluster, pool);
        const jobName = names.jobName(id);
        expect(jobName).toMatch(/^[\w.-]+$/);
        expect(names.labelOf(jobName, null)).toBe(id);
        expect(names.labelOf(jobName, 3)).toBe(`${id}.3`);
        expect(batchOf(`${id}.3`)).toBe(id);
        if (other !== pool)
          expect(createJobNames(cluster, other).labelOf(jobName, null)).toBeUndefined();
        if (other !== cluster)
          expect(createJobNames(other, pool).labelOf(jobName, 0)).toBeUndefined();
      }),
    );
  });
});
