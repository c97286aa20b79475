/** What a job keeps, as flags and job files say it, and what a kept failure costs. */
import { expect, test } from 'vitest';
import type { AttemptView } from '../protocol/jobs.ts';
import { costFacts } from './costFacts.ts';
import { toSpec } from './jobDraft.ts';

const read = (draft: Record<string, unknown>) => {
  const context = { cwd: '/', env: {}, label: (key: string) => key };
  const { checkpoint, rules } = toSpec({ command: 'true', ...draft }, context);
  return { checkpoint, rules };
};

test.each([
  [{ checkpoint: 'saves' }, { dir: 'saves' }],
  [{ checkpoint: true }, {}],
  [
    { checkpoint: 'saves', 'checkpoint-every': '5m', checkpointSignal: 'usr1', checkpointKeep: 7 },
    { dir: 'saves', everyMs: 300_000, signal: 'SIGUSR1', keep: 7 },
  ],
  [
    { checkpoint: { every: '90s', 'before-deadline': '2m', signal: 'SIGTERM', keep: 1 } },
    { everyMs: 90_000, beforeDeadlineMs: 120_000, signal: 'SIGTERM', keep: 1 },
  ],
  [{ checkpoint: { dir: 'a/b', everyMs: 1500 } }, { dir: 'a/b', everyMs: 1500 }],
])('%j', (draft, checkpoint) => {
  expect(read(draft)).toEqual({ checkpoint, rules: undefined });
});

test('outputs and --keep-on-failure beside other rules', () => {
  const draft = { outputs: ['a/*', 'b'], keepOnFailure: '30m', rules: { nameTaken: 'error' } };
  expect(read(draft).rules).toEqual({
    ...{ nameTaken: 'error', outputs: ['a/*', 'b'], keepOnFailureMs: 1_800_000 },
  });
  expect(read({ output: 'one' }).rules).toEqual({ outputs: ['one'] });
});

test('idle devices: when, below what, and what follows', () => {
  const forMs = 1_800_000;
  expect(read({ idleStop: '30m' }).rules).toEqual({ idle: { action: 'stop', forMs } });
  expect(read({ idleWarn: '30m', idleBelow: '10%' }).rules).toEqual({
    idle: { action: 'warn', forMs, belowPercent: 10 },
  });
});

test.each([
  [{ checkpoint: { evry: '1m' } }, 'unknown key "evry" in checkpoint'],
  [{ checkpoint: ['a'] }, 'checkpoint is not a single value'],
  [{ checkpointEvery: 'soon' }, 'checkpointEvery "soon" is not a duration'],
  [{ checkpointKeep: 0 }, 'checkpointKeep'],
  [{ keepOnFailure: 'x' }, 'keepOnFailure "x" is not a duration'],
  [{ idleBelow: 'half' }, 'idleBelow is a percentage from 0 to 100'],
  [{ idleWarn: '1h', idleStop: '2h' }, 'idleStop'],
])('%j is refused', (draft, message) => {
  expect(() => read(draft)).toThrow(message);
});

test('a kept failure has its price beside it; what costs nothing has none', () => {
  const message = 'failed with exit code 1; kept until 14:30 UTC (drover cancel j1 lets go)';
  const one = { task: 'j1.0', message, startedAtMs: 0, endedAtMs: null, chargedMicros: 0 };
  const kept = { ...one, priceMicros: 600_000 } as AttemptView;
  const done = { ...one, endedAtMs: 1, message: '', chargedMicros: 250_000 } as AttemptView;
  expect(costFacts([done, kept], 1_800_000)).toEqual([
    ['cost', '0.55 so far'],
    ['kept', `j1.0 ${message}`],
    ['kept at', '0.60 an hour while it is kept, 0.30 so far'],
  ]);
  expect(costFacts([{ ...kept, priceMicros: 0 }], 1000)).toEqual([
    ['cost', ''],
    ['kept', `j1.0 ${message}`],
  ]);
});
