/** How many commands run at once, how long others wait, and what is remembered. */
import { expect, test } from 'vitest';
import { ManualClock } from '../../test/support/manualClock.ts';
import type { ConnectorCommand, ConnectorResult } from '../model/connector.ts';
import { Runner, RUNNER_LIMITS, type Shell } from './runner.ts';

function world() {
  const clock = new ManualClock();
  const results: ConnectorResult[] = [];
  const started: string[] = [];
  const ends: (() => void)[] = [];
  const shell: Shell = {
    run: ([id = '']) => {
      started.push(id);
      return new Promise((resolve) => {
        ends.push(() => resolve({ kind: 'ended', code: 0, stdout: id, stderr: '' }));
      });
    },
    close: async () => undefined,
  };
  const runner = new Runner({ shell, clock, onResult: (result) => results.push(result) });
  return { clock, results, started, ends, runner };
}

function commands(count: number, first = 0): ConnectorCommand[] {
  return Array.from({ length: count }, (_, n) => {
    const id = `c${first + n}`;
    return { id, argv: [id], stdin: '', timeoutMs: 1000 };
  });
}

test('RUNNER_LIMITS.running: others wait, and not longer than their own time', async () => {
  const { clock, results, started, ends, runner } = world();
  runner.start(commands(RUNNER_LIMITS.running + 2));
  expect(started).toHaveLength(RUNNER_LIMITS.running);
  ends[0]?.();
  await clock.advance(10);
  expect(started).toHaveLength(RUNNER_LIMITS.running + 1);
  await clock.advance(2000);
  ends[1]?.();
  await clock.advance(10);
  expect(started).toHaveLength(RUNNER_LIMITS.running + 1);
  expect(results.at(-1)).toMatchObject({ kind: 'not-started', reason: /too many commands/ });
});

test('RUNNER_LIMITS.remembered: the newest are known, however many there were', async () => {
  const { clock, started, ends, runner } = world();
  const finish = async (): Promise<void> => {
    for (const end of ends.splice(0)) end();
    await clock.advance(1);
  };
  const all = commands(RUNNER_LIMITS.remembered + RUNNER_LIMITS.running);
  for (let at = 0; at < all.length; at += RUNNER_LIMITS.running) {
    runner.start(all.slice(at, at + RUNNER_LIMITS.running));
    await finish();
  }
  expect(started).toHaveLength(all.length);
  runner.start(all.slice(-RUNNER_LIMITS.remembered));
  await finish();
  expect(started).toHaveLength(all.length);
  runner.start(all.slice(0, 1));
  expect(started).toHaveLength(all.length + 1);
});
