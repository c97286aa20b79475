/** The fake misbehaves exactly as announced, and keeps the truth about it. */
import { beforeEach, describe, expect, test } from 'vitest';
import { ManualClock } from '../../../test/support/manualClock.ts';
import type { Clock } from '../../lib/clock.ts';
import { seededRandom } from '../../lib/random.ts';
import type { LaunchBatch, Machine, Provider } from '../contract.ts';
import { FakeAccount } from './account.ts';
import { PROVIDER_FAULTS, randomFaults, ScriptedFaults, type ProviderFault } from './faults.ts';
import type { FakeMachine } from './machine.ts';
import { createFakeProvider } from './provider.ts';

const MINUTE = 60_000;
let clock: ManualClock;
let faults: ScriptedFaults;
let account: FakeAccount;
let provider: Provider;
let started: FakeMachine[];
let ended: FakeMachine[];

beforeEach(() => {
  clock = new ManualClock();
  faults = new ScriptedFaults();
  started = [];
  ended = [];
  account = new FakeAccount({
    ...{ clock, faults, random: seededRandom(7) },
    hooks: {
      started: (machine) => void started.push(machine),
      ended: (machine) => void ended.push(machine),
    },
  });
  provider = open('lab');
});

describe('launch', () => {
  test.each([
    ['launch: request lost', 'unknown', 0, 0],
    ['launch: reply lost', 'unknown', 1, 1],
    ['launch: fails though it created', 'thrown', 1, 1],
    ['launch: refused though it created', 'refused', 1, 1],
    ['launch: taken twice', 'launched', 2, 2],
    ['launch: appears late', 'unknown', 0, 1],
    ['launch: no capacity', 'refused', 0, 0],
    ['launch: configuration refused', 'refused', 0, 0],
    ['launch: unreachable', 'refused', 0, 0],
    ['launch: too many requests', 'refused', 0, 0],
  ] as const)('%s', async (fault, kind, soon, later) => {
    faults.next(fault);
    const result = await pass(provider.launch(batch())).catch(() => ({ kind: 'thrown' }));
    expect(result.kind).toBe(kind);
    expect(account.existing()).toHaveLength(soon);
    await clock.advance(11 * MINUTE);
    expect(account.existing()).toHaveLength(later);
    expect([...account.happened]).toEqual([[fault, 1]]);
  });

  test('too many requests: it says for how long it wants to be left alone', async () => {
    faults.next('launch: too many requests');
    const result = await pass(provider.launch(batch()));
    if (result.kind !== 'refused') throw new Error(result.kind);
    expect(result.retryAfterMs).toBeGreaterThan(0);
  });

  test('a part of a batch, then the rest of it when it is asked for again', async () => {
    faults.next('launch: creates only a part');
    const three = batch(3);
    expect(await pass(provider.launch(three))).toMatchObject({ kind: 'unknown' });
    expect(account.existing()).toHaveLength(2);
    expect(await pass(provider.launch(three))).toMatchObject({ kind: 'launched' });
    expect(account.existing()).toHaveLength(3);
  });

  test('hosts to avoid are avoided, and a full account is full', async () => {
    const avoid = account.hosts.slice(1);
    await pass(provider.launch({ ...batch(), avoid }));
    await clock.advance(2 * MINUTE);
    expect(started.map(({ host }) => host)).toEqual(account.hosts.slice(0, 1));
    const nowhere = await pass(provider.launch({ ...batch(), avoid: account.hosts }));
    expect(nowhere).toMatchObject({ kind: 'refused', refusal: 'capacity' });
    account.quota = 1;
    const full = await pass(provider.launch(batch()));
    expect(full).toMatchObject({ kind: 'refused', refusal: 'capacity' });
  });
});

