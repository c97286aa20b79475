/** What is read from an environment.yml, and what is refused. */
import { expect, test } from 'vitest';
import { readRecipe } from './conda.ts';

const read = (text: string): unknown => readRecipe(text, 'environment.yml');

test('channels by their places, dependencies for conda and for pip, variables as texts', () => {
  const text = `
name: flock
channels: [defaults, nodefaults, bioconda]
dependencies:
  - python=3.12
  - conda-forge::numpy>=2
  - pip:
      - --extra-index-url https://example.org/simple
      - sheep==1
variables: { THREADS: 4 }
`;
  expect(read(text)).toEqual({
    channels: [
      'https://repo.anaconda.com/pkgs/main',
      'https://repo.anaconda.com/pkgs/r',
      'bioconda',
    ],
    specs: ['python=3.12', 'conda-forge::numpy>=2'],
    pip: ['--extra-index-url https://example.org/simple', 'sheep==1'],
    variables: { THREADS: '4' },
  });
  expect(read('dependencies: []')).toMatchObject({ channels: ['conda-forge'] });
});

test.each([
  ['- a', 'environment.yml is no environment: dependencies must be a list'],
  ['just a text', 'it is not a map'],
  ['{', 'environment.yml is no environment: '],
  ['dependencies: [7]', 'a dependency is a text, or a map pip: with a list of texts'],
  ['dependencies: [{pip: x}]', 'a dependency is a text, or a map pip:'],
  ['{channels: x, dependencies: []}', 'channels must be a list of names'],
  ['{variables: 3, dependencies: []}', 'variables must be a map'],
  ['dependencies: [{pip: ["-r more.txt"]}]', 'installs a file or folder (-r more.txt)'],
  ['dependencies: [{pip: ["./own"]}]', 'installs a file or folder (./own)'],
])('%s is refused', (text, message) => {
  expect(() => read(text)).toThrow(message);
});
