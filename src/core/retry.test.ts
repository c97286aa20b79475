/** From how a try ended to what its task does next: the whole table, and the budgets. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { END_CAUSES, type EndCause } from '../model/attempt.ts';
import { decideRetry, LONGEST_DELAY_MS, type Budgets, type Ending } from './retry.ts';

const ending = (cause: EndCause, more: Partial<Ending> = {}): Ending => ({
  cause,
  exitCode: null,
  signal: null,
  message: '',
  hostFault: false,
  ...more,
});

const fresh: Budgets = {
  failures: 0,
  interruptions: 0,
  retries: 2,
  maxInterruptions: 2,
  requeueExitCode: 0,
  cancelled: false,
};

describe('a try that ended', () => {
  test.each<[string, Ending, Partial<Budgets>, object]>([
    [
      'with exit code 0 has succeeded',
      ending('exited', { exitCode: 0 }),
      {},
      { kind: 'succeed', reason: 'exit code 0' },
    ],
    [
      'with exit code 0 has succeeded, cancelled or not',
      ending('exited', { exitCode: 0 }),
      { cancelled: true },
      { kind: 'succeed', reason: 'exit code 0' },
    ],
    [
      'with another exit code is a failure and tried again after a second',
      ending('exited', { exitCode: 3 }),
      {},
      { kind: 'retry', charge: 'failure', delayMs: 1000, reason: 'exit code 3; retry 1 of 2' },
    ],
    [
      'the second time after two',
      ending('signalled', { signal: 'SIGSEGV' }),
      { failures: 1 },
      {
        kind: 'retry',
        charge: 'failure',
        delayMs: 2000,
        reason: 'killed by SIGSEGV; retry 2 of 2',
      },
    ],
    [
      'and when the retries are used it has failed',
      ending('oom', { message: 'used 2 GiB' }),
      { failures: 2 },
      {
        kind: 'fail',
        charge: 'failure',
        reason: 'out of memory: used 2 GiB; all 2 retries are used',
      },
    ],
    [
      'without retries the reason is only what happened',
      ending('exited', { exitCode: 1 }),
      { retries: 0 },
      { kind: 'fail', charge: 'failure', reason: 'exit code 1' },
    ],
    [
      'at its time limit is a failure',
      ending('timed-out'),
      {},
      {
        kind: 'retry',
        charge: 'failure',
        delayMs: 1000,
        reason: 'ran into its time limit; retry 1 of 2',
      },
    ],
    [
      'with the exit code by which it asks for another start is one',
      ending('exited', { exitCode: 85 }),
      { requeueExitCode: 85 },
      { kind: 'retry', charge: 'interruption', delayMs: 0, reason: 'exit code 85' },
    ],
    [
      'with exit code 0 asks for nothing',
      ending('exited', { exitCode: 0 }),
      { requeueExitCode: 0 },
      { kind: 'succeed', reason: 'exit code 0' },
    ],
    [
      'by its machine is an interruption, tried again at once',
      ending('lost', { hostFault: true }),
      {},
      { kind: 'retry', charge: 'interruption', delayMs: 0, reason: 'its machine was lost' },
    ],
    [
      'by preemption is one too; a streak of them backs off',
      ending('preempted'),
      { interruptions: 1 },
      { kind: 'retry', charge: 'interruption', delayMs: 1000, reason: 'preempted' },
    ],
    [
      'by too many interruptions has failed, although no retry was used',
      ending('lost'),
      { interruptions: 2 },
      {
        kind: 'fail',
        charge: 'interruption',
        reason: 'its machine was lost; it was interrupted 3 times, the limit is 2',
      },
    ],
    [
      'before it began, by the machine, is an interruption',
      ending('never-started', { hostFault: true, message: 'no disk' }),
      {},
      { kind: 'retry', charge: 'interruption', delayMs: 0, reason: 'did not start: no disk' },
    ],
    [
      'by the fault of its machine is an interruption',
      ending('exited', { exitCode: 1, hostFault: true, message: 'GPU 0 is lost' }),
      {},
      { kind: 'retry', charge: 'interruption', delayMs: 0, reason: 'exit code 1: GPU 0 is lost' },
    ],
    [
      'before it began, by its command, is a failure',
      ending('never-started', { message: 'no such command' }),
      { retries: 0 },
      { kind: 'fail', charge: 'failure', reason: 'did not start: no such command' },
    ],
    [
      'for another member of its gang costs it nothing',
      ending('gang-failed'),
      { failures: 2, interruptions: 2 },
      {
        kind: 'retry',
        charge: 'none',
        delayMs: 0,
        reason: 'another member of the gang failed',
      },
    ],
    [
      'by a rule, which its user did not ask for, has failed and is not tried again',
      ending('cancelled', { signal: 'SIGTERM', message: 'its devices are idle' }),
      {},
      { kind: 'fail', charge: 'failure', reason: 'its devices are idle' },
    ],
    [
      'after the user cancelled is cancelled, however it ended',
      ending('signalled', { signal: 'SIGTERM' }),
      { cancelled: true },
      { kind: 'cancel', reason: 'cancelled' },
    ],
    [
      'with what nobody knows says so',
      ending('exited'),
      { retries: 0 },
      { kind: 'fail', charge: 'failure', reason: 'exit code unknown' },
    ],
  ])('%s', (_name, how, budgets, expected) => {
    expect(decideRetry(how, { ...fresh, ...budgets })).toEqual(expected);
  });

  test('every cause has words', () => {
    for (const cause of END_CAUSES) {
      expect(decideRetry(ending(cause), fresh).reason).not.toMatch(/undefined|null/);
    }
  });
});

test('however tries end, no budget is ever exceeded and delays stay bounded', () => {
  const endings = fc.record({
    cause: fc.constantFrom(...END_CAUSES),
    exitCode: fc.constantFrom(null, 1, 137),
    signal: fc.constantFrom(null, 'SIGKILL'),
    message: fc.string(),
    hostFault: fc.boolean(),
  });
  const limits = fc.record({ retries: fc.nat(5), maxInterruptions: fc.nat(5) });
  fc.assert(
    fc.property(limits, fc.array(endings, { minLength: 20 }), (limit, tries) => {
      const budgets = { ...fresh, ...limit };
      for (const one of tries) {
        const decision = decideRetry(one, budgets);
        if (decision.kind !== 'retry') {
          expect(decision.kind).toBe('fail');
          break;
        }
        if (decision.charge === 'failure') budgets.failures++;
        if (decision.charge === 'interruption') budgets.interruptions++;
        expect(budgets.failures).toBeLessThanOrEqual(limit.retries);
        expect(budgets.interruptions).toBeLessThanOrEqual(limit.maxInterruptions);
        expect(decision.delayMs).toBeGreaterThanOrEqual(0);
        expect(decision.delayMs).toBeLessThanOrEqual(LONGEST_DELAY_MS);
      }
    }),
  );
});

test('the delay doubles up to a minute', () => {
  const delays = [0, 1, 2, 5, 6, 50].map((failures) => {
    const decision = decideRetry(ending('exited', { exitCode: 1 }), {
      ...fresh,
      failures,
      retries: 100,
    });
    return decision.kind === 'retry' ? decision.delayMs : null;
  });
  expect(delays).toEqual([1000, 2000, 4000, 32_000, 60_000, 60_000]);
});
