/** Templates: what they render to, what no value can do to them, and how mistakes are told. */
import { expect, test } from 'vitest';
import fc from 'fast-check';
import type { InvalidRequest } from '../problem.ts';
import { readTemplate, TEMPLATE_LIMITS } from './template.ts';
import { templateJob, type OwnParts } from './templateJob.ts';

function render(text: string, values: object = {}, own: OwnParts = {}) {
  return templateJob(readTemplate('mine', text), values, own);
}

function mistake(text: string, values: object = {}): string {
  try {
    render(text, values);
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error('nothing was wrong');
}

test('a template renders to a job with every default', () => {
  const text = [
    'description: Mine',
    'fields: { training: [steps] }',
    '---',
    'name: training',
    'command: [python3, train.py, {{ training.steps | string | json }}]',
    'env:',
    '{% for key, value in data.env %}',
    '  {{ key | json }}: {{ value | json }}',
    '{% endfor %}',
    '{% if resources.gpus -%}',
    'resources: { device: { count: {{ resources.gpus | json }} } }',
    '{%- endif %}',
  ].join('\n');
  const values = { training: { steps: 7 }, data: { env: { A: '1', B: 'x y' } }, resources: {} };
  expect(render(text, values)).toMatchObject({
    name: 'training',
    command: ['python3', 'train.py', '7'],
    env: { A: '1', B: 'x y' },
    resources: { device: null },
    retries: 0,
  });
  const { resources } = render(text, { ...values, resources: { gpus: 2 } });
  expect(resources.device).toMatchObject({ kind: 'gpu', count: 2 });
});

test('the gateway’s own parts win over the template’s', () => {
  const text = 'name: a\ncommand: [x]\nannotations: { mine: kept, model: lost }\n';
  const own = { name: 'b', annotations: { model: '{}' } };
  const { name, annotations } = render(text, {}, own);
  expect([name, annotations]).toEqual(['b', { mine: 'kept', model: '{}' }]);
});

const HOSTILE = [
  'a"\ncommand: [rm, -rf, /]\nx: "',
  "'; rm -rf /; '",
  'x: y # z',
  '*alias',
  '&anchor !!js/function "x"',
  '{{ 7 * 7 }}{% for a in b %}',
  '}} {% raw %} %} #}',
  '<b>&amp;</b>',
  '- a\n- b',
  '---\n...\n',
  '\\u0022\\n',
  'null',
  '~',
  '1e3',
  '\u0085\u2028\u2029\ufeff\u007f',
  '\ue0003\ue001 marks of lines',
  '\t\r\n\r',
  '🐂 ß',
];

test.each(HOSTILE)('the text %j stays one text', (hostile) => {
  const text = 'command: [run, {{ training.name | json }}]\nname: {{ training.name | json }}\n';
  const { command, name, env } = render(text, { training: { name: hostile } });
  expect([command, name, env]).toEqual([['run', hostile], hostile, {}]);
});

test('no text whatever becomes more than one text', () => {
  const template = readTemplate('mine', 'command: {{ words | json }}\nlabels: { a: b }\n');
  // Any character but NUL and halves of pairs; most often one of the first.
  const character = fc.oneof(
    fc.integer({ min: 1, max: 0xa0 }),
    fc.integer({ min: 1, max: 0xfffff }),
  );
  const word = fc.array(character, { minLength: 1, maxLength: 60 });
  fc.assert(
    fc.property(fc.array(word, { minLength: 1, maxLength: 10 }), (codes) => {
      const words = codes.map((word) => String.fromCodePoint(...word).toWellFormed());
      const { command, labels } = templateJob(template, { words }, {});
      expect({ command, labels }).toEqual({ command: words, labels: { a: 'b' } });
    }),
    { numRuns: 50 },
  );
});

test('both sides of a choice are escaped', () => {
  const text = 'command: [run, {{ name if name else "none" | json }}]\n';
  const name = '"]\nworkdir: /etc\nx: ["';
  expect(render(text, { name })).toMatchObject({ command: ['run', name], workdir: '' });
  expect(render(text, { name: '' }).command).toEqual(['run', 'none']);
});

test.each([
  ['an unfiltered value', 'a: 1\nb: {{ name }}', 'line 2: {{ name }} must end in "| json"'],
  ['one filtered in part', '\n\n{{ a | json ~ b }}', 'line 3: {{ a | json ~ b }} must end in'],
  ['raw text', 'a: {% raw %}{{ x }}{% endraw %}', 'line 1: raw text is not possible here'],
  ['an unknown key above', 'colour: red\n---\ncommand: [x]', 'header is not valid: : Unrecognized'],
  ['a path for its code', 'code: ../x\n---\ncommand: [x]', 'line 1: its header is not valid: code'],
])('%s makes it no template', (_, text, message) => {
  expect(() => readTemplate('mine', text)).toThrow(
    expect.objectContaining({ code: 'CONFLICT', message: expect.stringContaining(message) }),
  );
});

test.each([
  [
    'a value that is missing',
    'command: [x]\nname: {{ model.title | json }}',
    'template mine, line 2: model.title is missing',
  ],
  [
    'no number',
    'command: [x]\n\nretries: {{ model.type * 2 | json }}',
    'template mine, line 3: model.type * 2 is no value',
  ],
  [
    'a field of the wrong kind, below a loop and a header',
    'description: x\n---\ncommand: [x]\nenv:\n{% for i in [1, 2, 3] %}\n  A{{ i | json }}: a\n' +
      '{% endfor %}\nresources:\n  cpuMillis: {{ model.type | json }}',
    'template mine, line 9: resources.cpuMillis: Invalid input: expected',
  ],
  [
    'a field that jobs do not have, below what was left out',
    'command: [x]\n{% if model.absent %}\na: 1\nb: 1\n{% endif %}\nretires: 3',
    'template mine, line 6: retires: is not a field of a job',
  ],
  ['a field that is missing', 'name: x', 'template mine: command: Invalid input'],
  ['no YAML', 'command: [x]\nname: "a', 'template mine, line 2: Missing closing'],
  ['a field twice', 'command: [x]\n\ncommand: [y]', 'template mine, line 3: Map keys must be'],
  ['no job', '- a', 'template mine: renders to no job'],
  ['no Nunjucks', 'command: [x]\n{% fi model %}', 'template mine, line 2: unknown block tag: fi'],
  [
    'an unknown filter',
    'name: {{ model | jsom | json }}',
    'template mine: Error: filter not found',
  ],
  ['another file', '{% include "linear.yaml" %}', 'template mine: Error: template not found'],
  [
    'too much',
    'command: [{% for i in range(300000) %}"1234567", {% endfor %}]',
    'template mine: renders to 3300014 characters, at most 2097152',
  ],
])('%s is told with its line', (_, text, message) => {
  expect(mistake(text, { model: { type: 'abc' } })).toContain(message);
});

test('every mistake of a job is told at once, and apart', () => {
  expect.assertions(1);
  try {
    render('command: [x]\nretries: -1\nname: 7\n');
  } catch (error) {
    expect((error as InvalidRequest).violations).toEqual([
      { path: 'template mine, line 3', message: expect.stringMatching(/^name: /) },
      { path: 'template mine, line 2', message: expect.stringMatching(/^retries: /) },
    ]);
  }
});

test('a field that the template does not take is refused with the nearest one', () => {
  const text = 'fields: { training: [steps, seed], data: [] }\n---\ncommand: [x]\n';
  expect(() => render(text, { training: { stesp: 1 }, data: { x: 1 }, model: { any: 1 } })).toThrow(
    expect.objectContaining({
      message:
        'training.stesp: is not a field that the template mine takes; ' +
        'data.x: is not a field that the template mine takes',
      hint: 'Did you mean training.steps? data takes no fields.',
    }),
  );
});

test('its limits have names', () => {
  expect(TEMPLATE_LIMITS).toMatchObject({ bytes: 262_144, rendered: 2_097_152 });
});
