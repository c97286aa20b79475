/** Guesses at mistyped names. */
import { expect, test } from 'vitest';
import { editDistance, nearest } from './nearest.ts';

test.each([
  ['prot', 'port'],
  ['PORT', 'port'],
  ['publicURL', 'publicUrl'],
  ['hosts', 'host'],
  ['banana', undefined],
  ['x', undefined],
])('%s means %s', (typed, meant) => {
  expect(nearest(typed, ['host', 'port', 'publicUrl'])).toBe(meant);
});

test('a swap of neighbours is one step, as is each insertion, deletion and change', () => {
  expect(editDistance('ab', 'ba')).toBe(1);
  expect(editDistance('kitten', 'sitting')).toBe(3);
  expect(editDistance('', 'abc')).toBe(3);
});
