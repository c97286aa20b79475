/** Where a job may run, when and for how much: the flags, the file's keys, and what is wrong. */
import * as fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { CONSTRAINT_OPERATORS, type Constraint } from '../model/placement.ts';
import { capture } from './captured.ts';
import { parseConstraint, showConstraint } from './constraints.ts';
import { startFakeServer, type FakeServer } from './fakeServer.ts';
import { parseMoney, showMoney } from './money.ts';

let fake: FakeServer;
beforeEach(async () => {
  fake = await startFakeServer();
});
afterEach(() => fake.close());

const run = (flags: string[]) => capture(['run', '-d', ...flags, '--', 'true'], { url: fake.url });
const submit = (stdin: string) => capture(['submit', '-f', '-'], { url: fake.url, stdin });
const specs = () => [...fake.jobs.values()].map((job) => job.spec);
const hard = (attribute: string, operator: Constraint['operator'], ...values: string[]) => ({
  attribute,
  operator,
  values,
});

describe('constraints', () => {
  test.each([
    ['rack=b12', hard('rack', 'EQ', 'b12')],
    ['rack == b12', hard('rack', 'EQ', 'b12')],
    ['rack!=b12', hard('rack', 'NE', 'b12')],
    ['disk in nvme,ssd', hard('disk', 'IN', 'nvme', 'ssd')],
    ['disk IN nvme, ssd', hard('disk', 'IN', 'nvme', 'ssd')],
    ['cuda>12', hard('cuda', 'GT', '12')],
    ['cuda < 13.5', hard('cuda', 'LT', '13.5')],
    ['exists:nvlink', hard('nvlink', 'EXISTS')],
    ['label=a=b', hard('label', 'EQ', 'a=b')],
    ['in=x', hard('in', 'EQ', 'x')],
    ['note=made in X', hard('note', 'EQ', 'made in X')],
  ])('%s', (text, expected) => expect(parseConstraint(text, 'c')).toEqual(expected));

  test.each([
    ['', /is no constraint/],
    ['rack', /is no constraint/],
    ['=b12', /is no constraint/],
    ['a b=c', /is no constraint/],
    ['rack=', /names no value/],
    ['disk in', /names no value/],
    ['disk in a,,b', /empty value/],
    ['cuda>new', /> compares numbers, "new" is none/],
    ['cuda>=12', /there is no >=/],
    ['exists:', /is no constraint/],
  ])('refuses %j', (text, message) => {
    expect(() => parseConstraint(text, '--constraint')).toThrow(message);
  });

  test('what is shown can be typed again', () => {
    const word = fc.stringMatching(/^[a-z][a-z0-9-]{0,8}$/);
    const one = fc.constantFrom(...CONSTRAINT_OPERATORS).chain((operator) => {
      const number = operator === 'GT' || operator === 'LT';
      const count = operator === 'EXISTS' ? 0 : 1;
      const values = fc.array(number ? fc.nat().map(String) : word, {
        minLength: count,
        maxLength: operator === 'IN' ? 4 : count,
      });
      return fc.record({ attribute: word, operator: fc.constant(operator), values });
    });
    fc.assert(
      fc.property(one, (constraint) => {
        const shown = showConstraint({ ...constraint, preferred: false });
        expect(parseConstraint(shown, 'c')).toEqual(constraint);
      }),
    );
  });
});

test('money is exact to the millionth', () => {
  expect(['4.10', '25', '0.000001', '0.5'].map((text) => parseMoney(text, 'm'))).toEqual([
    4_100_000, 25_000_000, 1, 500_000,
  ]);
  for (const text of ['', '-1', '1e3', '$4', '4,10', '0.0000001']) {
    expect(() => parseMoney(text, '--max-cost')).toThrow(/--max-cost.* is not an amount of money/);
  }
  expect([4_100_000, 0, 25_000_000, 2500, 1].map(showMoney)).toEqual([
    '4.10',
    '0.00',
    '25.00',
    '0.0025',
    '0.000001',
  ]);
});

const everything = {
  placement: {
    constraints: [
      { ...hard('rack', 'EQ', 'b12'), preferred: false },
      { ...hard('cuda', 'GT', '12'), preferred: false },
      { ...hard('disk', 'IN', 'nvme', 'ssd'), preferred: true },
    ],
    arrangement: 'spread',
    exclusive: true,
    antiAffinity: 'db',
    locality: 'rack',
    interruptible: true,
    trust: 'restricted',
  },
  after: [
    { job: 'j0', when: 'ok' },
    { job: 'j00', when: 'failed' },
    { job: 'j000', when: 'any' },
  ],
  maxCostMicros: 4_100_000,
  shape: { kind: 'gang', size: 4 },
};

