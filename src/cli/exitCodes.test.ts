/** How the end of a job becomes an exit code. */
import { expect, test } from 'vitest';
import type { AttemptView, JobView } from '../protocol/jobs.ts';
import { jobExitCode } from './exitCodes.ts';

const job = (state: string, exitCode: number | null = null) => ({ state, exitCode }) as JobView;
const attempt = (task: string, n: number, cause: string, more: Partial<AttemptView> = {}) =>
  ({ task, n, cause, exitCode: null, signal: null, ...more }) as AttemptView;

test.each([
  ['success', job('SUCCEEDED', 0), [], 0],
  ['cancelled', job('CANCELLED'), [], 130],
  ['never placed', job('UNSCHEDULABLE'), [], 122],
  ['its own code', job('FAILED', 3), [attempt('j.0', 1, 'exited', { exitCode: 3 })], 3],
  ['a signal', job('FAILED'), [attempt('j.0', 1, 'signalled', { signal: 'SIGSEGV' })], 139],
  ['a bare signal name', job('FAILED'), [attempt('j.0', 1, 'signalled', { signal: 'KILL' })], 137],
  ['memory', job('FAILED'), [attempt('j.0', 1, 'oom')], 137],
  // TERM is often caught and turned into a code, even 0: the limit is what ended it.
  ['the limit', job('FAILED', 0), [attempt('j.0', 1, 'timed-out', { exitCode: 0 })], 124],
  ['lost machines', job('FAILED'), [attempt('j.0', 3, 'lost')], 123],
  ['no such program', job('FAILED'), [attempt('j.0', 1, 'never-started')], 126],
  ['a code over 255', job('FAILED', 256), [], 1],
  ['nothing known', job('FAILED'), [], 1],
])('%s', (_, view, attempts, expected) => {
  expect(jobExitCode(view, attempts)).toBe(expected);
});

test('the last attempt of the first task that failed by itself decides', () => {
  const attempts = [
    attempt('j.10', 1, 'exited', { exitCode: 10 }),
    attempt('j.2', 1, 'exited', { exitCode: 2 }),
    attempt('j.2', 2, 'exited', { exitCode: 22 }),
    attempt('j.1', 1, 'exited', { exitCode: 1 }),
    attempt('j.1', 2, 'exited', { exitCode: 0 }),
    attempt('j.0', 1, 'gang-failed'),
  ];
  expect(jobExitCode(job('FAILED', 10), attempts)).toBe(22);
});
