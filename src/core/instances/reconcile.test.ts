/** What a look at a provider means: each state, seen or not, in each phase. */
import { describe, expect, test } from 'vitest';
import type { InstanceId } from '../../model/ids.ts';
import type { Instance, InstanceState } from '../../model/instance.ts';
import { match } from './match.ts';
import { judge, type Look, type Sight } from './reconcile.ts';

const NOW = 1_000_000_000;
const MINUTE = 60_000;
const RULES = { bootTimeoutMs: 5 * MINUTE, queues: false, quantumMs: MINUTE };

function instance(state: InstanceState, more: Partial<Instance> = {}): Instance {
  return {
    id: 'i1' as InstanceId,
    ...{ pool: 'p', state, failure: null, reason: '', handle: '7', host: 'h', workers: 1 },
    resources: { cpuMillis: 1000, memoryBytes: 0, devices: [], portRange: [1, 2] },
    ...{ tasks: [], runAs: '', priceHourMicros: 0, spentMicros: 0, paidUntilMs: null },
    ...{ timeLimitMs: 0, startsAtMs: null, endsAtMs: null, restarts: 0, script: '' },
    ...{ createdAtMs: NOW - MINUTE, requestedAtMs: NOW - MINUTE, runningAtMs: null },
    ...{ joinedAtMs: null, destroyAtMs: null, endedAtMs: null, version: 1, ...more },
  };
}

function sight(phase: Sight['phase'], more: Partial<Sight> = {}): Sight {
  return {
    ...{ label: 'i1', handle: '7', phase, reason: '', failure: null, host: 'h' },
    ...{ startsAtMs: null, leftMs: null, restarts: 0, billed: false, priceHourMicros: null },
    ...more,
  };
}

function look(of: Instance, seen?: Sight, more: Partial<Look> = {}): Look {
  const { requestedAtMs, createdAtMs, runningAtMs } = of;
  return {
    ...{
      instance: of,
      sight: seen,
      launching: false,
      workers: 1,
      settled: true,
      silent: false,
      empty: true,
    },
    againForMs: 0,
    askedForMs: NOW - (requestedAtMs ?? createdAtMs),
    runningForMs: runningAtMs === null ? null : NOW - runningAtMs,
    ...more,
  };
}

describe('an instance that its provider', () => {
  test.each<[string, Look, object]>([
    [
      'does not list, asked for just now',
      look(instance('REQUESTED', { requestedAtMs: NOW })),
      { kind: 'as-is' },
    ],
    ['does not list, asked for long ago', look(instance('REQUESTED')), { kind: 'gone' }],
    [
      'does not list, while it is being asked',
      look(instance('INTENDED'), undefined, { launching: true }),
      { kind: 'as-is' },
    ],
    ['does not list any more', look(instance('JOINED')), { kind: 'gone', failure: null }],
    [
      'does not list, as it was to be',
      look(instance('DESTROYING', { requestedAtMs: NOW }), undefined, { workers: 0 }),
      { kind: 'gone' },
    ],
    [
      'does not list yet, though its worker was quicker',
      look(instance('JOINED', { requestedAtMs: NOW })),
      { kind: 'as-is' },
    ],
    [
      'shows as over',
      look(instance('JOINED'), sight('gone', { reason: 'TIMEOUT' })),
      { kind: 'gone', reason: 'TIMEOUT' },
    ],
    [
      'has in its queue',
      look(instance('REQUESTED', { handle: '' }), sight('queued', { reason: 'Priority' })),
      { kind: 'news', news: { handle: '7', reason: 'Priority' } },
    ],
    [
      'found after a lost reply',
      look(instance('INTENDED', { handle: '' }), sight('running')),
      { kind: 'news', news: { move: 'boot' } },
    ],
    [
      'has started anew',
      look(instance('JOINED'), sight('running', { restarts: 1 })),
      { kind: 'news', news: { move: 'restart', restarts: 1 } },
    ],
    [
      'has put back into its queue',
      look(instance('JOINED'), sight('queued')),
      { kind: 'news', news: { move: 'restart' } },
    ],
    [
      'boots again, and whose worker was lost meanwhile',
      look(instance('JOINED'), sight('booting'), { workers: 0 }),
      { kind: 'news', news: { move: 'restart' } },
    ],
    [
      'showed in its queue before a worker came that lives',
      look(instance('JOINED'), sight('queued'), { settled: false }),
      { kind: 'as-is' },
    ],
    [
      'ends by itself',
      look(instance('JOINED'), sight('ending', { reason: 'outbid' })),
      { kind: 'destroy', reason: /outbid/ },
    ],
    [
      'says has failed',
      look(instance('BOOTING'), sight('booting', { failure: 'INFRA_FATAL' })),
      { kind: 'destroy', failure: 'INFRA_FATAL' },
    ],
    [
      'started long ago, and that never joined',
      look(instance('BOOTING', { runningAtMs: NOW - 6 * MINUTE }), sight('running')),
      { kind: 'destroy', failure: 'STALLED' },
    ],
    [
      'runs, though its worker is lost',
      look(instance('JOINED'), sight('running'), { workers: 0 }),
      { kind: 'destroy', failure: 'INFRA_FATAL' },
    ],
    [
      'runs, and that is empty by now',
      look(instance('DRAINING'), sight('running')),
      { kind: 'destroy', failure: null },
    ],
    [
      'runs, and that is still used',
      look(instance('DRAINING'), sight('running'), { empty: false }),
      { kind: 'as-is' },
    ],
    ['runs as before', look(instance('JOINED'), sight('running')), { kind: 'as-is' }],
  ])('%s', (_, seen, verdict) => {
    expect(judge(seen, RULES, NOW)).toMatchObject(verdict);
  });

  test('may keep it in its queue for any time where it has one', () => {
    const old = instance('REQUESTED', { requestedAtMs: NOW - 600 * MINUTE });
    expect(judge(look(old, sight('queued')), { ...RULES, queues: true }, NOW).kind).toBe('as-is');
    expect(judge(look(old, sight('queued')), RULES, NOW)).toMatchObject({ failure: 'STALLED' });
  });

  test('bills by quanta, each paid when it begins, also those that nobody looked at', () => {
    const seen = sight('running', { billed: true, priceHourMicros: 60_000_000 });
    const first = judge(look(instance('JOINED'), seen), RULES, NOW);
    expect(first).toMatchObject({ news: { paid: { untilMs: NOW + MINUTE, micros: 1_000_000 } } });
    const paid = instance('JOINED', { paidUntilMs: NOW - 90_000, priceHourMicros: 60_000_000 });
    const later = judge(look(paid, seen), RULES, NOW);
    expect(later).toMatchObject({ news: { paid: { untilMs: NOW + 30_000, micros: 2_000_000 } } });
    const covered = instance('JOINED', { paidUntilMs: NOW + 1, priceHourMicros: 60_000_000 });
    expect(judge(look(covered, seen), RULES, NOW).kind).toBe('as-is');
  });

  test('tells when it ends, and again only when that has moved', () => {
    const seen = sight('running', { leftMs: 10 * MINUTE });
    const first = judge(look(instance('JOINED'), seen), RULES, NOW);
    expect(first).toMatchObject({ news: { endsAtMs: NOW + 10 * MINUTE } });
    const known = instance('JOINED', { endsAtMs: NOW + 10 * MINUTE - 3000 });
    expect(judge(look(known, seen), RULES, NOW).kind).toBe('as-is');
  });
});

