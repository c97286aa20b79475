/** What a person sees of a flame graph: shares, order, names. */
import { expect, test } from 'vitest';
import { flameGraph } from './flameGraph.ts';

const FRAME = new RegExp(
  '<title>(\\S+) \\((\\d+) samples, ([\\d.]+) %\\)</title>' +
    '<rect x="([\\d.]+)" y="(\\d+)" width="([\\d.]+)"',
  'g',
);

test('frames are as wide as their share, and lie below their callers', () => {
  const svg = flameGraph('main;a;b 30\nmain;a;c 30\nmain;d 60\n', 'a title');
  const rows = [...svg.matchAll(FRAME)];
  const byName = new Map(
    rows.map(([, name, count, share, x, y, width]) => [
      name,
      { count: Number(count), share, x: Number(x), y: Number(y), width: Number(width) },
    ]),
  );
  expect([...byName.keys()]).toEqual(['all', 'main', 'a', 'b', 'c', 'd']);
  expect(byName.get('a')).toMatchObject({ count: 60, share: '50.0' });
  expect(byName.get('b')!.width).toBeCloseTo(byName.get('all')!.width / 4, 0);
  expect(byName.get('b')!.y).toBeGreaterThan(byName.get('a')!.y);
  expect(byName.get('d')!.x).toBeGreaterThan(byName.get('a')!.x + byName.get('a')!.width);
});

test('names that are not XML, lines that are none, nothing at all, a stack that ran away', () => {
  const svg = flameGraph('<a> & "b"\u0001;\ud800 3\nno count\n\n;;; x\n', '<title> & more');
  expect(svg).toContain('&lt;a&gt; &amp; &quot;b&quot;? (3 samples');
  expect(svg).toContain('&lt;title&gt; &amp; more');
  expect(svg).not.toContain('\u0001');
  expect(svg.isWellFormed()).toBe(true);
  expect(flameGraph('', 'none')).toContain('all (0 samples, 0.0 %)');
  const deep = flameGraph(`${Array.from({ length: 20_000 }, () => 'f').join(';')} 1`, 'deep');
  expect(deep.length).toBeLessThan(200_000);
});

test('ten thousand different stacks become a picture that a browser can draw', () => {
  const lines = Array.from({ length: 10_000 }, (_, n) => `main;f${n};g${n} 1`);
  expect(flameGraph(lines.join('\n'), 'many').length).toBeLessThan(3_000_000);
});
