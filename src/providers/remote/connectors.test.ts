/** Commands that a connector fetches: never both unreachable and run. */
import { expect, test } from 'vitest';
import { ManualClock } from '../../../test/support/manualClock.ts';
import { seededRandom } from '../../lib/random.ts';
import type { ConnectorCommand, ConnectorResult } from '../../model/connector.ts';
import { Connectors } from './connectors.ts';

const clock = new ManualClock();
const connectors = new Connectors(clock, seededRandom(1));
const shell = connectors.shell('hpc');

function exchange(
  results: ConnectorResult[] = [],
  { connector = 'a', waitMs = 0 } = {},
): Promise<ConnectorCommand[]> {
  return connectors.exchange('hpc', { connector, results, waitMs });
}

test('without a connector nothing is sent, and the reason says what to do', async () => {
  const result = await clock.run(shell.run(['squeue']));
  expect(result).toMatchObject({ kind: 'unreachable', reason: /no connector .* drover connector/ });
});

test('a command travels to the connector that waits, and its end comes back', async () => {
  const parked = exchange([], { waitMs: 10_000 });
  const running = shell.run('echo hello', { stdin: 'x' });
  const [command] = await clock.run(parked);
  expect(command).toMatchObject({ argv: ['/bin/sh', '-c', 'echo hello'], stdin: 'x' });
  const ended = { kind: 'ended', code: 0, stdout: 'hello\n', stderr: '' } as const;
  const answer = { id: command?.id ?? '', ...ended };
  await clock.run(exchange([answer]));
  expect(await clock.run(running)).toMatchObject({ kind: 'ended', stdout: 'hello\n' });
  // Told again, it changes nothing.
  expect(await clock.run(exchange([answer]))).toEqual([]);
});

test('what was fetched and not answered is lost; what was not fetched did not run', async () => {
  await clock.run(exchange());
  const fetched = shell.run(['sbatch'], { timeoutMs: 1000 });
  await clock.run(exchange());
  const left = shell.run(['squeue'], { timeoutMs: 1000 });
  await clock.advance(20_000);
  expect(await fetched).toMatchObject({ kind: 'lost' });
  expect(await left).toMatchObject({ kind: 'unreachable' });
});

test('one that has been silent for long is gone', async () => {
  await clock.run(exchange());
  await clock.advance(60_000);
  expect(await clock.run(shell.run(['squeue']))).toMatchObject({ kind: 'unreachable' });
});

test('no more than WAITING_MOST commands wait', async () => {
  const busy = connectors.shell('busy');
  await clock.run(connectors.exchange('busy', { connector: 'a', results: [], waitMs: 0 }));
  const waiting = Array.from({ length: 200 }, () => busy.run(['true'], { timeoutMs: 1000 }));
  const more = await clock.run(busy.run(['true']));
  expect(more).toMatchObject({ kind: 'unreachable', reason: /too many commands wait/ });
  await busy.close();
  for (const result of await Promise.all(waiting)) expect(result.kind).toBe('unreachable');
});

test('of two connectors one runs a command, and neither keeps the other from waiting', async () => {
  const first = exchange([], { connector: 'a', waitMs: 10_000 });
  const second = exchange([], { connector: 'b', waitMs: 10_000 });
  const running = shell.run(['hostname']);
  const [command] = await clock.run(second);
  expect(command?.argv).toEqual(['hostname']);
  const told = { id: command?.id ?? '', kind: 'not-started', reason: 'no sh' } as const;
  await clock.run(exchange([told], { connector: 'b' }));
  expect(await clock.run(running)).toMatchObject({ kind: 'unreachable', reason: 'no sh' });
  await clock.advance(10_000);
  expect(await first).toEqual([]);
});

test('a call that was given up by its connector is told nothing', async () => {
  const older = exchange([], { waitMs: 10_000 });
  const newer = exchange([], { waitMs: 10_000 });
  expect(await clock.run(older)).toEqual([]);
  const running = shell.run(['date']);
  const [command] = await clock.run(newer);
  expect(command?.argv).toEqual(['date']);
  await clock.run(exchange([{ id: command?.id ?? '', kind: 'lost', reason: 'too late' }]));
  expect(await clock.run(running)).toEqual({ kind: 'lost', reason: 'too late' });
});

test('what was run for an earlier controller answers nothing', async () => {
  const restarted = new Connectors(clock, seededRandom(2));
  const after = restarted.shell('hpc');
  await clock.run(restarted.exchange('hpc', { connector: 'a', results: [], waitMs: 0 }));
  const running = after.run(['squeue'], { timeoutMs: 1000 });
  const early = { connector: 'a', results: [], waitMs: 0 };
  const [command] = await clock.run(restarted.exchange('hpc', early));
  const before = exchange([], { waitMs: 10_000 });
  void shell.run(['squeue'], { timeoutMs: 1000 });
  const [old] = await clock.run(before);
  expect(old?.id).not.toBe(command?.id);
  const results = [{ id: old?.id ?? '', kind: 'lost', reason: 'x' } as const];
  await clock.run(restarted.exchange('hpc', { connector: 'a', results, waitMs: 0 }));
  await clock.advance(20_000);
  expect(await running).toMatchObject({ kind: 'lost', reason: /no answer/ });
});

test('a controller that stops waits for nobody', async () => {
  const stopping = new Connectors(clock, seededRandom(3));
  const there = stopping.shell('hpc');
  const asked = { connector: 'a', results: [], waitMs: 10_000 };
  const held = stopping.exchange('hpc', asked);
  const fetched = there.run(['squeue']);
  expect(await clock.run(held)).toHaveLength(1);
  const left = there.run(['sinfo']);
  const parked = stopping.exchange('other', asked);
  stopping.close();
  expect(await clock.run(fetched)).toMatchObject({ kind: 'lost', reason: 'the controller stops' });
  expect(await clock.run(left)).toMatchObject({ kind: 'unreachable' });
  expect(await clock.run(parked)).toEqual([]);
  const late = await clock.run(there.run(['scancel', '1']));
  expect(late).toMatchObject({ kind: 'unreachable', reason: /the controller stops/ });
  expect(await clock.run(stopping.exchange('hpc', asked))).toEqual([]);
});
