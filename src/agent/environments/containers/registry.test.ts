/** Names of images, logins, and whose fault it is when an image does not come. */
import { expect, test } from 'vitest';
import {
  hasDigest,
  isLocalName,
  parseLogin,
  pullFailure,
  qualify,
  registryOf,
} from './registry.ts';

test.each([
  ['python:3.13', 'docker.io/library/python:3.13'],
  ['pytorch/pytorch', 'docker.io/pytorch/pytorch'],
  ['nvcr.io/nvidia/pytorch:25.01-py3', 'nvcr.io/nvidia/pytorch:25.01-py3'],
  ['127.0.0.1:5000/box', '127.0.0.1:5000/box'],
  ['localhost/box', 'localhost/box'],
])('%s is %s', (image, full) => {
  expect(qualify(image)).toBe(full);
  expect(registryOf(image)).toBe(full.split('/')[0]);
});

test('what is here only, and what a name settles', () => {
  expect(['localhost/box:1', 'a'.repeat(64), 'box'].map(isLocalName)).toEqual([true, true, false]);
  expect(hasDigest(`box@sha256:${'0'.repeat(64)}`)).toBe(true);
  expect(hasDigest('box:1')).toBe(false);
});

test('a login is user:password, and a password may have colons', () => {
  expect(parseLogin('R', 'me:a:b\n')).toEqual({ user: 'me', password: 'a:b' });
  for (const wrong of [undefined, '', 'me', ':x']) {
    expect(() => parseLogin('R', wrong)).toThrow('the secret "R" for the registry');
  }
});

test.each([
  ['manifest unknown', false, /there is no image box/],
  ['unauthorized: authentication required', false, /--registry-secret/],
  ['dial tcp: connection refused', true, /could not be fetched to this machine/],
])('%s', (said, hostFault, words) => {
  const failure = pullFailure('box', said, false);
  expect(failure.hostFault).toBe(hostFault);
  expect(failure.message).toMatch(words);
});
