/** One that its provider starts again by itself is kept, through every phase it shows meanwhile. */
import { expect, test } from 'vitest';
import type { InstanceId } from '../../model/ids.ts';
import type { Instance, InstanceState } from '../../model/instance.ts';
import { judge, type Look, type Sight } from './reconcile.ts';

const RULES = { bootTimeoutMs: 60_000, queues: true, quantumMs: 60_000 };

function look(
  state: InstanceState,
  restarts: number,
  sight: Partial<Sight>,
  more: Partial<Look> = {},
) {
  const instance = {
    ...{ id: 'i1' as InstanceId, pool: 'p', label: 'i1', state, failure: null, reason: '' },
    ...{ handle: '7', host: '', workers: 1, tasks: [], runAs: '', priceHourMicros: 0 },
    ...{ resources: { cpuMillis: 1000, memoryBytes: 0, devices: [], portRange: [1, 2] } },
    ...{ spentMicros: 0, paidUntilMs: null, timeLimitMs: 0, startsAtMs: null, endsAtMs: null },
    ...{ restarts, script: '', createdAtMs: 0, requestedAtMs: 0, runningAtMs: null },
    ...{ joinedAtMs: null, destroyAtMs: null, endedAtMs: null, version: 1 },
  } satisfies Instance as Instance;
  const seen: Sight = {
    ...{ label: 'i1', handle: '7', phase: 'running', reason: '', failure: null, host: '' },
    ...{ startsAtMs: null, leftMs: null, restarts: 0, billed: false, priceHourMicros: null },
    ...sight,
  };
  const workers = state === 'JOINED' ? 1 : 0;
  const ages = { askedForMs: 1000, runningForMs: null };
  const alone = {
    launching: false,
    empty: true,
    settled: true,
    silent: false,
    againForMs: 0,
    goneForMs: 0,
    heardSince: false,
    ...ages,
  };
  return judge({ instance, sight: seen, workers, ...alone, ...more }, RULES, 1000);
}

test('one that ends is to be gone', () => {
  expect(look('JOINED', 0, { phase: 'ending', reason: 'COMPLETING' }).kind).toBe('destroy');
  expect(look('BOOTING', 0, { phase: 'ending' }).kind).toBe('destroy');
});

test('one that ends to be started again is put back, and stays', () => {
  const back = look('JOINED', 0, { phase: 'ending', restarts: 1 });
  expect(back).toMatchObject({ kind: 'news', news: { move: 'restart', restarts: 1 } });
  expect(look('REQUESTED', 1, { phase: 'ending', restarts: 1 }).kind).toBe('as-is');
  // Its agent may join once more before it is ended.
  expect(look('JOINED', 1, { phase: 'ending', restarts: 1 }).kind).toBe('as-is');
  expect(look('REQUESTED', 1, { phase: 'queued', restarts: 1 }).kind).toBe('as-is');
  const again = look('REQUESTED', 1, { phase: 'running', restarts: 1 });
  expect(again).toMatchObject({ kind: 'news', news: { move: 'boot' } });
});

test('workers that came lately: life proves that they came after it, silence nothing', () => {
  const sight = { phase: 'running', restarts: 1 } as const;
  const young = { settled: false, silent: false, againForMs: 1000 };
  expect(look('JOINED', 0, sight, young).kind).toBe('as-is');
  expect(look('JOINED', 0, { ...sight, phase: 'ending' }, young).kind).toBe('as-is');
  // They may have come after it and be cut off just now: their lease decides.
  expect(look('JOINED', 0, sight, { ...young, silent: true }).kind).toBe('as-is');
  const lost = look('JOINED', 0, sight, { ...young, workers: 0 });
  expect(lost).toMatchObject({ news: { move: 'restart', restarts: 1 } });
  const alive = look('JOINED', 0, sight, { ...young, againForMs: 60_000 });
  expect(alive).toEqual({ kind: 'news', news: { instance: 'i1', restarts: 1 } });
});
