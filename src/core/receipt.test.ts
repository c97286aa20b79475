/** What a receipt says of jobs that ended in all the usual ways. */
import { describe, expect, test } from 'vitest';
import { NO_FACTS, type Attempt } from '../model/attempt.ts';
import { taskId, type AttemptUid, type JobId } from '../model/ids.ts';
import { jobSpec, type SubmittedSpec } from '../protocol/jobSpec.ts';
import { receiptOf, type Receipt, type ReceiptFacts } from './receipt.ts';

const MINUTE = 60_000;
const JOB = 'j1' as JobId;

function attempt(n: number, from: number, until: number, more: Partial<Attempt> = {}): Attempt {
  return {
    ...{ uid: `a${n}` as AttemptUid, task: taskId(JOB, 0), job: JOB, tenant: 't', n, round: 0 },
    ...{ worker: 'w1' as Attempt['worker'], state: 'ENDED', stopCause: null, cause: 'exited' },
    ...{ exitCode: 0, signal: null, message: '', assignedAtMs: from, startedAtMs: from + 1000 },
    ...{ endedAtMs: until, stdoutBytes: 0, stderrBytes: 0, priceMicros: 0, charges: 0 },
    ...{ chargedMicros: 0, chargedDeviceMs: 0, facts: NO_FACTS, result: null, resultBytes: null },
    version: 1,
    ...more,
  };
}

interface Story extends Partial<Omit<ReceiptFacts, 'job'>> {
  spec?: Partial<SubmittedSpec>;
  state?: Receipt['state'];
  tasks?: { total: number; succeeded: number };
}

function receipt({ spec, state = 'FAILED', tasks, ...facts }: Story): Receipt {
  const ended = facts.attempts?.at(-1);
  const job = {
    ...{ id: JOB, name: 'train', state, reason: '', exitCode: ended?.exitCode ?? null },
    ...{ createdAtMs: 0, startedAtMs: null, endedAtMs: ended?.endedAtMs ?? MINUTE },
    tasks: tasks ?? { total: 1, succeeded: state === 'SUCCEEDED' ? 1 : 0 },
    spec: jobSpec.parse({ command: ['train.sh'], ...spec }),
  };
  const none = { stoppingAtMs: new Map(), savedAtMs: new Map(), checkpoints: 0 };
  const workers = new Map([['w1', { name: 'gpu-1', pool: 'lab', devices: ['A100', 'A100'] }]]);
  return receiptOf({ attempts: [], ...none, workers, complete: true, nowMs: 0, ...facts, job });
}

