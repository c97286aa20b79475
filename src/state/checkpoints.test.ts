/** Checkpoints: only the attempt that runs may add one, the newest few are kept, once each. */
import { beforeEach, expect, test } from 'vitest';
import { TestState } from '../../test/support/testState.ts';
import type { AttemptUid, WorkerId } from '../model/ids.ts';
import type { LiveJob } from './live.ts';
import type { Result } from './mutations.ts';

let it: TestState;
let worker: WorkerId;
let live: LiveJob;
let uid: AttemptUid;
beforeEach(() => {
  it = new TestState();
  worker = it.join('m1');
  live = it.submit({ checkpoint: { keep: 2 } });
  [uid] = it.assign(live, worker) as [AttemptUid];
  it.run(uid);
});

const save = (
  manifest: string,
  by: AttemptUid = uid,
  on: WorkerId = worker,
  takenBootMs = 0,
): Result =>
  it.apply({
    kind: 'add-checkpoint',
    worker: on,
    attempt: by,
    manifest,
    bytes: 10,
    files: 1,
    reason: 'interval',
    takenBootMs,
  });
const kept = (): string[] =>
  it.state.checkpoints.of(live.tasks[0]!.id).map(({ n, manifest }) => `${n} ${manifest}`);
const written = () =>
  [...it.state.changes.checkpoints].map(([{ n }, operation]) => `${operation} ${n}`);

test('the newest few are kept, the others leave the store', () => {
  save('a');
  save('b');
  it.state.takeChanges();
  save('c');
  expect(kept()).toEqual(['2 b', '3 c']);
  expect(written()).toEqual(['insert 3', 'delete 1']);
});

test('one that comes and goes within a batch is never written', () => {
  for (const manifest of ['a', 'b', 'c', 'd']) save(manifest);
  expect(kept()).toEqual(['3 c', '4 d']);
  expect(written()).toEqual(['insert 3', 'insert 4']);
});

test('told twice, it counts once', () => {
  save('a');
  expect(save('a').kind).toBe('done');
  expect(kept()).toEqual(['1 a']);
});

test('one that was overtaken on its way does not come back as the newest', () => {
  save('a', uid, worker, 100);
  save('b', uid, worker, 200);
  expect(save('a', uid, worker, 100).kind).toBe('done');
  expect(kept()).toEqual(['1 a', '2 b']);
  // What the command writes may well be what it once had.
  save('a', uid, worker, 300);
  expect(kept()).toEqual(['2 b', '3 a']);
});

test('an attempt that is over, or another worker, changes nothing', () => {
  save('a');
  const other = it.join('m2');
  expect(save('x', uid, other).kind).toBe('stale');
  it.apply({ kind: 'lose', attempts: [uid], reason: 'gone' });
  expect(save('late').kind).toBe('missing');
  expect(kept()).toEqual(['1 a']);
  const [next] = it.assign(live, other) as [AttemptUid];
  expect(save('b', next, other).kind).toBe('done');
  expect(kept()).toEqual(['1 a', '2 b']);
});
