/** Tests of a worker's attributes, one operator at a time. */
import { OPEN_TERMS } from '../../model/placement.ts';
import { describe, expect, test } from 'vitest';
import type { Constraint } from '../../model/placement.ts';
import { preference, satisfies, unsuitable } from './constraints.ts';
import { testRequest, testWorker } from './testFleet.ts';

const worker = testWorker('w1', {
  pool: 'lab',
  network: 'lan',
  attributes: { zone: 'a', cores: '16', empty: '', pool: 'a lie' },
});

const constraint = (attribute: string, operator: Constraint['operator'], ...values: string[]) => ({
  attribute,
  operator,
  values,
  preferred: false,
});

describe('a constraint', () => {
  test.each<[boolean, ...Parameters<typeof constraint>]>([
    [true, 'zone', 'EQ', 'a'],
    [false, 'zone', 'EQ', 'A'],
    [false, 'rack', 'EQ', ''],
    [true, 'empty', 'EQ', ''],
    [false, 'zone', 'NE', 'a'],
    [true, 'zone', 'NE', 'b'],
    [true, 'rack', 'NE', 'b'],
    [true, 'zone', 'IN', 'b', 'a'],
    [false, 'zone', 'IN', 'b'],
    [false, 'rack', 'IN', 'b'],
    [true, 'cores', 'GT', '9'],
    [false, 'cores', 'GT', '16'],
    [true, 'cores', 'LT', '16.5'],
    [false, 'cores', 'LT', '16'],
    [false, 'zone', 'GT', '1'],
    [false, 'zone', 'LT', '1'],
    [false, 'empty', 'LT', '1'],
    [false, 'rack', 'GT', '-1'],
    [true, 'empty', 'EXISTS'],
    [false, 'rack', 'EXISTS'],
    [false, 'toString', 'EXISTS'],
    [true, 'pool', 'EQ', 'lab'],
    [true, 'name', 'EQ', 'w1'],
    [true, 'network', 'IN', 'wan', 'lan'],
  ])('is %s: %s %s %s %s', (holds, ...what) => {
    expect(satisfies(worker, constraint(...what))).toBe(holds);
  });

  test('that is only preferred rules nothing out; how many hold is counted', () => {
    const constraints = [
      { ...constraint('zone', 'EQ', 'a'), preferred: true },
      { ...constraint('cores', 'GT', '99'), preferred: true },
      { ...constraint('rack', 'NE', '7'), preferred: true },
    ];
    expect(unsuitable(worker, testRequest({ constraints }))).toBeNull();
    expect(preference(worker, testRequest({ constraints }))).toBe(2);
    const hard = constraints.map((each) => ({ ...each, preferred: false }));
    expect(unsuitable(worker, testRequest({ constraints: hard }))).toBe('constraint');
    expect(preference(worker, testRequest({ constraints: hard }))).toBe(0);
  });
});

describe('terms of a worker', () => {
  const terms = { ...OPEN_TERMS, tenants: [] as string[] };

  test.each<[string, Partial<typeof terms>, Parameters<typeof testRequest>, boolean]>([
    ['its tenant', { tenants: ['lab', 'x'] }, [], true],
    ['another tenant', { tenants: ['x'] }, [], false],
    ['work that may be stopped', { interruptibleOnly: true }, [{ interruptible: true }], true],
    ['work that may not', { interruptibleOnly: true }, [], false],
    ['a stranger for normal work', { marketplace: true }, [], true],
    ['a stranger for restricted work', { marketplace: true }, [{ trust: 'restricted' }], false],
    ['restricted work at home', {}, [{ trust: 'restricted' }], true],
  ])('%s', (_what, more, [placement], allowed) => {
    const where = testWorker('w', { terms: { ...terms, ...more } });
    expect(unsuitable(where, testRequest(placement))).toBe(allowed ? null : 'terms');
  });
});
