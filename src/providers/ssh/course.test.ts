/** What becomes of an instance, what a look says, and where a host drifts. */
import { describe, expect, test } from 'vitest';
import { courseOf, lastWords } from './course.ts';
import { driftOf } from './drift.ts';
import { parseReport, type HostReport, type InstanceReport } from './report.ts';

const instance = (more: Partial<InstanceReport> = {}): InstanceReport => ({
  ...{ label: 'i1', state: 'ended', version: '1', resources: '', url: '', log: '' },
  ...{ starts: { inRow: 1, lastS: 100 }, exit: null, rebooted: false },
  ...more,
});

describe('the course of an instance', () => {
  test('each restart in a row waits twice as long, from its end on', () => {
    const waits = [1, 2, 3, 4, 5, 10].map((inRow) => {
      const course = courseOf(
        instance({ starts: { inRow, lastS: 100 }, exit: { code: 1, atS: 200 } }),
        200,
        10,
      );
      return course.kind === 'restart' && course.waitMs;
    });
    expect(waits).toEqual([1000, 2000, 4000, 8000, 16_000, 60_000]);
    const exit = { code: 1, atS: 200 };
    expect(courseOf(instance({ exit }), 201, 1)).toMatchObject({ kind: 'restart', waitMs: 0 });
    // A clock that was set back must not make it wait for years.
    expect(courseOf(instance({ exit }), 1, 1)).toMatchObject({ kind: 'restart', waitMs: 1000 });
  });

  test('too often is over; a reboot never is', () => {
    const often = instance({ starts: { inRow: 4, lastS: 100 }, exit: { code: 9, atS: 200 } });
    expect(courseOf(often, 300, 3)).toEqual({
      kind: 'over',
      failure: 'INFRA_FATAL',
      reason: 'the agent ended with code 9. It did so 4 times in a row, and is not started again',
    });
    expect(courseOf({ ...often, rebooted: true }, 300, 3)).toMatchObject({
      kind: 'restart',
      waitMs: 0,
    });
    expect(courseOf(instance(), 300, 0)).toMatchObject({ kind: 'over' });
    expect(courseOf(instance({ state: 'cut' }), 300, 3)).toMatchObject({ kind: 'over' });
    expect(courseOf(instance({ state: 'stopping' }), 300, 3)).toEqual({ kind: 'ending' });
  });

  test('an agent that could not be fetched is sent', () => {
    const unfetched = instance({ exit: { code: 97, atS: 1 } });
    expect(courseOf(unfetched, 300, 3)).toMatchObject({ upload: true });
    expect(courseOf(instance(), 300, 3)).toMatchObject({ upload: false });
  });

  test('its last words are those of its last run, JSON by its message', () => {
    const json = JSON.stringify({ level: 50, msg: 'cannot join', err: { message: 'refused' } });
    const log = `older\ndrover: start 2 under i1\n${json}\n{"cut\n\nplain\n`;
    expect(lastWords(log)).toBe(': cannot join: refused | {"cut | plain');
    expect(lastWords('')).toBe('');
  });
});

const LOOK = `clock 1700000000
platform Linux-x86_64
free 1048576
cpus 8
memory 16384
other c1/a%2Fb
label i1
version 1
resources cpus=8
starts 3 2 1699999999
exit 1 1699999998
state ended
log -
first line
log - of something
`;

describe('a look', () => {
  test('is read line by line; what is missing is not known', () => {
    const report = parseReport(LOOK)!;
    expect(report).toMatchObject({
      ...{ clockS: 1_700_000_000, freeBytes: 2 ** 30, cpus: 8, gpus: null, others: ['c1/a/b'] },
      instance: {
        ...{ label: 'i1', state: 'ended', starts: { inRow: 2 }, exit: { code: 1 } },
        log: 'first line\nlog - of something\n',
      },
    });
    expect(parseReport('clock 1\nfree -\n')).toMatchObject({ freeBytes: null, instance: null });
    expect(parseReport('bash: syntax error\n')).toBeUndefined();
    expect(parseReport('')).toBeUndefined();
  });

  test('drift is told only where there is some', () => {
    const report: HostReport = { ...parseReport(LOOK)!, gpus: 3 };
    const wanted = { version: '1', resources: 'cpus=8', freeBytes: 1, clockOffMs: 5000 };
    expect(driftOf(report, -4999, wanted)).toEqual([]);
    expect(driftOf(report, 6000, { ...wanted, resources: 'cpus=8,mem=16Mi,gpus=4' })).toEqual([
      expect.stringContaining('it was launched to offer cpus=8, the settings say cpus=8,mem=16Mi'),
      'it shows 3 GPUs, the settings say 4',
      'its clock is 6 s ahead',
    ]);
    expect(
      driftOf({ ...report, freeBytes: 2 ** 20 }, 0, { ...wanted, freeBytes: 2 ** 21 }),
    ).toEqual(['only 1 MiB are free']);
  });
});
