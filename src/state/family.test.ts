/** Jobs that submit jobs: who ends with whom, whose name is taken, and whose token is good. */
import { beforeEach, describe, expect, test } from 'vitest';
import { submission, TestState } from '../../test/support/testState.ts';
import type { AttemptUid, JobId, WorkerId } from '../model/ids.ts';
import type { JobRules } from '../model/jobParts.ts';
import type { LiveJob } from './live.ts';

let it: TestState;
let worker: WorkerId;
beforeEach(() => {
  it = new TestState();
  worker = it.join('m1');
});

const running = (live: LiveJob): AttemptUid => {
  const [uid] = it.assign(live, worker) as [AttemptUid];
  it.run(uid);
  return uid;
};

describe('a parent and its children', () => {
  let parent: LiveJob;
  let uid: AttemptUid;
  beforeEach(() => {
    parent = it.submit();
    uid = running(parent);
  });
  const child = (rules: Partial<JobRules> = {}, of = parent): LiveJob =>
    it.submit({ rules }, { parent: of.job.id });

  test('end together, grandchildren too, except who was told to go on', () => {
    const waits = child();
    const runs = child();
    const runsUid = running(runs);
    const grandchild = child({}, runs);
    const free = child({ outliveParent: true });
    expect(grandchild.job).toMatchObject({ parent: runs.job.id, root: parent.job.id });
    it.exit(uid, 0);
    expect(waits.job.endedAtMs).not.toBeNull();
    expect(runs.job.cancelledBy).toBe(`the end of its parent ${parent.job.id}`);
    expect(grandchild.job.endedAtMs).toBeNull();
    it.end(runsUid, 'cancelled');
    expect(grandchild.job.endedAtMs).not.toBeNull();
    expect(free.job).toMatchObject({ endedAtMs: null, cancelRequestedAtMs: null });
  });

  test('a retry of the parent leaves its children alone', () => {
    const kept = child();
    it.apply({ kind: 'lose', attempts: [uid], reason: 'gone' });
    expect(kept.job.cancelRequestedAtMs).toBeNull();
  });

  test('one that is ending, or has ended, gets no more', () => {
    const late = submission([{}], { parent: parent.job.id });
    it.apply({ kind: 'cancel', job: parent.job.id, by: 'ann' });
    expect(it.apply(late).kind).toBe('stale');
    it.end(uid, 'cancelled');
    expect(it.apply(late).kind).toBe('stale');
    expect(it.apply({ ...late, parent: 'j0nobody' as JobId }).kind).toBe('stale');
  });

  test('its token is good until its attempt ends', () => {
    const user = { tenant: 'default', user: 'ann', pool: '', maxLiveWorkers: 0 };
    const token = { ...user, kind: 'attempt' as const, name: '', scopes: [], expiresAtMs: null };
    const make = (hash: string) =>
      it.apply({ kind: 'create-token', by: 'ann', token: { ...token, hash }, attempt: uid });
    expect(make('h1').kind).toBe('token');
    make('h2');
    expect(it.state.tokensByHash.has('h1')).toBe(true);
    it.exit(uid, 0);
    expect([...it.state.tokensByHash.keys()]).toEqual([]);
    expect(make('h3').kind).toBe('missing');
  });
});

describe('a name that is taken', () => {
  let first: LiveJob;
  beforeEach(() => {
    first = it.submit({ name: 'sweep' });
  });
  const again = (nameTaken: JobRules['nameTaken'], more = {}) =>
    it.apply(submission([{ name: 'sweep', rules: { nameTaken } }], more));

  test('is refused, kept, replaced or shared', () => {
    expect(again('error')).toMatchObject({ kind: 'name-taken', job: first.job.id });
    expect(again('keep')).toMatchObject({ kind: 'submitted', ids: [first.job.id] });
    expect(it.state.jobs.size).toBe(1);
    expect(again('allow').kind).toBe('submitted');
    expect(it.state.jobs.size).toBe(2);
    expect(again('replace').kind).toBe('submitted');
    expect(first.job.endedAtMs).not.toBeNull();
  });

  test('is free once its job has ended, in another tenant and below another parent', () => {
    expect(again('error', { tenant: 'other' }).kind).toBe('submitted');
    const parent = it.submit();
    running(parent);
    expect(again('error', { parent: parent.job.id }).kind).toBe('submitted');
    it.apply({ kind: 'cancel', job: first.job.id, by: 'ann' });
    expect(again('error').kind).toBe('submitted');
  });

  test('twice in one submission: nothing of it is accepted', () => {
    const rules = { nameTaken: 'error' as const };
    const both = submission([
      { name: 'a', rules },
      { name: 'a', rules },
    ]);
    expect(it.apply(both)).toMatchObject({ kind: 'name-taken', job: null });
    expect(it.state.jobs.size).toBe(1);
  });
});
