/** The drawing is well-formed, says what it shows, and has round numbers on its axes. */
import { expect, test } from 'vitest';
import type { RunReport } from '../../protocol/simulation.ts';
import { drawRuns } from './svg.ts';
import { countTicks, timeTicks } from './ticks.ts';

function report(name: string, more: Partial<RunReport['series']> = {}): RunReport {
  const series = {
    stepMs: 60_000,
    waiting: [0, 5, 12],
    running: [3, 4, 4],
    cpu: [0.2, 0.5, 1],
    devices: [0, 0.5, 1],
    ...more,
  };
  return { name, makespanMs: 180_000, fleet: { devices: 8 }, series } as unknown as RunReport;
}

/** Every tag that is opened is closed, in order, and there is one root. */
function assertWellFormed(xml: string): void {
  const open: string[] = [];
  let roots = 0;
  const tags = xml.matchAll(/<(\/?)([a-z]+)((?:\s+[\w:-]+="[^"<&]*")*)\s*(\/?)>|<|&(?!\w+;)/g);
  for (const [found, closing, name, , empty] of tags) {
    if (name === undefined) throw new Error(`stray ${found}`);
    if (open.length === 0) roots++;
    if (closing) expect(open.pop()).toBe(name);
    else if (!empty) open.push(name);
  }
  expect(open).toEqual([]);
  expect(roots).toBe(1);
}

test('it is well-formed, whatever it is called', () => {
  for (const runs of [[report('a')], [report('a'), report('<b> & "c"\u0000')]]) {
    const svg = drawRuns('a <b> & "c".yaml', runs);
    assertWellFormed(svg);
    expect(svg).not.toMatch(/NaN|Infinity|undefined|\p{Cc}(?<!\n)/u);
  }
});

test('there is a line for each thing, and a legend that names it', () => {
  const one = drawRuns('w', [report('a')]);
  expect(one.match(/<polyline/g)).toHaveLength(4);
  for (const label of ['waiting', 'running', 'devices', 'CPU']) expect(one).toContain(`>${label}<`);
  const two = drawRuns('w', [report('small'), report('large')]);
  expect(two).toContain('>waiting: small<');
  expect(two).toContain('>devices: large<');
});

test('nothing happened at all', () => {
  const empty = { waiting: [], running: [], cpu: [], devices: [] };
  const svg = drawRuns('w', [{ ...report('a', empty), makespanMs: 0 }]);
  assertWellFormed(svg);
  expect(svg).not.toMatch(/NaN|Infinity/);
});

test.each([
  [1, 1],
  [7, 8],
  [12, 15],
  [99, 100],
  [100_000, 100_000],
])('the axis for %i ends at %i', (highest, top) => {
  const ticks = countTicks(highest);
  expect(ticks.top).toBe(top);
  expect(ticks.at.length).toBeLessThanOrEqual(7);
});

test.each([
  [90_000, ['0', '10 s', '20 s']],
  [86_400_000, ['0', '2 h', '4 h']],
  [30 * 86_400_000, ['0', '7 d', '14 d']],
])('times up to %i ms', (untilMs, labels) => {
  expect(
    timeTicks(untilMs)
      .at.map(({ label }) => label)
      .slice(0, 3),
  ).toEqual(labels);
});
