/** Fairness by hand: who has less than is due, and who only asks for less. */
import { expect, test } from 'vitest';
import { fairnessOf } from './fairness.ts';

const holder = (held: number, wanted: number, weight = 1) => ({ held, wanted, weight });

test('even shares are fair, and one that has all is not', () => {
  expect(fairnessOf([holder(0.5, 1), holder(0.5, 2)])).toBeCloseTo(1);
  expect(fairnessOf([holder(1, 2), holder(0, 2)])).toBeCloseTo(0.5);
  expect(fairnessOf([holder(1, 2), holder(0, 2), holder(0, 1), holder(0, 1)])).toBeCloseTo(0.25);
});

test('who asks for little is not wronged by having little', () => {
  expect(fairnessOf([holder(0.8, 2), holder(0.1, 0.1), holder(0.1, 0.1)])).toBeCloseTo(1);
  // Half of what it asks for is missing, though others have more than it.
  expect(fairnessOf([holder(0.95, 2), holder(0.05, 0.1)])).toBeLessThan(0.95);
});

test('by weight', () => {
  expect(fairnessOf([holder(0.75, 2, 3), holder(0.25, 2)])).toBeCloseTo(1);
  expect(fairnessOf([holder(0.5, 2, 3), holder(0.5, 2)])).toBeLessThan(0.9);
});

test('of fewer than two, or where nobody holds anything, nothing is said', () => {
  expect(fairnessOf([])).toBeNull();
  expect(fairnessOf([holder(1, 2)])).toBeNull();
  expect(fairnessOf([holder(0, 2), holder(0, 1)])).toBeNull();
});
