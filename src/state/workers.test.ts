/** Workers join, join again, are suspected, drained and lost; tokens come and go. */
import { beforeEach, describe, expect, test } from 'vitest';
import { joining, picture, TestState } from '../../test/support/testState.ts';
import type { AttemptUid, TokenId, WorkerId } from '../model/ids.ts';
import type { Scope } from '../model/token.ts';

let it: TestState;
beforeEach(() => {
  it = new TestState();
});
const move = (worker: WorkerId, how: 'suspect' | 'recover' | 'lose') =>
  it.apply({ kind: 'move-worker', worker, move: how, reason: 'silent' });

/** A worker with one attempt that runs. */
function busy() {
  const worker = it.join('m1');
  const live = it.submit({ resources: { cpuMillis: 3000 } });
  const [uid] = it.assign(live, worker);
  it.run(uid!);
  return { worker, live, uid: uid!, task: live.tasks[0]! };
}

describe('a join', () => {
  test('is a new worker, found by its token and its machine', () => {
    const id = it.join('m1');
    const live = it.state.workers.get(id);
    expect(live?.worker).toMatchObject({ state: 'ONLINE', draining: false, version: 1 });
    expect(it.state.workersByToken.get('hash-m1')).toBe(live);
    expect(it.state.workersByMachine.get('m1')).toBe(live);
    expect(it.state.deltas.take(it.state, 0).workers).toMatchObject([{ id, open: true }]);
  });

  test('is refused beyond what the token allows; other tokens have their own count', () => {
    it.join('m1', {}, 1);
    const before = picture(it.state);
    expect(it.apply(joining('m2', {}, 1))).toEqual({ kind: 'too-many', limit: 1 });
    expect(picture(it.state)).toEqual(before);
    it.join('m2', { joinToken: 't2' }, 1);
    // The machine that is counted may come back.
    expect(it.apply(joining('m1', { tokenHash: 'new' }, 1))).toMatchObject({ superseded: true });
  });

  test('of a machine that is known keeps the worker and its work, and fences the old token', () => {
    const { worker, uid, task } = busy();
    const again = joining('m1', { tokenHash: 'new', name: 'renamed' });
    expect(it.apply(again)).toEqual({ kind: 'joined', worker, superseded: true });
    expect(it.state.workersByToken.has('hash-m1')).toBe(false);
    expect(it.state.workersByToken.get('new')?.worker).toMatchObject({
      id: worker,
      name: 'renamed',
    });
    expect(it.state.attempts.get(uid)?.state).toBe('RUNNING');
    expect(task.state).toBe('RUNNING');
    expect(it.state.workers.get(worker)?.capacity.cpuFree).toBe(5000);
  });

  test('after a reboot proves nothing; the list that follows does', () => {
    const { worker, task } = busy();
    it.apply(joining('m1', { tokenHash: 'new', bootId: 'boot2' }));
    expect(task.state).toBe('RUNNING');
    it.apply({ kind: 'observe', worker, observed: [], complete: true });
    expect(task).toMatchObject({ state: 'PENDING', interruptions: 1 });
    expect(it.state.workers.get(worker)?.capacity.cpuFree).toBe(8000);
  });

  test('with less than is held leaves nothing for others, and frees what ends', () => {
    const { worker, uid } = busy();
    const { resources } = joining('m1').worker;
    it.apply(joining('m1', { tokenHash: 'new', resources: { ...resources, cpuMillis: 1000 } }));
    expect(it.state.workers.get(worker)?.capacity.cpuFree).toBe(-2000);
    it.exit(uid, 0);
    expect(it.state.workers.get(worker)?.capacity.cpuFree).toBe(1000);
  });

  test('of one that was suspected is contact, and a drain goes on', () => {
    const worker = it.join('m1');
    it.apply({ kind: 'drain', worker, draining: true, by: 'ann', tenant: 'default' });
    move(worker, 'suspect');
    it.apply(joining('m1', { tokenHash: 'new' }));
    expect(it.state.workers.get(worker)?.worker).toMatchObject({ state: 'ONLINE', draining: true });
  });

  test('after it was lost is another worker', () => {
    const worker = it.join('m1');
    move(worker, 'lose');
    expect(it.join('m1')).not.toBe(worker);
  });
});

