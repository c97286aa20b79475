/** An instance that brings several workers joins when all of them have. */
import { expect, test } from 'vitest';
import { joining, TestState } from '../../test/support/testState.ts';
import type { InstanceId, WorkerId } from '../model/ids.ts';
import type { Intend } from './instanceMutations.ts';

const RESOURCES = joining('any').worker.resources;

function intend(test: TestState, tasks: Intend['tasks']): InstanceId {
  const result = test.apply({
    ...{ kind: 'intend', pool: 'rented', max: 4, count: 1, workers: 2, resources: RESOURCES },
    ...{ tasks, runAs: '', priceHourMicros: 0, timeLimitMs: 0, reason: 'work waits' },
  });
  if (result.kind !== 'intended') throw new Error(result.kind);
  return result.ids[0]!;
}

function join(test: TestState, machine: string, instance: InstanceId): WorkerId {
  const randomHex = ['aa', 'bb'];
  const result = test.apply({ ...joining(machine, { pool: 'rented' }), instance, randomHex });
  if (result.kind !== 'joined') throw new Error(result.kind);
  return result.worker;
}

test('the first of its workers takes no work, so that there is room for the gang', () => {
  const test = new TestState();
  const gang = test.submit({ shape: { kind: 'gang', size: 2 }, resources: { cpuMillis: 8000 } });
  const other = test.submit({ resources: { cpuMillis: 8000 } });
  const instance = intend(test, [gang.tasks.map(({ id }) => id)]);
  const first = join(test, 'm1', instance);
  const open = (worker: WorkerId): boolean | undefined =>
    test.state.deltas.take(test.state, test.nowMs).workers.find(({ id }) => id === worker)?.open;
  expect(open(first)).toBe(false);
  expect(test.apply(test.placement(other, first))).toMatchObject({ kind: 'stale' });

  join(test, 'm2', instance);
  expect(test.state.machines.instances.get(instance)?.instance.state).toBe('JOINED');
  expect(open(first)).toBe(true);
  expect([...test.state.nominations.keys()]).toEqual(gang.tasks.map(({ id }) => id));
});