describe('whatever the wall clock is set to', () => {
  const HOUR = 60 * MINUTE;

  test('one that does not come is given up after its time', () => {
    const late = look(instance('BOOTING'), sight('running'), { runningForMs: 6 * MINUTE });
    expect(judge(late, RULES, NOW - HOUR)).toMatchObject({ failure: 'STALLED' });
    const fresh = { ...late, runningForMs: 1000 };
    expect(judge(fresh, RULES, NOW + HOUR)).toMatchObject({ kind: 'as-is' });
  });

  test('what it costs is paid on', () => {
    const seen = sight('running', { billed: true, priceHourMicros: 60 });
    const ahead = instance('JOINED', { paidUntilMs: NOW + HOUR, priceHourMicros: 60 });
    expect(judge(look(ahead, seen), RULES, NOW)).toMatchObject({
      news: { paid: { untilMs: NOW + MINUTE, micros: 1 } },
    });
  });
});

describe('machines and instances', () => {
  const named = (id: string, handle: string, state: InstanceState = 'REQUESTED'): Instance =>
    instance(state, { id: id as InstanceId, handle });
  const machine = (label: string, handle: string, phase: Sight['phase'] = 'running'): Sight =>
    sight(phase, { label, handle });

  test('by label; a second with the same one is a stranger', () => {
    const machines = [machine('i1', '7'), machine('i1', '8'), machine('i9', '9')];
    const { of, unknown } = match([named('i1', '8')], machines, true);
    expect([...of.values()].map(({ handle }) => handle)).toEqual(['8']);
    expect(unknown.map(({ handle }) => handle)).toEqual(['7', '9']);
  });

  test('of two with one label the one that lives: its worker may be that one', () => {
    const machines = [machine('i1', '7', 'gone'), machine('i1', '8')];
    for (const listed of [machines, machines.toReversed()]) {
      const { of } = match([named('i1', '7')], listed, true);
      expect([...of.values()].map(({ handle }) => handle)).toEqual(['8']);
    }
  });

  test('without labels by handle, and the rest to whoever has none', () => {
    const instances = [named('i1', '7'), named('i2', ''), named('i3', '', 'DESTROYING')];
    const machines = [
      machine('', '8'),
      machine('', '7'),
      machine('', '9'),
      machine('', '6', 'gone'),
    ];
    const { of, unknown } = match(instances, machines, false);
    expect([...of].map(([id, { handle }]) => [id, handle])).toEqual([
      ['i1', '7'],
      ['i2', '8'],
    ]);
    expect(unknown.map(({ handle }) => handle)).toEqual(['9', '6']);
  });
});
