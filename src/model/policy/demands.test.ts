/** What rules can demand, and how names are compared that can be written in many ways. */
import { describe, expect, test } from 'vitest';
import type { SubmittedSpec } from '../../protocol/jobSpec.ts';
import { broken, HASH, rule } from '../../../test/support/policies.ts';

describe('demands', () => {
  const array = (tasks: number): SubmittedSpec['shape'] => ({
    kind: 'array',
    indices: Array.from({ length: tasks }, (_, at) => at),
    limit: 2,
  });
  test.each<[string, Partial<SubmittedSpec>, string | null]>([
    ['{ timeLimitRequired: true }', {}, 'it has no time limit; say one with --time'],
    ['{ timeLimitRequired: true }', { timeLimitMs: 1 }, null],
    ['{ longestTimeLimit: 1d }', {}, 'it has no time limit; at most 1d is allowed'],
    ['{ longestTimeLimit: 1d }', { timeLimitMs: 86_400_000 }, null],
    [
      '{ longestTimeLimit: 1d }',
      { timeLimitMs: 3 * 86_400_000 },
      'the time limit 3d is over the longest allowed, 1d',
    ],
    ['{ trusts: [restricted] }', {}, 'the trust is normal; allowed are restricted'],
    [
      '{ priorities: [batch, interactive] }',
      { priority: 'production' },
      'the priority is production; allowed are batch, interactive',
    ],
    ['{ mostDevices: 3 }', { resources: { device: { count: 3 } } }, null],
    [
      '{ mostDevices: 3 }',
      { resources: { device: { count: 2 } }, shape: array(9) },
      'it has 4 devices at once, at most 3 are allowed',
    ],
    [
      '{ mostDevices: 3 }',
      { resources: { device: { count: 1 } }, shape: { kind: 'gang', size: 4 } },
      'it has 4 devices at once, at most 3 are allowed',
    ],
    ['{ mostDevices: 1 }', { resources: { device: { share: 500 } }, shape: array(9) }, null],
    ['{ mostDevices: 0 }', {}, null],
    [
      '{ mostDevicesPerTask: 1 }',
      { resources: { device: { count: 2 } } },
      'it has 2 devices for each task, at most 1 are allowed',
    ],
    ['{ mostArrayTasks: 8 }', { shape: array(9) }, 'it has 9 array tasks, at most 8 are allowed'],
    [
      '{ mostGangTasks: 1 }',
      { shape: { kind: 'gang', size: 2 } },
      'it has 2 tasks of a gang, at most 1 are allowed',
    ],
    ['{ mostRetries: 1 }', { retries: 2 }, 'it has 2 retries, at most 1 are allowed'],
    ['{ labels: { team: [a*] } }', {}, 'the label team is missing; allowed are a*'],
    [
      '{ labels: { team: [a*] } }',
      { labels: { team: 'b' } },
      'the label team="b" is not allowed; allowed are a*',
    ],
    ['{ labels: { team: [a*] } }', { labels: { team: 'abc' } }, null],
    ['{ labels: { toString: [a*] } }', {}, 'the label toString is missing; allowed are a*'],
    ['{ refuse: not today }', {}, 'not today'],
    [
      '{ secrets: { deny: [ROOT*] } }',
      { secrets: [{ name: 'ROOT_KEY' }] },
      'the secret "ROOT_KEY" is not allowed: ROOT* is denied',
    ],
    [
      '{ secrets: { allow: [A] } }',
      { environment: { image: 'x', registrySecret: 'B' } },
      'the secret "B" is not allowed; allowed are A',
    ],
    [
      '{ workdirs: { allow: [/scratch/*] } }',
      { workdir: '/scratch/../etc' },
      'the directory "/scratch/../etc" is not allowed; allowed are /scratch/*',
    ],
    ['{ workdirs: { allow: [/scratch/*] } }', { workdir: '/scratch//a' }, null],
  ])('%s on %j', (demand, spec, what) => {
    expect(broken(rule(demand), spec)).toEqual(what === null ? [] : [what]);
  });

  test.each<[string, string, boolean]>([
    ['{ allow: [docker.io/library/*] }', 'ubuntu:24.04', true],
    ['{ allow: [docker.io/library/*] }', 'docker://ubuntu', true],
    ['{ allow: [docker.io/library/*] }', 'library.evil.org/ubuntu', false],
    ['{ allow: [docker.io/library/*] }', 'someone/ubuntu', false],
    ['{ deny: [docker.io/*] }', 'ubuntu', false],
    ['{ deny: [docker.io/*] }', 'index.docker.io/library/ubuntu', false],
    ['{ deny: [docker.io/*] }', 'Docker.IO/library/ubuntu', false],
    ['{ deny: [docker.io/*] }', 'registry.example.org/lab/x', true],
    ['{ allow: ["*"], deny: ["*:latest"] }', 'a.org/x:latest', false],
    ['{ allow: [/images/*] }', '/images/../home/x.sif', false],
    ['{ digestRequired: true }', 'a.org/x:1', false],
    ['{ digestRequired: true }', `a.org/x@sha256:${HASH}`, true],
    ['{ required: true }', '', false],
    ['{ allow: [a.org/*] }', '', true],
  ])('images: %s on %s: %s', (images, image, isAllowed) => {
    const found = broken(rule(`{ images: ${images} }`), { environment: { image } });
    expect(found.length === 0).toBe(isAllowed);
  });

  test.each<[string, string, boolean]>([
    ['{ allow: ["pool:///shared/*"] }', 'pool:///shared/a', true],
    ['{ allow: ["pool:///shared/*"] }', 'pool:///shared/../etc/passwd', false],
    ['{ allow: ["pool:///shared/*"] }', 'pool:///shared/%2e%2e/etc/passwd', false],
    ['{ allow: ["pool:///shared/*"] }', 'pool:///shared/%2F', false],
    ['{ allow: ["data:*"] }', 'data:imagenet', true],
    ['{ deny: ["https://evil.org/*"] }', 'https://EVIL.org/x', false],
    ['{ deny: ["file:*"] }', `blob:sha256:${HASH}`, true],
  ])('inputs: %s on %s: %s', (inputs, uri, isAllowed) => {
    const found = broken(rule(`{ inputs: ${inputs} }`), { inputs: [{ name: 'x', uri }] });
    expect(found.length === 0).toBe(isAllowed);
  });

  test('a password in an address is not told', () => {
    const inputs = [{ name: 'x', uri: 'https://me:secret@data.org/set' }];
    const [told = ''] = broken(rule('{ inputs: { allow: ["data:*"] } }'), { inputs });
    expect(told).toBe('the input "https://data.org/set" is not allowed; allowed are data:*');
  });
});