describe('machines', () => {
  test.each([
    ['machine: stuck in the queue', { phase: 'queued', billed: false }, 0],
    ['machine: stuck while it boots', { phase: 'booting', billed: true }, 0],
    ['machine: never joins', { phase: 'running', failure: null }, 0],
    ['machine: stalls', { phase: 'booting', failure: 'STALLED' }, 0],
    ['machine: outbid and still billed', { phase: 'ending', billed: true }, 1],
    ['machine: costs more than told', { phase: 'running', priceHourMicros: 3_000_000 }, 1],
    ['machine: restarted on another host', { phase: 'running', restarts: 1 }, 2],
  ] as const)('%s', async (fault, shown, starts) => {
    faults.next(fault);
    await pass(provider.launch(batch()));
    await clock.advance(10 * MINUTE);
    expect(await list()).toMatchObject([shown]);
    expect(started).toHaveLength(starts);
    expect([...account.happened]).toEqual([[fault, 1]]);
  });

  test.each([
    ['machine: fails for its host', 'INFRA_FATAL'],
    ['machine: fails for its image', 'WORKLOAD_FATAL'],
  ] as const)('%s, and is billed until it is destroyed', async (fault, failure) => {
    faults.next(fault, 'machine: fails and stays billed');
    await pass(provider.launch(batch()));
    await clock.advance(10 * MINUTE);
    expect(await list()).toMatchObject([{ phase: 'ending', failure, billed: true }]);
    await pass(provider.destroy({ machines: [{ label: 'b1', handle: '' }], target: 0 }));
    await clock.advance(MINUTE);
    expect(account.existing()).toEqual([]);
  });

  test('one that vanishes is not shown any more, and costs no more', async () => {
    faults.next('machine: vanishes');
    await pass(provider.launch(batch()));
    await clock.advance(10 * MINUTE);
    expect(await list()).toEqual([]);
    expect(ended).toEqual(started);
    const charged = account.charges().length;
    await clock.advance(10 * MINUTE);
    expect(account.charges()).toHaveLength(charged);
  });

  test('one with a time limit says what is left of it, and ends then', async () => {
    await pass(provider.launch({ ...batch(), timeLimitMs: 20 * MINUTE }));
    await clock.advance(10 * MINUTE);
    const [machine] = await list();
    expect(machine!.leftMs).toBeLessThanOrEqual(11 * MINUTE);
    await clock.advance(11 * MINUTE);
    expect(account.existing()).toEqual([]);
  });

  test('each begun quantum is charged, and nothing before it boots or after its end', async () => {
    await pass(provider.launch(batch()));
    await clock.advance(5 * MINUTE);
    const [machine] = account.existing();
    machine!.end('over');
    await clock.advance(5 * MINUTE);
    const charges = account.charges();
    expect(charges.every(({ micros }) => micros === Math.ceil(1_000_000 / 60))).toBe(true);
    const [first] = charges;
    expect(first!.atMs).toBeGreaterThanOrEqual(machine!.createdAtMs);
    expect(charges).toHaveLength(Math.ceil((machine!.endedAtMs! - first!.atMs) / MINUTE));
  });
});

describe('list', () => {
  test.each(['list: fails', 'list: throws'] as const)('%s', async (fault) => {
    faults.next(fault);
    const listing = await pass(provider.list()).catch(() => ({ kind: 'thrown' }));
    expect(listing.kind).toBe(fault === 'list: fails' ? 'unknown' : 'thrown');
  });

  test('one that lags misses a fresh machine, and never goes back behind itself', async () => {
    await pass(provider.launch(batch()));
    faults.next('list: lags behind');
    expect(await list()).toEqual([]);
    expect(await list()).toHaveLength(1);
    faults.next('list: lags behind');
    expect(await list()).toHaveLength(1);
  });

  test('clusters see their own alone, also what nobody there remembers', async () => {
    const other = open('other');
    await pass(provider.launch(batch()));
    const [made] = account.existing();
    account.create({ ...made!.order, clusterId: 'other', label: 'i0orphan' });
    expect(await list()).toMatchObject([{ label: 'b1' }]);
    expect(await list(other)).toMatchObject([{ label: 'i0orphan' }]);
  });
});

