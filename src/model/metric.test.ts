/** Lines of metrics: what counts and what does not. */
import { expect, test } from 'vitest';
import { METRIC_LINE_BYTES, parseMetricLine } from './metric.ts';

test.each<[string, string, object | null]>([
  [
    'all there is',
    '{"atMs": 5, "step": 2, "loss": 0.5}',
    { atMs: 5, step: 2, values: { loss: 0.5 } },
  ],
  [
    'a number alone',
    '{"loss": 1e-3}',
    { atMs: undefined, step: undefined, values: { loss: 1e-3 } },
  ],
  ['what is not a number', '{"loss": null}', { values: { loss: null } }],
  ['words beside it', '{"loss": 1, "phase": "eval", "tags": [1]}', { values: { loss: 1 } }],
  [
    'a time that is none',
    '{"atMs": "now", "step": -1, "a": 1}',
    { atMs: undefined, step: undefined },
  ],
  ['a name like a method', '{"__proto__": 1, "constructor": 2}', { values: { constructor: 2 } }],
  ['half a line', '{"loss": 0.', null],
  ['no object', '[1, 2]', null],
  ['no number', '{"phase": "eval"}', null],
  ['nothing', '', null],
  ['far too much', `{"${'a'.repeat(METRIC_LINE_BYTES)}": 1}`, null],
])('%s', (_, line, expected) => {
  const found = parseMetricLine(line);
  if (expected === null) expect(found).toBeNull();
  else expect(found).toMatchObject(expected);
});
