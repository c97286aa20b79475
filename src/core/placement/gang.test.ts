/** Gangs: all members or none, on one network, in one locality. */
import { describe, expect, test } from 'vitest';
import type { Constraint } from '../../model/placement.ts';
import { fleetOf, gpus, put, testRequest, testWorker, wants } from './testFleet.ts';

const racked = (id: string, network: string, rack?: string) =>
  testWorker(id, { network, attributes: rack ? { rack } : {} }, { devices: gpus(2) });
const member = (placement: Parameters<typeof testRequest>[0] = {}, count = 1) =>
  testRequest(placement, { resources: wants({ ports: 1 }, { count }), gangSize: 2 });
const whereOf = (spots: { worker: string }[] | null) =>
  spots?.map(({ worker }) => worker).toSorted();

describe('a gang', () => {
  test('gets spots that do not overlap, and books nothing', () => {
    const fleet = fleetOf(racked('w', 'lan'));
    const spots = fleet.placeGang(member(), 2)!;
    expect(new Set(spots.flatMap(({ devices }) => devices))).toEqual(new Set([0, 1]));
    expect(new Set(spots.flatMap(({ ports }) => ports)).size).toBe(2);
    expect(fleet.worker('w' as never)?.capacity.devicesFree()).toBe(2);
    expect(fleet.worker('w' as never)?.claims.size).toBe(0);
    expect(fleet.freed).toBe(1);
  });

  test('stays on one network', () => {
    const fleet = fleetOf(racked('a', 'lan'), racked('b', 'wan'), racked('c', 'wan'));
    expect(whereOf(fleet.placeGang(member({}, 2), 2))).toEqual(['b', 'c']);
    expect(fleet.placeGang(member({}, 2), 3)).toBeNull();
    expect(fleet.rejections(member({}, 2))).toEqual(new Map([['gang', 3]]));
  });

  test('shares one value of the attribute it names; workers without it do not count', () => {
    const fleet = fleetOf(
      racked('a', 'lan', 'r1'),
      racked('b', 'lan', 'r2'),
      racked('c', 'wan', 'r2'),
      racked('d', 'lan'),
      racked('e', 'lan'),
    );
    expect(fleet.placeGang(member({ locality: 'rack' }, 2), 2)).toBeNull();
    expect(fleet.placeGang(member({}, 2), 2)).not.toBeNull();
    fleet.setWorker(racked('f', 'lan', 'r2'));
    expect(whereOf(fleet.placeGang(member({ locality: 'rack' }, 2), 2))).toEqual(['b', 'f']);
  });

  test('that wants its members apart gets a worker for each', () => {
    const fleet = fleetOf(racked('a', 'lan'), racked('b', 'lan'));
    for (const placement of [{ exclusive: true }, { antiAffinity: 'ring' }]) {
      expect(whereOf(fleet.placeGang(member(placement), 2))).toEqual(['a', 'b']);
      expect(fleet.placeGang(member(placement), 3)).toBeNull();
    }
  });

  test('takes the smallest group that has room, so that a larger gang finds the other', () => {
    const fleet = fleetOf(
      ...['a', 'b', 'c'].map((id) => racked(id, 'lan', 'r1')),
      ...['d', 'e'].map((id) => racked(id, 'lan', 'r2')),
    );
    expect(whereOf(fleet.placeGang(member({ locality: 'rack' }, 2), 2))).toEqual(['d', 'e']);
  });

  test('goes where it is preferred, if all fit there', () => {
    const wanted: Constraint = {
      attribute: 'rack',
      operator: 'EQ',
      values: ['r1'],
      preferred: true,
    };
    const fleet = fleetOf(
      ...['a', 'b', 'c'].map((id) => racked(id, 'lan', 'r1')),
      ...['d', 'e'].map((id) => racked(id, 'lan', 'r2')),
    );
    const request = member({ locality: 'rack', constraints: [{ ...wanted }] }, 2);
    expect(whereOf(fleet.placeGang(request, 3))).toEqual(['a', 'b', 'c']);
    put(fleet, member({ constraints: [{ ...wanted, preferred: false }] }, 2));
    put(fleet, member({ constraints: [{ ...wanted, preferred: false }] }, 2));
    expect(whereOf(fleet.placeGang(request, 2))).toEqual(['d', 'e']);
  });
});
