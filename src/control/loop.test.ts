/** The driver of all loops: when steps run, and what is known of them. */
import { beforeEach, describe, expect, test } from 'vitest';
import { ManualClock } from '../../test/support/manualClock.ts';
import { silentLog, type Log } from '../lib/log.ts';
import { startLoop, type Loop } from './loop.ts';

let clock: ManualClock;
let loop: Loop;
let begun: number[];
let errors: string[];
/** What the step does. */
let step: () => Promise<void>;

beforeEach(() => {
  clock = new ManualClock();
  begun = [];
  errors = [];
  step = async () => undefined;
  const log: Log = { ...silentLog, error: (_fields, message) => void errors.push(message) };
  loop = startLoop({
    name: 'test',
    periodMs: 100,
    clock,
    log,
    step() {
      begun.push(clock.bootMs());
      return step();
    },
  });
});

describe('a loop', () => {
  test('runs every period, counted from the end of a step', async () => {
    await clock.advance(100);
    step = () => new Promise((resolve) => void clock.setTimer(30, resolve));
    await clock.advance(330);
    expect(begun).toEqual([1100, 1200, 1330]);
    expect(loop.steps()).toBe(3);
  });

  test('runs soon when hinted, once for many hints, and the period begins anew', async () => {
    await clock.advance(50);
    for (let i = 0; i < 5; i++) loop.hint();
    await clock.settle();
    expect(begun).toEqual([1050]);
    await clock.advance(99);
    expect(begun).toHaveLength(1);
    await clock.advance(1);
    expect(begun).toEqual([1050, 1150]);
  });

  test('one step at a time; a hint meanwhile runs it again', async () => {
    let finish = (): void => undefined;
    step = () => new Promise((resolve) => void (finish = resolve));
    loop.hint();
    await clock.settle();
    loop.hint();
    loop.hint();
    await clock.advance(1000);
    expect(begun).toHaveLength(1);
    finish();
    await clock.settle();
    expect(begun).toHaveLength(2);
    finish();
    await clock.settle();
    expect(begun).toHaveLength(2);
  });

  test('a hint from within the step runs it again', async () => {
    step = async () => {
      if (begun.length < 3) loop.hint();
    };
    loop.hint();
    await clock.settle();
    expect(begun).toHaveLength(3);
  });
});

describe('a step that throws', () => {
  beforeEach(() => {
    step = async () => {
      throw new Error('no luck');
    };
  });

  test('is logged, counted and seen, until one succeeds', async () => {
    loop.hint();
    await clock.settle();
    expect(loop.health()).toMatchObject({ failures: 1, lastError: 'no luck', healthy: false });
    expect(errors).toEqual(['a loop step failed']);
    step = async () => undefined;
    await clock.advance(100);
    expect(loop.health()).toMatchObject({ failures: 1, lastError: null, healthy: true });
  });

  test('is not run again at once, also when hinted: it would only spin', async () => {
    step = async () => {
      loop.hint();
      throw new Error('no luck');
    };
    loop.hint();
    await clock.advance(99);
    expect(begun).toHaveLength(1);
    await clock.advance(1);
    expect(begun).toHaveLength(2);
  });

  test('may throw anything', async () => {
    // eslint-disable-next-line typescript/only-throw-error -- what a library might do
    step = () => Promise.reject('a text');
    loop.hint();
    await clock.settle();
    expect(loop.health().lastError).toBe('a text');
  });
});

test('a loop that hangs is unhealthy after a while, whatever the wall clock says', async () => {
  step = () => new Promise(() => undefined);
  loop.hint();
  await clock.advance(10_000);
  clock.step(3_600_000);
  expect(loop.health().healthy).toBe(true);
  await clock.advance(1);
  expect(loop.health()).toMatchObject({ healthy: false, lastError: null });
  expect(loop.health().lastFinishedAtMs).toBeNull();
});

describe('closing', () => {
  test('waits for the step in progress; none starts after', async () => {
    let finish = (): void => undefined;
    step = () => new Promise((resolve) => void (finish = resolve));
    loop.hint();
    await clock.settle();
    loop.hint();
    let closed = false;
    void loop.close().then(() => void (closed = true));
    await clock.settle();
    expect(closed).toBe(false);
    finish();
    await clock.settle();
    expect(closed).toBe(true);
    loop.hint();
    await clock.advance(1000);
    expect(begun).toHaveLength(1);
    expect(clock.waiting).toBe(0);
  });

  test('is at once when nothing runs', async () => {
    await loop.close();
    await clock.advance(1000);
    expect(begun).toEqual([]);
  });
});
