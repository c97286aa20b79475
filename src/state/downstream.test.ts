/** For whom jobs get tokens: kept while they live, theirs and their children's, and no longer. */
import { expect, test } from 'vitest';
import { TestState } from '../../test/support/testState.ts';
import type { Submit } from './mutations.ts';

const ADA: NonNullable<Submit['downstream']> = {
  issuer: 'https://login.example.org',
  subject: 'ada',
  audiences: ['storage', 'registry'],
  sealed: 'old',
  refused: [],
};

function rows({ state }: TestState): string[] {
  const all = [...state.changes.downstream].map(([{ sealed }, how]) => `${how} ${sealed}`);
  state.takeChanges();
  return all;
}

test('a plain job has no row; one with tokens has one until it ends', () => {
  const it = new TestState();
  it.submit();
  expect(rows(it)).toEqual([]);
  const { job } = it.submit({}, { downstream: ADA });
  expect(it.state.downstream.get(job.id)).toMatchObject({ subject: 'ada', tenant: job.tenant });
  expect(rows(it)).toEqual(['insert old']);
  it.apply({ kind: 'cancel', job: job.id, by: 'ada' });
  expect(it.state.downstream.size).toBe(0);
  expect(rows(it)).toEqual(['delete old']);
  const short = it.submit({}, { downstream: ADA });
  it.apply({ kind: 'cancel', job: short.job.id, by: 'ada' });
  expect(rows(it)).toEqual([]);
});

test('what is refused is told, and with nothing left there is no row', () => {
  const it = new TestState();
  const refused = [{ audience: 'storage', reason: 'invalid_target' }];
  const { job } = it.submit({}, { downstream: { ...ADA, audiences: [], refused } });
  const told = it.state.changes.events.filter(({ kind }) => kind === 'tokens.refused');
  expect(told).toMatchObject([{ job: job.id, data: { audience: 'storage' } }]);
  expect(rows(it)).toEqual([]);
});

test('a child is for whom its parent is; a new envelope is everybody’s who had the old', () => {
  const it = new TestState();
  const parent = it.submit({}, { downstream: ADA });
  const child = it.submit({}, { parent: parent.job.id });
  const other = it.submit({}, { downstream: { ...ADA, sealed: 'other' } });
  expect(it.state.downstream.get(child.job.id)?.subject).toBe('ada');
  it.state.takeChanges();
  it.apply({ kind: 'reseal', from: 'old', to: 'new' });
  expect(rows(it)).toEqual(['update new', 'update new']);
  expect(it.state.downstream.get(child.job.id)?.sealed).toBe('new');
  expect(it.state.downstream.get(other.job.id)?.sealed).toBe('other');
  const orphan = it.submit({});
  const plain = it.submit({}, { parent: orphan.job.id });
  expect(it.state.downstream.has(plain.job.id)).toBe(false);
});
