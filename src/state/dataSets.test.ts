/** Whatever is put and removed within a batch, the row is what the name means. */
import { expect, test } from 'vitest';
import type { ClusterId } from '../model/ids.ts';
import { apply } from './apply.ts';
import { emptySnapshot } from './live.ts';
import type { Mutation } from './mutations.ts';
import { State } from './state.ts';

const content = { tenant: 't', name: 'n', kind: 'blob' as const, bytes: 1, files: 1 };
const put = (hash: string): Mutation => ({
  kind: 'put-data',
  dataSet: { ...content, hash },
  by: 'ada',
});
const remove: Mutation = { kind: 'remove-data', tenant: 't', name: 'n', by: 'ada' };

function operations(state: State): string[] {
  const all = [...state.changes.dataSets].map(
    ([{ hash, version }, how]) => `${how} ${hash} ${version}`,
  );
  state.changes.dataSets.clear();
  return all;
}

test('one row for each name, with one word to the writer', () => {
  const state = new State(emptySnapshot('c1' as ClusterId, 1));
  for (const [steps, expected] of [
    [[put('a'), put('b')], ['insert b 2']],
    [[put('b')], []],
    [[put('c'), put('d')], ['update d 4']],
    [[remove, put('e')], ['update e 1']],
    [[remove], ['delete e 1']],
    [[put('f'), remove], []],
  ] as const) {
    for (const step of steps) expect(apply(state, step, 1000).kind).toBe('done');
    expect(operations(state)).toEqual(expected);
  }
  expect(apply(state, remove, 1000)).toEqual({ kind: 'missing', what: 'data set n' });
  expect([...state.dataSets.all()]).toEqual([]);
});
