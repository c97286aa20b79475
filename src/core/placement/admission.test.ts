/** What is refused at once because no pool could ever run it. */
import { describe, expect, test } from 'vitest';
import type { WorkerResources } from '../../model/resources.ts';
import { jobSpec, type SubmittedSpec } from '../../protocol/jobSpec.ts';
import { freePool, neverFits, type PoolPolicy } from './admission.ts';

const largest = (more: Partial<WorkerResources> = {}): WorkerResources => ({
  cpuMillis: 4000,
  memoryBytes: 2 ** 34,
  devices: [],
  portRange: [1, 65_535],
  ...more,
});
const h100 = { index: 0, kind: 'gpu', model: 'H100', memoryBytes: 2 ** 36 } as const;

const pools: PoolPolicy[] = [
  { ...freePool('small'), largestWorker: largest() },
  { ...freePool('gpus'), largestWorker: largest({ devices: [h100] }) },
];

const ask = (fields: Partial<SubmittedSpec>, limits = pools, joined: string[] = []) =>
  neverFits(jobSpec.parse({ command: ['true'], ...fields }), limits, new Set(joined));

describe('a job', () => {
  test('that some pool could run may wait', () => {
    expect(ask({})).toBeNull();
    expect(ask({ resources: { device: { models: ['h100'] } } })).toBeNull();
    expect(ask({ pool: 'small', resources: { cpuMillis: 4000 } })).toBeNull();
  });

  test('larger than every pool is refused, with what each is short of', () => {
    expect(ask({ resources: { cpuMillis: 4001 } })).toBe(
      'pool small: its largest worker has too few cpus; ' +
        'pool gpus: its largest worker has too few cpus',
    );
    expect(ask({ resources: { device: { count: 2 } } })).toContain('too few devices');
  });

  test('that names a pool is measured by that pool alone', () => {
    expect(ask({ pool: 'small', resources: { device: {} } })).toBe(
      'pool small: its largest worker has too few devices',
    );
  });

  test('that names a pool nobody has is told which there are', () => {
    expect(ask({ pool: 'gpu' }, pools, ['lab'])).toBe(
      'there is no pool "gpu"; the pools are: small, gpus, lab',
    );
  });

  test('may ask for anything where a pool has no limits', () => {
    const open = [...pools, freePool('cloud')];
    expect(ask({ resources: { cpuMillis: 1_000_000 } }, open)).toBeNull();
    expect(ask({ resources: { cpuMillis: 1_000_000 } }, pools, ['lab'])).toBeNull();
    expect(ask({ pool: 'lab', resources: { cpuMillis: 1_000_000 } }, pools, ['lab'])).toBeNull();
  });

  test('is held to the limits of a pool that has both limits and a join token', () => {
    expect(ask({ pool: 'small', resources: { cpuMillis: 5000 } }, pools, ['small'])).toContain(
      'cpus',
    );
  });

  test('may name any model where a pool does not say which it has', () => {
    const unnamed = [
      { ...freePool('any'), largestWorker: largest({ devices: [{ ...h100, model: '' }] }) },
    ];
    expect(ask({ resources: { device: { models: ['B200'] } } }, unnamed)).toBeNull();
    expect(ask({ resources: { device: { kind: 'tpu' } } }, unnamed)).toContain('devices');
    expect(ask({ resources: { device: { models: ['B200'] } } })).toContain('devices');
  });
});
