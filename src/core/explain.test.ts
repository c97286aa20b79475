/** What is said of why something waits, from the workers there are. */
import { describe, expect, test } from 'vitest';
import { held, NOTHING, wanting, worker } from '../../test/support/planning.ts';
import type { AttemptUid, WorkerId } from '../model/ids.ts';
import { OPEN_TERMS, PLAIN_PLACEMENT } from '../model/placement.ts';
import type { DeviceRequest, WorkerResources } from '../model/resources.ts';
import { explainMisfit, type Explanation } from './explain.ts';
import type { PlacementRequest, PlannerWorker } from './placement/request.ts';
import { PlannerView } from './schedule/view.ts';

const RESOURCES = worker('').resources;
const lab = (id: string, more: Partial<WorkerResources> = {}): PlannerWorker =>
  worker(id, { pool: 'lab', resources: { ...RESOURCES, ...more } });
const a100 = (index: number) => ({ index, kind: 'gpu' as const, model: 'A100', memoryBytes: 0 });

function asking(
  device: Partial<DeviceRequest> | null,
  more: Partial<PlacementRequest> = {},
): PlacementRequest {
  const request = wanting(1000, more);
  const whole = { kind: 'gpu' as const, count: 1, share: 1000, models: [], memoryBytes: 0 };
  return {
    ...request,
    resources: { ...request.resources, device: device && { ...whole, ...device } },
  };
}

function misfit(request: PlacementRequest, ...workers: PlannerWorker[]): Explanation {
  const view = new PlannerView();
  view.update({ ...NOTHING, requests: [request], workers });
  return explainMisfit(view, request);
}

describe('no room', () => {
  test('counts the workers by why they were passed over', () => {
    const view = new PlannerView();
    const request = wanting(2000, { pool: 'lab' });
    request.resources = { ...request.resources, memoryBytes: 20, ports: 2 };
    const full = { devices: [], share: 1000, ports: [], state: 'HELD' as const, memoryBytes: 0 };
    const on = (id: string) => ({ owner: id as AttemptUid, worker: id as WorkerId });
    view.update({
      ...NOTHING,
      requests: [request, wanting(1, { key: '' })],
      workers: [
        worker('w1'),
        worker('w2'),
        worker('w3', { pool: 'lab', open: false }),
        lab('w4'),
        lab('w5', { memoryBytes: 10 }),
        lab('w6', { portRange: [5, 5] }),
      ],
      claims: [held({ ...full, ...on('w4'), cpuMillis: 3000 })],
    });
    expect(explainMisfit(view, request)).toMatchObject({
      code: 'NO_ROOM',
      sentence:
        'no room on 6 workers: 2 not in pool lab, 1 draining or out of contact, ' +
        '1 with too few free CPUs, 1 with too little free memory, 1 with too few free ports',
      workers: [
        { reason: 'pool', count: 2 },
        { reason: 'closed', count: 1 },
        { reason: 'cpus', count: 1 },
        { reason: 'memory', count: 1 },
        { reason: 'ports', count: 1 },
      ],
    });
  });

  test('a gang whose members would each fit is told of the network', () => {
    const gang = wanting(3000, { gangSize: 2 });
    const view = new PlannerView();
    const big = worker('w1', { resources: { ...RESOURCES, cpuMillis: 6000 } });
    const claim = { devices: [], share: 1000, ports: [], state: 'HELD' as const, memoryBytes: 0 };
    const on = { owner: 'a' as AttemptUid, worker: 'w1' as WorkerId, cpuMillis: 3000 };
    view.update({
      ...NOTHING,
      requests: [gang, wanting(1, { key: '' })],
      workers: [big, worker('w2', { network: 'b' })],
      claims: [held({ ...claim, ...on })],
    });
    expect(explainMisfit(view, gang)).toMatchObject({ code: 'GANG_NETWORK' });
  });

  test('a gang that no network could hold is told so', () => {
    const gang = wanting(3000, { gangSize: 3 });
    const far = worker('w3', { network: 'b' });
    expect(misfit(gang, worker('w1'), worker('w2'), far)).toMatchObject({
      code: 'NEVER_FITS_NOW',
      sentence:
        'it needs room for 3 members on one network; the largest holds 2, ' +
        'even when nothing else runs',
      suggestions: ['join workers for 1 more on one network'],
    });
  });
});

describe('what no worker could ever take', () => {
  test.each<[string, PlacementRequest, PlannerWorker[], string[]]>([
    ['no worker has joined yet', wanting(1), [], ['join a worker: `drover agent`']],
    [
      'no worker has joined in pool lab',
      wanting(1000, { pool: 'lab' }),
      [worker('w1')],
      ['join a worker in pool lab', 'use pool default: 1 worker there could take it'],
    ],
    [
      'it needs a worker with 4 A100 in pool lab; the largest has 2 A100',
      asking({ count: 4, models: ['A100'] }, { pool: 'lab' }),
      [lab('w1'), lab('w2', { devices: [a100(0), a100(1)] })],
      ['join a worker with 4 A100 in pool lab', 'ask for at most 2 A100'],
    ],
    [
      'it needs a worker with 9 CPUs; the largest has 4 CPUs',
      wanting(9000),
      [worker('w1')],
      ['join a worker with 9 CPUs', 'ask for at most 4 CPUs'],
    ],
    [
      'no worker has all of it at once: each has too few devices or cpus',
      asking({}, {}),
      [lab('w1'), lab('w2', { devices: [a100(0)], cpuMillis: 500 })],
      [],
    ],
    [
      'no worker has rack = r9',
      wanting(1000, {
        placement: {
          ...PLAIN_PLACEMENT,
          constraints: [{ attribute: 'rack', operator: 'EQ', values: ['r9'], preferred: false }],
        },
      }),
      [worker('w1', { attributes: { rack: 'r1' } })],
      [],
    ],
    [
      'no worker takes such work: they take interruptible work only (--spot)',
      wanting(1000),
      [worker('w1', { terms: { ...OPEN_TERMS, interruptibleOnly: true } })],
      [],
    ],
    [
      'all 2 workers are draining or out of contact',
      wanting(1000),
      [worker('w1', { open: false }), worker('w2', { open: false })],
      [],
    ],
  ])('%s', (sentence, request, workers, suggestions) => {
    const said = misfit(request, ...workers);
    expect(said).toMatchObject({ sentence, suggestions });
    expect(said.code).toBe(workers.length === 0 ? 'NO_WORKER' : 'NEVER_FITS_NOW');
  });
});
