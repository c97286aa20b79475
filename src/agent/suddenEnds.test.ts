/** Ends of commands on a machine that may be about to end: whose doing they were. */
import { expect, test } from 'vitest';
import { ManualClock } from '../../test/support/manualClock.ts';
import type { Observation, SyncRequest } from '../protocol/agent.ts';
import { SuddenEnds } from './suddenEnds.ts';

const clock = new ManualClock();
const request = (...observed: Observation[]): SyncRequest => ({
  ...{ worker: 'w', bootId: 'b', start: 1, seq: 1, epoch: 1, wait: true, observed },
});
const failed: Observation = { uid: 'a', state: 'ENDED', cause: 'exited', exitCode: 1 };
const killed: Observation = { uid: 'b', state: 'ENDED', cause: 'signalled', signal: 'SIGTERM' };
const well: Observation = { uid: 'c', state: 'ENDED', cause: 'exited', exitCode: 0 };

test('a failure is told after a moment in which no notice comes', async () => {
  const ends = new SuddenEnds(clock);
  let told: SyncRequest | undefined;
  void ends.settle(request(failed), () => false).then((it) => (told = it));
  await clock.advance(1000);
  expect(told).toBeUndefined();
  await clock.advance(1000);
  expect(told?.observed).toEqual([failed]);
  // Until it is acknowledged it is told again, at once and the same.
  expect((await clock.run(ends.settle(request(failed), () => true))).observed).toEqual([failed]);
});

test('with notice in that moment it was the machine’s doing, and stays so', async () => {
  const ends = new SuddenEnds(clock);
  let isEnding = false;
  const telling = ends.settle(request(failed, killed, well), () => isEnding);
  await clock.advance(500);
  isEnding = true;
  await clock.advance(200);
  const causes = (sent: SyncRequest) => sent.observed.map(({ cause }) => cause);
  expect(causes(await telling)).toEqual(['preempted', 'preempted', 'exited']);
  await clock.advance(10_000);
  const again = await clock.run(ends.settle(request(failed), () => true));
  expect(causes(again)).toEqual(['preempted']);
});

test('what succeeded, and what runs, waits for nothing', async () => {
  const ends = new SuddenEnds(clock);
  const running: Observation = { uid: 'd', state: 'RUNNING' };
  const sent = await clock.run(ends.settle(request(well, running), () => false));
  expect(sent.observed).toEqual([well, running]);
});
