/** Durations, resources, arrays and arguments as people write them. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseArgs } from './args.ts';
import { parseDuration, shortDuration } from './durations.ts';
import { parseArray, parseCpus, parseGpus, parseMemory, showMemory } from './resources.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const part = (most: number) => fc.integer({ min: 0, max: most });
const two = (n: number): string => String(n).padStart(2, '0');

describe('durations', () => {
  test.each([
    ['90', 90 * MINUTE],
    ['0', 0],
    ['10:30', 10 * MINUTE + 30_000],
    ['2:00:00', 2 * HOUR],
    ['1-00:00:00', DAY],
    ['2-12', 2 * DAY + 12 * HOUR],
    ['2-12:30', 2 * DAY + 12 * HOUR + 30 * MINUTE],
    ['90m', 90 * MINUTE],
    ['2h', 2 * HOUR],
    ['1h30m', HOUR + 30 * MINUTE],
    ['1.5h', HOUR + 30 * MINUTE],
    ['45S', 45_000],
    ['250ms', 250],
    ['1w', 7 * DAY],
  ])('%s', (text, expected) => expect(parseDuration(text, '--time')).toBe(expected));

  test.each(['', 'soon', '1-', '-5m', '5x', '1h 30m', '1:2:3:4', '1e9', '99999d', '5m5', '١m'])(
    'refuses %j',
    (text) => expect(() => parseDuration(text, '--time')).toThrow(/--time/),
  );

  test('what Slurm prints is read back', () => {
    fc.assert(
      fc.property(part(3000), part(23), part(59), part(59), (days, hours, minutes, seconds) => {
        const text = `${days}-${two(hours)}:${two(minutes)}:${two(seconds)}`;
        const expected = days * DAY + hours * HOUR + minutes * MINUTE + seconds * 1000;
        expect(parseDuration(text, 't')).toBe(expected);
      }),
    );
  });

  test('short forms', () => {
    const shown = [0, 59_999, 60_000, 61_000, 754_000, HOUR + 5 * MINUTE, 3 * DAY + 4 * HOUR, -5];
    const text = shown.map(shortDuration).join(' ');
    expect(text).toBe('0s 59s 1m 1m1s 12m 1h5m 3d4h 0s');
  });
});

describe('resources', () => {
  test.each([
    ['1', { count: 1 }],
    ['8', { count: 8 }],
    ['0.5', { count: 1, share: 500 }],
    ['A100:2', { count: 2, models: ['A100'] }],
    ['A100', { count: 1, models: ['A100'] }],
    ['A100,H100:4', { count: 4, models: ['A100', 'H100'] }],
    ['A100-80GB:1', { count: 1, models: ['A100-80GB'] }],
    ['4090:2', { count: 2, models: ['4090'] }],
    ['80GB:1', { count: 1, memoryBytes: 80e9 }],
    ['80G:1', { count: 1, memoryBytes: 80e9 }],
    ['80GiB', { count: 1, memoryBytes: 80 * 2 ** 30 }],
    ['T4:0.25', { count: 1, share: 250, models: ['T4'] }],
  ])('gpus %s', (text, expected) => {
    expect(parseGpus(text, '--gpus')).toEqual({ kind: 'gpu', ...expected });
  });

  test('no gpus', () => expect(parseGpus('0', '--gpus')).toBeNull());

  test.each(['', ':', ':2', 'A100:', 'A100:x', '1.5', '-1', 'A100:-1', ',:1', '0.0001', 'A,,B:1'])(
    'refuses gpus %j',
    (text) => expect(() => parseGpus(text, '--gpus')).toThrow(/--gpus/),
  );

  test.each([
    ['512M', 512 * 2 ** 20],
    ['64G', 64 * 2 ** 30],
    ['64Gi', 64 * 2 ** 30],
    ['64GiB', 64 * 2 ** 30],
    ['64gb', 64e9],
    ['1.5T', 1.5 * 2 ** 40],
  ])('memory %s', (text, expected) => expect(parseMemory(text, '--mem')).toBe(expected));

  test.each(['', '64', 'G', '64X', '-1G', '6 4G'])('refuses memory %j', (text) =>
    expect(() => parseMemory(text, '--mem')).toThrow(/--mem/),
  );

  test('memory is shown as it can be written', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1000 }), fc.constantFrom('M', 'G'), (n, unit) => {
        const text = `${n}${unit}`;
        expect(showMemory(parseMemory(text, 'm'))).toBe(text);
      }),
    );
  });

  test.each([
    ['4', 4000],
    ['0.5', 500],
    ['500m', 500],
    ['0.001', 1],
  ])('cpus %s', (text, expected) => expect(parseCpus(text, '--cpus')).toBe(expected));

  test.each(['', '0', '-1', 'x', '0.0001', '1g'])('refuses cpus %j', (text) =>
    expect(() => parseCpus(text, '--cpus')).toThrow(/--cpus/),
  );
});

describe('arrays', () => {
  test.each([
    ['0-3', [0, 1, 2, 3]],
    ['0,3,7-9', [0, 3, 7, 8, 9]],
    ['5', [5]],
    ['0-10:5', [0, 5, 10]],
  ])('%s', (text, indices) => expect(parseArray(text, '--array')).toEqual({ indices }));

  test('a limit on how many run at once', () => {
    expect(parseArray('0-3%2', '--array')).toEqual({ indices: [0, 1, 2, 3], limit: 2 });
  });

  test.each([
    ['0-99%', /after % goes how many/],
    ['0-99%0', /after % goes how many/],
    ['0-99%x', /after % goes how many/],
    ['%10', /list of indices/],
    ['9-1', /backwards/],
    ['1,1', /1 appears twice/],
    ['0-3,2', /2 appears twice/],
    ['0-9999999999', /more than/],
    ['0-99999,100000-199999', /more than/],
    ['', /list of indices/],
    ['a', /list of indices/],
    ['1-', /list of indices/],
    ['1--3', /list of indices/],
    ['0-9:0', /list of indices/],
  ])('refuses %j', (text, message) => {
    expect(() => parseArray(text, '--array')).toThrow(message);
  });

  test('any list of distinct indices is read back', () => {
    const indices = fc.uniqueArray(fc.nat(100_000), { minLength: 1, maxLength: 50 });
    fc.assert(
      fc.property(indices, (list) => {
        expect(parseArray(list.join(','), 'a').indices).toEqual(list);
      }),
    );
  });
});

describe('arguments', () => {
  const table = {
    name: { kind: 'text', help: '', short: 'n' },
    env: { kind: 'list', help: '' },
    detach: { kind: 'flag', help: '', short: 'd' },
    gang: { kind: 'text', help: '', alias: 'nodes' },
  } as const;

  test('all forms', () => {
    const words = ['--name=a=b', '--env', 'X=1', '-d', '--env=Y=', '--nodes', '4', 'p', '-'];
    expect(parseArgs(table, [...words, '--', '--name', 'x', '--'])).toEqual({
      options: { name: 'a=b', env: ['X=1', 'Y='], detach: true, gang: '4' },
      positionals: ['p', '-'],
      rest: ['--name', 'x', '--'],
    });
  });

  test('short options take their value joined or apart', () => {
    expect(parseArgs(table, ['-nx']).options.name).toBe('x');
    expect(parseArgs(table, ['-n', 'x']).options.name).toBe('x');
  });

  test.each([
    [['--nmae', 'x'], /unknown option --nmae/],
    [['--name'], /--name needs a value/],
    [['--name', '--detach'], /--name needs a value/],
    [['--name', '--'], /--name needs a value/],
    [['--name=1', '--name=2'], /given twice/],
    [['--detach=yes'], /takes no value/],
    [['-x'], /unknown option -x/],
  ])('refuses %j', (words, message) => expect(() => parseArgs(table, words)).toThrow(message));

  test('what follows -- is never looked at', () => {
    fc.assert(
      fc.property(fc.array(fc.string()), (words) => {
        expect(parseArgs(table, ['--', ...words]).rest).toEqual(words);
      }),
    );
  });
});
