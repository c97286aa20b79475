/** What a job runs in, as flags and job files say it. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import type { SubmittedSpec } from '../protocol/jobSpec.ts';
import { withFoundLock } from './environmentDraft.ts';
import { toSpec } from './jobDraft.ts';

const draft = (values: Record<string, unknown>): SubmittedSpec =>
  toSpec({ command: ['true'], ...values }, { cwd: '/', env: {}, label: (key) => key });

test.each([
  [
    { image: 'python:3.13', shm: '1Gi', 'registry-secret': 'R' },
    { image: 'python:3.13', shmBytes: 2 ** 30, registrySecret: 'R' },
  ],
  [{ lock: 'auto' }, { lock: 'auto' }],
  [{ lock: false }, { lock: '' }],
  [{ modules: ['gcc/13', 'openmpi'] }, { modules: ['gcc/13', 'openmpi'] }],
  [{ modules: 'gcc/13 openmpi' }, { modules: ['gcc/13', 'openmpi'] }],
])('%j', (values, environment) => expect(draft(values).environment).toEqual(environment));

test('said twice is refused', () => {
  expect(() => draft({ lock: 'a.txt', 'no-lock': true })).toThrow('exclude each other');
  expect(() => draft({ image: 'a', environment: { image: 'b' } })).toThrow('exclude each other');
});

test('a folder with a lock file brings it, unless the job says otherwise', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'drover-lock-'));
  const spec: SubmittedSpec = { command: ['true'] };
  try {
    expect(withFoundLock(spec, folder).environment).toBeUndefined();
    writeFileSync(path.join(folder, 'uv.lock'), '');
    expect(withFoundLock(spec, folder).environment).toEqual({ lock: 'auto' });
    for (const environment of [{ lock: '' }, { image: 'x' }, { lock: 'other.txt' }]) {
      const said = { ...spec, environment };
      expect(withFoundLock(said, folder)).toEqual(said);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});
