/** What work may cost, would cost and has cost: budget, run --plan and usage. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { PlanView } from '../protocol/budgets.ts';
import { capture } from './captured.ts';
import { problem, startFakeServer, type FakeServer } from './fakeServer.ts';

let fake: FakeServer;
beforeEach(async () => {
  fake = await startFakeServer();
});
afterEach(() => fake.close());

const run = (args: string[]) => capture(args, { url: fake.url });
const HOUR = 3_600_000;

describe('budget', () => {
  test('is made, changed in part, and shown as used of allowed', async () => {
    const made = await run(['budget', 'lab', '--set', 'devices=8,hours/day=100', '--mode', 'soft']);
    expect(made).toMatchObject({ code: 0, stderr: '' });
    expect(fake.requests.at(-1)).toMatchObject({ method: 'PUT', path: '/v1/budgets/lab' });
    expect(fake.requests.at(-1)!.body).toEqual({
      weight: 1,
      deviceMillis: 8000,
      deviceHoursPerDay: 100,
      deviceHoursPerMonth: null,
      microsPerDay: null,
      microsPerMonth: null,
      mode: 'soft',
      atLimit: 'finish',
      version: 0,
    });
    const changed = await run(
      ['budget', 'lab', '--set', 'weight=2', '--set', 'money/month=1000.50'].concat([
        '--unset',
        'hours/day',
        '--at-limit',
        'stop',
        '--json',
      ]),
    );
    expect(JSON.parse(changed.stdout)).toMatchObject({
      weight: 2,
      deviceMillis: 8000,
      deviceHoursPerDay: null,
      microsPerMonth: 1_000_500_000,
      mode: 'soft',
      atLimit: 'stop',
      version: 2,
    });
    expect((await run(['budget'])).stdout).toMatch(
      /lab +\(all\) +2 +0\/8 +0 +0 +0.00 +0.00\/1000.50 +soft +stop/,
    );
  });

  test('of a user, whose name may hold a slash', async () => {
    await run(['budget', 'lab/a/b', '--set', 'money/day=50']);
    expect(fake.requests.at(-1)!.path).toBe('/v1/budgets/lab/users/a%2Fb');
    expect((await run(['budget', 'lab/a/b'])).stdout).toMatch(/lab +a\/b .* 0.00\/50.00/);
    expect((await run(['budget', 'lab'])).stderr).toContain('no budget of lab');
    expect((await run(['budget', 'lab/a/b', '--delete'])).stdout).toContain('no budget any more');
    const again = await run(['budget', 'lab/a/b', '--delete']);
    expect(again.code).toBe(1);
    expect(again.stderr).toContain('there is no budget of lab/a/b');
  });

  test('what somebody else set meanwhile is not lost', async () => {
    await run(['budget', 'lab', '--set', 'devices=8']);
    fake.intercept = (request, response) => {
      if (request.method !== 'PUT') return false;
      expect(request.body).toMatchObject({ version: 1 });
      problem(response, 409, 'STALE', 'the budget is at version 2, not at 1');
      return true;
    };
    const result = await run(['budget', 'lab', '--set', 'devices=9']);
    expect(result.code).toBe(1);
    expect(result.stderr).toContain('error STALE: the budget is at version 2');
  });

  test('nothing there: what to type', async () => {
    expect((await run(['budget'])).stderr).toContain('drover budget TENANT --set devices=8');
  });

  test.each([
    [['--set', 'devices=8'], 'whose budget?'],
    [['lab', '--set', 'device=8'], 'did you mean devices?'],
    [['lab', '--set', 'devices'], 'write --set devices=VALUE'],
    [['lab', '--set', 'devices=-1'], 'is not a number'],
    [['lab', '--set', 'devices=8,devices=9'], 'devices is given twice'],
    [['lab', '--set', 'devices=8', '--unset', 'devices'], 'devices is given twice'],
    [['lab', '--set', 'money/day=5$'], 'not an amount of money'],
    [['lab', '--unset', 'everything'], 'weight, devices, hours/day'],
    [['lab', '--mode', 'firm'], 'soft, hard'],
    [['lab', '--at-limit', 'stopp'], 'did you mean stop?'],
    [['lab', '--delete', '--mode', 'hard'], 'nothing else goes with it'],
    [['/ada'], 'is not TENANT or TENANT/USER'],
    [['lab/'], 'is not TENANT or TENANT/USER'],
    [['lab', 'ada'], 'unexpected argument "ada"'],
  ])('bad input %j', async (args, expected) => {
    const result = await run(['budget', ...args]);
    expect(result.code).toBe(2);
    expect(result.stderr).toContain(expected);
  });
});

describe('run --plan', () => {
  const option: PlanView['options'][number] = {
    pool: 'a',
    startsAtMs: null,
    worker: null,
    pricePerHourMicros: 0,
    costMicros: null,
    reason: 'r',
  };

  test('alternatives, one per line, and nothing is submitted', async () => {
    const nowMs = Date.now();
    fake.accounts.planned.options = [
      { ...option, pool: 'b', startsAtMs: nowMs, worker: 'w7', pricePerHourMicros: 2_050_000 },
      { ...option, pool: 'c', startsAtMs: nowMs, pricePerHourMicros: 1, costMicros: 4_100_000 },
      { ...option, startsAtMs: nowMs + 6 * HOUR + 1000 },
      { ...option, pool: 'd' },
    ];
    const result = await run(['run', '--plan', '--gpus', '2', '--time', '2h', '--', 'x']);
    expect(result).toMatchObject({ code: 0, stderr: '' });
    expect(result.stdout.split('\n')).toEqual([
      'pool b: now on w7, 2.05 an hour (r)',
      'pool c: now, 4.10 at most, 0.000001 an hour (r)',
      'pool a: starts in 6h, free (r)',
      'pool d: starts later, free (r)',
      '',
    ]);
    expect(fake.jobs.size).toBe(0);
    expect(fake.requests.map(({ path }) => path)).toEqual(['/v1/plan']);
    expect(fake.requests[0]!.body).toMatchObject({ timeLimitMs: 2 * HOUR, command: ['x'] });
  });

  test('nowhere, and as JSON', async () => {
    fake.accounts.planned = { options: [], never: 'no pool has 99 GPUs' };
    const result = await run(['run', '--plan', '--gpus', '99', '--', 'x']);
    expect(result).toMatchObject({ code: 122, stdout: 'nowhere: no pool has 99 GPUs\n' });
    const json = await run(['run', '--plan', '--json', '--', 'x']);
    expect([json.code, JSON.parse(json.stdout)]).toEqual([122, fake.accounts.planned]);
    expect((await run(['run', '--plan', '-d', '--', 'x'])).stderr).toContain('exclude each other');
  });
});

describe('usage', () => {
  const row = { deviceHours: 1.25, cpuHours: 10, costMicros: 4_100_000, attempts: 3 };

  test('rows and their sum, of this month by user', async () => {
    fake.accounts.rows = [
      { key: 'lab/ada', ...row },
      { key: 'lab/bob', ...row },
    ];
    const { stdout } = await run(['usage']);
    expect(stdout).toMatch(/^USER +DEVICE HOURS +CPU HOURS +COST +ATTEMPTS$/m);
    expect(stdout).toMatch(/^lab\/ada +1\.\d +10\.0 +4\.10 +3$/m);
    expect(stdout).toMatch(/^total +2\.5 +20\.0 +8\.20 +6$/m);
    const { query } = fake.requests[0]!;
    expect(query.get('by')).toBe('user');
    const since = new Date(Number(query.get('sinceMs')));
    expect(since.toISOString()).toMatch(/-01T00:00:00.000Z$/);
  });

  test('from when to when', async () => {
    await run(['usage', '--by', 'day', '--since', '2026-11-01', '--until', '2026-11-08']);
    const { query } = fake.requests[0]!;
    expect(Number(query.get('sinceMs'))).toBe(Date.UTC(2026, 10, 1));
    expect(Number(query.get('untilMs'))).toBe(Date.UTC(2026, 10, 8));
    await run(['usage', '--since', '7d']);
    const since = Number(fake.requests[1]!.query.get('sinceMs'));
    expect(Math.abs(Date.now() - 168 * HOUR - since)).toBeLessThan(60_000);
    expect((await run(['usage', '--json'])).stdout).toBe('[]\n');
    expect((await run(['usage'])).stderr).toContain('nothing was used since');
  });

  test.each([
    [['--by', 'week'], '--by "week" is not known'],
    [['--since', '2026-13-99'], 'is not a date'],
    [['--since', 'yesterday'], 'is not a duration'],
    [['--since', '1d', '--until', '2d'], '--until lies before --since'],
  ])('bad input %j', async (args, expected) => {
    const result = await run(['usage', ...args]);
    expect(result.code).toBe(2);
    expect(result.stderr).toContain(expected);
  });
});
