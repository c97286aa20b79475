/** The lock is complete, and what completes it is limited to its platform. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { completeLock, missingEntries, type Lock } from './fixlock.ts';

test('package-lock.json holds every optional package it names, so that npm ci accepts it', () => {
  const lock = JSON.parse(readFileSync('package-lock.json', 'utf8')) as Lock;
  expect(Object.keys(missingEntries(lock)), 'run `make lock`').toEqual([]);
});

test('an added entry names version and platform, and adding twice changes nothing', () => {
  const lock: Lock = {
    packages: {
      'node_modules/fast': {
        version: '1.2.3',
        dev: true,
        optionalDependencies: { '@fast/linux-arm64-musl': '^1.2.3', '@fast/win32-x64': '1.2.3' },
      },
    },
  };
  const complete = completeLock(lock);
  expect(complete.packages['node_modules/@fast/linux-arm64-musl']).toEqual({
    version: '1.2.3',
    optional: true,
    dev: true,
    os: ['linux'],
    cpu: ['arm64'],
    libc: ['musl'],
  });
  expect(complete.packages['node_modules/@fast/win32-x64']?.os).toEqual(['win32']);
  expect(completeLock(complete)).toEqual(complete);
});
