/** What an attempt's end is called, from the evidence. */
import { expect, test } from 'vitest';
import { decideEnd, type EndEvidence } from './ending.ts';

const MIB = 2 ** 20;
const killed = { code: 137, killed: true };

function decide(more: Partial<EndEvidence>) {
  return decideEnd({
    ...{ exit: killed, stop: undefined, expired: false, failed: undefined, whyLost: 'gone' },
    ...{ oomKills: 1, memoryBytes: 512 * MIB, peakBytes: 512 * MIB },
    ...more,
  });
}

test.each([
  [{}, 'the limit of 512 MiB was reached; it used up to 512 MiB'],
  [{ peakBytes: 509 * MIB }, 'the limit of 512 MiB was reached; it used up to 509 MiB'],
  [{ peakBytes: undefined }, 'the limit of 512 MiB was reached'],
  [{ peakBytes: 200 * MIB }, 'the machine had no more; it used up to 200 MiB of its 512 MiB'],
  [{ memoryBytes: 0, peakBytes: 900 * MIB }, 'the machine had no more; it used up to 900 MiB'],
  [{ memoryBytes: 0, peakBytes: undefined }, 'the machine had no more'],
  [{ memoryBytes: 6 * MIB, peakBytes: 4 * MIB }, /^the limit of 6 MiB was reached/],
])('out of memory, %o', (more, message) => {
  expect(decide(more)).toMatchObject({ cause: 'oom', signal: 'SIGKILL' });
  expect(decide(more).message).toMatch(message);
});

test('our own kill and the lease go before: memory is then not what ended it', () => {
  const stop = { cause: 'preempted', killAtBootMs: 0, signalled: true } as const;
  expect(decide({ stop })).toMatchObject({ cause: 'preempted', signal: 'SIGKILL' });
  expect(decide({ expired: true })).toMatchObject({ cause: 'lost' });
});

test('a command that shrugged it off has succeeded', () => {
  const exit = { code: 0, killed: false };
  expect(decide({ exit })).toMatchObject({ cause: 'exited', exitCode: 0 });
});