describe('a worker', () => {
  test('out of contact gets nothing new and keeps what it has; contact undoes it', () => {
    const { worker, uid } = busy();
    it.state.deltas.take(it.state, 0);
    move(worker, 'suspect');
    expect(it.state.deltas.take(it.state, 0).workers).toMatchObject([{ id: worker, open: false }]);
    expect(it.state.attempts.get(uid)?.state).toBe('RUNNING');
    move(worker, 'recover');
    expect(it.state.deltas.take(it.state, 0).workers).toMatchObject([{ id: worker, open: true }]);
  });

  test('lost takes its attempts with it, and its token', () => {
    const { worker, task } = busy();
    it.state.deltas.take(it.state, 0);
    const { worker: row } = it.state.workers.get(worker)!;
    move(worker, 'lose');
    expect(row).toMatchObject({ state: 'LOST', endedAtMs: 1000 });
    expect(task.state).toBe('PENDING');
    expect([it.state.workers.size, it.state.workersByToken.size, it.state.claims.size]).toEqual([
      0, 0, 0,
    ]);
    expect(it.state.workersByMachine.size).toBe(0);
    expect(it.state.deltas.take(it.state, 0)).toMatchObject({ workersGone: [worker], workers: [] });
    expect(it.state.wake).toContain(worker);
  });

  test.each(['suspect', 'recover'] as const)('%s twice is stale and changes nothing', (how) => {
    const worker = it.join('m1');
    move(worker, 'suspect');
    if (how === 'recover') move(worker, 'recover');
    const before = picture(it.state);
    expect(move(worker, how)).toMatchObject({ kind: 'stale' });
    expect(picture(it.state)).toEqual(before);
  });

  test('nobody knows cannot be moved or drained', () => {
    const none = 'w-none' as WorkerId;
    expect(move(none, 'lose')).toMatchObject({ kind: 'missing' });
    const drain = it.apply({
      kind: 'drain',
      worker: none,
      draining: true,
      by: 'ann',
      tenant: 'default',
    });
    expect(drain).toMatchObject({ kind: 'missing' });
  });

  test('drains until it is told otherwise; the same again changes nothing', () => {
    const worker = it.join('m1');
    const drain = (draining: boolean) =>
      it.apply({ kind: 'drain', worker, draining, by: 'ann', tenant: 'default' });
    drain(true);
    const before = picture(it.state);
    expect(drain(true)).toEqual({ kind: 'done' });
    expect(picture(it.state)).toEqual(before);
    drain(false);
    expect(it.state.changes.events.map(({ kind }) => kind)).toEqual([
      'worker.joined',
      'worker.draining',
      'worker.undrained',
    ]);
  });
});

describe('a token', () => {
  const create = (kind: 'user' | 'join', pool = 'default') =>
    it.apply({
      kind: 'create-token',
      by: 'ann',
      token: {
        kind,
        name: 'n',
        tenant: 'default',
        user: 'ann',
        scopes: ['jobs:read'] as Scope[],
        hash: `hash-${kind}`,
        pool,
        maxLiveWorkers: 0,
        expiresAtMs: null,
      },
    });

  test('is found by its hash until it is revoked, and listed after', () => {
    const result = create('user');
    if (result.kind !== 'token') throw new Error(result.kind);
    expect(it.state.tokensByHash.get('hash-user')?.id).toBe(result.id);
    it.nowMs = 2000;
    it.apply({ kind: 'revoke-token', token: result.id, by: 'ann' });
    expect(it.state.tokensByHash.size).toBe(0);
    expect(it.state.tokens.get(result.id)).toMatchObject({ createdAtMs: 1000, revokedAtMs: 2000 });
    const before = picture(it.state);
    expect(it.apply({ kind: 'revoke-token', token: result.id, by: 'ann' })).toEqual({
      kind: 'done',
    });
    expect(picture(it.state)).toEqual(before);
    const none = it.apply({ kind: 'revoke-token', token: 't-none' as TokenId, by: 'ann' });
    expect(none).toMatchObject({ kind: 'missing' });
  });

  test('to join makes its pool known', () => {
    create('user', 'unknown');
    create('join', 'lab');
    expect([...it.state.pools]).toEqual(['lab']);
  });
});

test('a revoked worker is refused, and loses what it runs only when its lease has run out', () => {
  const it = new TestState();
  const worker = it.join('m1');
  const [uid] = it.assign(it.submit(), worker) as [AttemptUid];
  it.run(uid);
  expect(it.apply({ kind: 'revoke-worker', worker, by: 'ann', tenant: 'default' }).kind).toBe(
    'done',
  );
  expect(it.apply({ kind: 'revoke-worker', worker, by: 'ann', tenant: 'default' }).kind).toBe(
    'done',
  );
  expect(it.state.workersByToken.size).toBe(0);
  expect(it.state.attempts.has(uid)).toBe(true);
  expect(it.state.workers.get(worker)?.worker.draining).toBe(true);
  expect(it.join('m1')).toBe(worker);
  expect(it.state.workersByToken.size).toBe(1);
});
