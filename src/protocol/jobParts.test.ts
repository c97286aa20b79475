/** Parts of a submission: their defaults, their limits, and the same thing by every way. */
import { create } from '@bufbuild/protobuf';
import { expect, test } from 'vitest';
import { packSpec, unpackSpec } from '../model/spec.ts';
import { JobSpecSchema } from './gen/drover/v1/job_pb.ts';
import { specFromWire, specToWire } from './grpc/specMessages.ts';
import { PART_LIMITS } from './jobParts.ts';
import { jobSpec } from './jobSpec.ts';

const hash = `sha256:${'a'.repeat(64)}`;
const command = ['train'];

const whole = jobSpec.parse({
  command,
  code: { bundle: hash, folder: 'src', commit: 'abc', diff: hash },
  inputs: [
    { name: 'weights', uri: 's3://bucket/w', hash },
    { name: 'set', uri: 'data:cifar' },
  ],
  environment: { image: 'ubuntu:24.04', shmBytes: 1 },
  checkpoint: { dir: 'out', signal: 'SIGUSR1', keep: 2 },
  secrets: [{ name: 'WANDB_API_KEY' }, { name: 'hf', as: 'file', target: 'token' }],
  rules: {
    keepOnFailureMs: 1,
    idle: { action: 'stop' },
    notify: [{ to: 'team', on: ['idle'] }],
    nameTaken: 'replace',
    maySubmit: true,
    outliveParent: true,
    outputs: ['out/*.csv'],
  },
});

test('parts come back from a row and from the wire as they were', () => {
  expect(unpackSpec(packSpec(whole))).toEqual(whole);
  expect(specFromWire(create(JobSpecSchema, specToWire(whole)))).toEqual(whole);
  const plain = jobSpec.parse({ command });
  expect(specFromWire(create(JobSpecSchema, specToWire(plain)))).toEqual(plain);
});

test('a part that is named gets its own defaults', () => {
  const spec = jobSpec.parse({ command, checkpoint: {}, rules: { idle: {} } });
  expect(spec.checkpoint).toEqual({
    dir: '',
    everyMs: 60_000,
    signal: '',
    beforeDeadlineMs: 120_000,
    keep: 3,
  });
  expect(spec.rules?.idle).toEqual({ belowPercent: 5, forMs: 1_800_000, action: 'warn' });
  expect(spec.inputs).toBeUndefined();
});

test.each([
  [{ code: { bundle: 'main.py' } }, 'sha256:'],
  [{ code: { bundle: hash, folder: '../..' } }, 'below the working directory'],
  [{ inputs: [{ name: 'a/b', uri: 's3://b/k' }] }, 'file name'],
  [{ inputs: [{ name: 'a', uri: 'ftp://host/x' }] }, 'is none of'],
  [
    {
      inputs: [
        { name: 'a', uri: 'data:x' },
        { name: 'a', uri: 'data:y' },
      ],
    },
    'twice',
  ],
  [{ checkpoint: { everyMs: 1 } }, '1000'],
  [{ checkpoint: { signal: 'SIGKILL' } }, 'SIGUSR1'],
  [{ secrets: [{ name: 'my secret' }] }, 'name of a variable'],
  [{ secrets: [{ name: 'A' }, { name: 'B', target: 'A' }] }, 'twice'],
  [{ rules: { outputs: ['/etc/*'] } }, 'below'],
  [{ rules: { notify: [{ to: 'x', on: [] }] } }, '1'],
  [{ environment: { modules: Array(PART_LIMITS.modules + 1).fill('m') } }, '64'],
])('refused with the reason: %j', (parts, reason) => {
  const parsed = jobSpec.safeParse({ command, ...parts });
  expect(parsed.success).toBe(false);
  expect(JSON.stringify(parsed.error?.issues)).toContain(reason);
});