test('every flag arrives', async () => {
  const result = await run(
    [
      ['--constraint', 'rack=b12', '--constraint', 'cuda>12', '--prefer', 'disk in nvme,ssd'],
      ['--spread', '--exclusive', '--anti-affinity', 'db', '--locality', 'rack', '--spot'],
      ['--after', 'j0', '--after', 'j00:failed', '--after', 'j000:any', '--nodes', '4'],
      ['--trust', 'restricted', '--max-cost', '4.10'],
    ].flat(),
  );
  expect(result).toMatchObject({ code: 0, stderr: '' });
  expect(specs()[0]).toMatchObject(everything);
});

test('and so do the keys of a file', async () => {
  const result = await submit(`
command: x
gang: 4
constraint: [rack=b12, { attribute: cuda, operator: GT, values: ["12"] }]
prefer: disk in nvme,ssd
spread: true
exclusive: true
anti-affinity: db
locality: rack
spot: true
trust: restricted
after: [j0, "j00:failed", { job: j000, when: any }]
max-cost: 4.10
`);
  expect(result).toMatchObject({ code: 0, stderr: '' });
  expect(specs()[0]).toMatchObject(everything);
});

test('flags that are not given leave nothing in the specification', async () => {
  await run([]);
  expect(specs()).toEqual([{ command: ['true'] }]);
});

test('the API’s own form of it passes as it is', async () => {
  const { placement, maxCostMicros } = everything;
  await submit(JSON.stringify({ command: ['x'], placement, maxCostMicros }));
  expect(specs()[0]).toEqual({ command: ['x'], placement, maxCostMicros });
});

test.each([
  [['--constraint', 'rack'], /--constraint "rack" is no constraint\ntry: write rack=b12/],
  [['--after', 'j1:okay'], /--after j1: how "okay" is not known\ntry: ok, failed, any/],
  [['--after', ':ok'], /names no job/],
  [['--trust', 'high'], /--trust "high" is not known\ntry: normal, restricted/],
  [['--max-cost', '$4'], /not an amount of money\ntry: write it without a currency/],
  [['--locality', 'rack'], /this job has none\ntry: add a gang/],
  [['--array', '0-9%'], /after % goes how many tasks may run at once/],
  [['--spread=no'], /--spread takes no value/],
])('bad flags %j', async (flags, expected) => {
  const result = await run(flags);
  expect(result.code).toBe(125);
  expect(result.stderr).toMatch(expected);
  expect(fake.requests).toEqual([]);
});

test.each([
  ['constraint: [{ attribute: x }]', /without attribute and operator/],
  ['constraint: [{ attribute: x, operator: LIKE }]', /operator "LIKE" is not known/],
  ['after: [{ when: ok }]', /after has an entry without job/],
  ['after: [{ job: a, when: faild }]', /did you mean failed/],
  ['spread: maybe', /spread is not true or false/],
  ['spot: true\nplacement: {}', /spot and placement exclude/],
  ['spot: true\ninterruptible: true', /spot is given twice/],
])('bad files %j', async (text, expected) => {
  const result = await submit(`command: x\n${text}`);
  expect(result.code).toBe(2);
  expect(result.stderr).toMatch(expected);
});

describe('files longer than one call', () => {
  const filler = Array.from({ length: 999 }, () => ({ command: ['x'] }));
  const named = (name: string, after?: string) => ({
    name,
    command: ['x'],
    ...(after && { after }),
  });

  test('a name of an earlier part becomes its id, one of the same part stays a name', async () => {
    const jobs = [named('a'), ...filler, named('b', 'a'), named('c', 'b')];
    await submit(JSON.stringify(jobs));
    const waiting = specs().flatMap(({ after = [] }) => after.map(({ job }) => job));
    expect(waiting).toEqual(['j1', 'b']);
  });

  test('a name of a later part is refused before anything is sent', async () => {
    const result = await submit(JSON.stringify([named('a', 'b'), ...filler, named('b')]));
    expect(result.code).toBe(2);
    expect(result.stderr).toContain('job 1: after "b" names job 1001');
    expect(fake.requests).toEqual([]);
  });
});

test('drover job shows what was asked for', async () => {
  await run(['--constraint', 'rack=b12', '--prefer', 'exists:nvlink', '--spot', '--after', 'j9']);
  fake.jobs.get('j1')!.spec.maxCostMicros = 4_100_000;
  const { stdout } = await capture(['job', 'j1'], { url: fake.url });
  expect(stdout).toMatch(/^constraints +rack=b12$/m);
  expect(stdout).toMatch(/^prefers +exists:nvlink$/m);
  expect(stdout).toMatch(/^placement +interruptible$/m);
  expect(stdout).toMatch(/^after +j9:ok$/m);
  expect(stdout).toMatch(/^max cost +4.10$/m);
});