describe('time and money', () => {
  test('are split by state, over all attempts', () => {
    const attempts = [
      attempt(1, MINUTE, 11 * MINUTE, { cause: 'lost', exitCode: null, message: 'no contact' }),
      attempt(2, 12 * MINUTE, 32 * MINUTE, { chargedMicros: 2_500_000, chargedDeviceMs: 7 }),
    ];
    const stoppingAtMs = new Map([['a2' as AttemptUid, 31 * MINUTE]]);
    const it = receipt({ state: 'SUCCEEDED', attempts, stoppingAtMs });
    expect(it.time).toEqual({
      waitingMs: 2 * MINUTE,
      startingMs: 2000,
      runningMs: 29 * MINUTE - 2000,
      stoppingMs: MINUTE,
    });
    expect(it.lost).toEqual([
      { fault: 'host', attempts: 1, ms: 10 * MINUTE - 1000, why: 'no contact' },
    ]);
    expect(it).toMatchObject({ costMicros: 2_500_000, deviceMs: 7, attempts: 2 });
    expect(it.next).toEqual(['keep its work over interruptions with --checkpoint DIR']);
    expect(it.line).toBe(
      'job j1 (train) succeeded: ran 28m on gpu-1, waited 2m, cost 2.50, ' +
        'lost 9m59s to machines that were lost',
    );
  });

  test('what a checkpoint saved is not lost', () => {
    const attempts = [
      attempt(1, 0, 60 * MINUTE, { cause: 'preempted', exitCode: null }),
      attempt(2, 60 * MINUTE, 90 * MINUTE, { facts: { 'resumed from': 'hash' } }),
    ];
    const savedAtMs = new Map([['a1' as AttemptUid, 58 * MINUTE]]);
    const told = { attempts, savedAtMs, checkpoints: 3, spec: { checkpoint: {} } };
    const it = receipt({ state: 'SUCCEEDED', ...told });
    expect(it.lost).toMatchObject([{ fault: 'preemption', ms: 2 * MINUTE }]);
    expect(it).toMatchObject({ resumes: 1, next: [] });
    expect(it.sentences).toContain('3 checkpoints were kept, and it resumed once.');
  });

  test('tasks that were never tried have only waited', () => {
    const it = receipt({ state: 'UNSCHEDULABLE', tasks: { total: 3, succeeded: 0 } });
    expect(it.time.waitingMs).toBe(3 * MINUTE);
    expect(it.next[0]).toContain('--start-within');
    expect(it.line).toContain('could not be placed in time, 0 of 3 succeeded');
  });

  test('where it ran names worker and devices', () => {
    const device = { kind: 'gpu' as const, count: 2 };
    const it = receipt({
      state: 'SUCCEEDED',
      attempts: [attempt(1, 0, MINUTE), attempt(2, MINUTE, 4 * MINUTE, { worker: 'w9' as never })],
      spec: { resources: { device } },
    });
    expect(it.ranOn).toMatchObject([
      { worker: 'w9', name: 'w9', devices: '2 x gpu', ms: 3 * MINUTE },
      { worker: 'w1', name: 'gpu-1', pool: 'lab', devices: '2 x A100', attempts: 1 },
    ]);
  });
});

describe('what to do next', () => {
  const after = (ending: Partial<Attempt>, spec: Partial<SubmittedSpec> = {}): string =>
    receipt({ attempts: [attempt(1, 0, MINUTE, ending)], spec }).next.join('\n');

  test('out of memory: twice the memory', () => {
    const resources = { memoryBytes: 6 * 2 ** 30 };
    expect(after({ cause: 'oom' }, { resources })).toBe('ask for more memory: --mem 12G (6G now)');
    expect(after({ cause: 'oom' })).toBe('ask for more memory: --mem 4G');
    const facts = { 'used.peakMemoryBytes': String(20 * 2 ** 30) };
    expect(after({ cause: 'oom', facts })).toBe('ask for more memory: --mem 20G');
  });

  test('a command that is not there', () => {
    expect(after({ exitCode: 127 })).toContain('is train.sh installed where it ran?');
    expect(after({ exitCode: 126 })).toContain('chmod +x');
  });

  test('the time limit', () => {
    const it = after({ cause: 'timed-out' }, { timeLimitMs: 90 * MINUTE });
    expect(it).toBe(
      'allow it more time: --time 3h (1h30m now), or let it go on from a --checkpoint DIR',
    );
  });

  test('any other exit: its log, and a look inside', () => {
    expect(after({ exitCode: 3 })).toBe(
      'read the end of its log: drover logs j1 --tail 50\n' +
        'look inside the next time it fails with --keep-on-failure 30m',
    );
    expect(after({ cause: 'signalled', exitCode: null, signal: 'SIGKILL' })).toContain('--mem 4G');
  });

  test('a result is there to be fetched', () => {
    const attempts = [attempt(1, 0, MINUTE, { result: 'hash' })];
    const it = receipt({ state: 'SUCCEEDED', attempts });
    expect(it.next).toEqual(['fetch what it left: drover result j1']);
    expect(it.lost).toEqual([]);
  });

  test('a cost limit that ended it', () => {
    const attempts = [attempt(1, 0, MINUTE, { cause: 'cancelled', chargedMicros: 2_000_000 })];
    const it = receipt({ state: 'CANCELLED', attempts, spec: { maxCostMicros: 2_000_000 } });
    expect(it.next).toEqual(['its cost limit ended it; give more with --max-cost (2.00 now)']);
  });
});
