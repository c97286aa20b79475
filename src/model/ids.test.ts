/** Ids: how they are minted, sorted, made of each other and taken apart. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { JOB_LIMITS, jobSpec } from '../protocol/jobSpec.ts';
import {
  attemptUid,
  idMinter,
  indexOfTask,
  jobOfTask,
  parseAttemptUid,
  taskId,
  type ClusterId,
  type JobId,
} from './ids.ts';

const cluster = 'c0123456789ab' as ClusterId;

describe('minted ids', () => {
  test('sort in the order they were minted, over many lengths of the counter', () => {
    const mint = idMinter(cluster, 1_800_000_000_000);
    const ids = Array.from({ length: 50_000 }, () => mint('j'));
    expect(ids.toSorted()).toEqual(ids);
    expect(new Set(ids).size).toBe(ids.length);
  });

  test('of a later epoch sort after all of an earlier one', () => {
    const early = idMinter(cluster, 1_800_000_000_000);
    for (let i = 0; i < 5000; i++) early('j');
    expect(early('j') < idMinter(cluster, 1_800_000_000_001)('j')).toBe(true);
  });

  test('of two clusters differ, also at the same moment', () => {
    const other = idMinter('c0123456789ac' as ClusterId, 1_800_000_000_000);
    expect(other('j')).not.toBe(idMinter(cluster, 1_800_000_000_000)('j'));
  });

  test('are short, and safe in names of files and hosts', () => {
    expect(idMinter(cluster, Date.now())('j')).toMatch(/^j[a-z0-9]{11,20}$/);
  });
});

describe('an attempt’s uid', () => {
  const job = idMinter(cluster, 1_800_000_000_000)('j') as JobId;

  test('names its job, task and number', () => {
    const anIndex = fc.integer({ min: 0, max: 1_000_000_000 });
    fc.assert(
      fc.property(anIndex, fc.integer({ min: 1, max: 999_999_999 }), (index, n) => {
        const task = taskId(job, index);
        expect([jobOfTask(task), indexOfTask(task)]).toEqual([job, index]);
        expect(parseAttemptUid(attemptUid(task, n, 'ab12'))).toEqual({ job, index, n });
      }),
    );
  });

  test('of the highest index a job may have is understood', () => {
    const index = 1_000_000_000;
    jobSpec.parse({ command: ['x'], shape: { kind: 'array', indices: [index] } });
    expect(JOB_LIMITS.arrayTasks).toBeLessThan(index);
    expect(parseAttemptUid(attemptUid(taskId(job, index), 1, 'ab'))?.index).toBe(index);
  });

  test.each(['', 'j1', 'j1.0', 'j1.0.1', 'j1.0.1.', 'j1.0.1.xyz', 'j1.a.1.ab', '../x.0.1.ab'])(
    '%j is none',
    (text) => {
      expect(parseAttemptUid(text)).toBeNull();
    },
  );
});