describe('destroy', () => {
  test.each([
    ['destroy: request lost', 'unknown', 1],
    ['destroy: reply lost', 'unknown', 0],
    ['destroy: heard and not done', 'asked', 1],
    ['destroy: takes long', 'asked', 1],
  ] as const)('%s', async (fault, kind, left) => {
    await pass(provider.launch(batch()));
    faults.next(fault);
    const machines = await list();
    expect(await pass(provider.destroy({ machines, target: 0 }))).toMatchObject({ kind });
    await clock.advance(0.4 * MINUTE);
    expect(account.existing()).toHaveLength(left);
    await pass(provider.destroy({ machines, target: 0 }));
    await clock.advance(5 * MINUTE);
    expect(account.existing()).toEqual([]);
  });
});

test('a probe says whether the agent is up, or that nobody can tell', async () => {
  await pass(provider.launch(batch()));
  const [machine] = await list();
  expect(await pass(provider.probe!(machine!))).toMatchObject({ kind: 'warming' });
  await clock.advance(2 * MINUTE);
  expect(await pass(provider.probe!(machine!))).toMatchObject({ kind: 'ready' });
  faults.next('probe: fails');
  expect(await pass(provider.probe!(machine!))).toMatchObject({ kind: 'unknown' });
  expect(await pass(provider.logs!(machine!))).toContain(machine!.handle);
});

test('a reply does not reach whoever has closed its ears, but the request is done', async () => {
  const stopped: Clock = {
    ...{ now: () => clock.now(), bootMs: () => clock.bootMs(), soon: () => undefined },
    setTimer: () => ({ cancel: () => undefined }),
  };
  const deaf = createFakeProvider({ account, clusterId: 'lab', pool: 'rented', clock: stopped });
  let answered = false;
  void deaf.launch(batch()).then(() => void (answered = true));
  await clock.advance(MINUTE);
  expect(answered).toBe(false);
  expect(await list()).toHaveLength(1);
});

test('rates decide how often each fault happens', () => {
  const rates: Partial<Record<ProviderFault, number>> = { 'list: fails': 0.5, 'list: throws': 1 };
  const plan = randomFaults(seededRandom(3), rates);
  const often = (fault: ProviderFault): number =>
    Array.from({ length: 1000 }, () => plan.happens(fault)).filter(Boolean).length;
  for (const fault of PROVIDER_FAULTS) {
    const expected = (rates[fault] ?? 0) * 1000;
    expect(Math.abs(often(fault) - expected)).toBeLessThan(expected === 500 ? 60 : 1);
  }
});

function open(clusterId: string): Provider {
  return createFakeProvider({ account, clusterId, pool: 'rented', clock });
}

let batches = 0;
beforeEach(() => void (batches = 0));

function batch(count = 1): LaunchBatch {
  const id = `b${++batches}`;
  const intents = Array.from({ length: count }, (_, place) => ({
    label: count === 1 ? id : `${id}.${place}`,
    joinToken: 'secret',
  }));
  return {
    ...{ id, intents, resources: null, workers: 1, timeLimitMs: 0, noticeMs: 0, runAs: null },
    ...{ name: 'test', avoid: [], target: count },
    agent: { url: 'http://127.0.0.1:9', authorities: '', selfDestructAfterMs: MINUTE },
  };
}

/** What a call answers once its request and its reply have travelled, or were given up. */
async function pass<Value>(call: Promise<Value>): Promise<Value> {
  const seen = { over: false };
  const watched = call.finally(() => void (seen.over = true));
  watched.catch(() => undefined);
  while (!seen.over) await clock.advance(10);
  return watched;
}

async function list(of = provider): Promise<Machine[]> {
  const listing = await pass(of.list());
  if (listing.kind === 'unknown') throw new Error(listing.reason);
  return listing.machines;
}
