/** Commands that a connector fetches: never both unreachable and run. */
import { expect, test } from 'vitest';
import { ManualClock } from '../../../test/support/manualClock.ts';
import { Connectors } from './connectors.ts';

const clock = new ManualClock();
const connectors = new Connectors(clock);
const shell = connectors.shell('hpc');

test('without a connector nothing is sent, and the reason says what to do', async () => {
  const result = await clock.run(shell.run(['squeue']));
  expect(result).toMatchObject({ kind: 'unreachable', reason: /no connector .* drover connector/ });
});

test('a command travels to the connector that waits, and its end comes back', async () => {
  const parked = connectors.exchange('hpc', [], 10_000);
  const running = shell.run('echo hello', { stdin: 'x' });
  const [command] = await clock.run(parked);
  expect(command).toMatchObject({ argv: ['/bin/sh', '-c', 'echo hello'], stdin: 'x' });
  const answer = { id: command?.id ?? '', code: 0, stdout: 'hello\n', stderr: '' };
  await clock.run(connectors.exchange('hpc', [answer], 0));
  expect(await clock.run(running)).toMatchObject({ kind: 'ended', stdout: 'hello\n' });
  // Told again, it changes nothing.
  expect(await clock.run(connectors.exchange('hpc', [answer], 0))).toEqual([]);
});

test('what was fetched and not answered is lost; what was not fetched did not run', async () => {
  await clock.run(connectors.exchange('hpc', [], 0));
  const fetched = shell.run(['sbatch'], { timeoutMs: 1000 });
  await clock.run(connectors.exchange('hpc', [], 0));
  const left = shell.run(['squeue'], { timeoutMs: 1000 });
  await clock.advance(20_000);
  expect(await fetched).toMatchObject({ kind: 'lost' });
  expect(await left).toMatchObject({ kind: 'unreachable' });
});

test('one that has been silent for long is gone', async () => {
  await clock.run(connectors.exchange('hpc', [], 0));
  await clock.advance(60_000);
  expect(await clock.run(shell.run(['squeue']))).toMatchObject({ kind: 'unreachable' });
});
