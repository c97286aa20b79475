/** A site's folder of templates: found by name, read anew, its code as blobs. */
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import { rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { parseManifest } from '../../model/manifest.ts';
import { submission } from './blocks.ts';
import { templateOf } from './jobs.ts';
import { readTemplate, TEMPLATE_LIMITS } from './template.ts';
import { templateJob } from './templateJob.ts';
import { openTemplates } from './templates.ts';

const EXAMPLES = path.resolve(import.meta.dirname, '../../../examples/training');

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'drover-templates-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const write = (name: string, text: string | Buffer): void => {
  mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
  writeFileSync(path.join(folder, name), text);
};

test('an edit counts for the next job', async () => {
  const templates = openTemplates(folder);
  write('mine.yaml', 'description: one\n---\ncommand: [x]\n');
  expect((await templates.read('mine', 'model.type')).description).toBe('one');
  write('mine.yaml', 'description: two\n---\ncommand: [x]\n');
  expect((await templates.read('mine', 'model.type')).description).toBe('two');
});

test.each(['nime', '../mine', 'mine.yaml', '/etc/passwd', '', 'x'.repeat(300), 'Mine', 'a\0'])(
  'there is no template %j, and those there are get named',
  async (name) => {
    write('mine.yaml', 'command: [x]\n');
    write('other.yaml', 'command: [x]\n');
    await expect(openTemplates(folder).read(name, 'model.type')).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringMatching(/^model\.type: there is no template ".{0,105}"$/),
      hint: expect.stringContaining('There are mine, other.'),
    });
  },
);

test('an empty folder, and one that is not there, have none', async () => {
  for (const place of [folder, path.join(folder, 'absent')]) {
    const reading = openTemplates(place).read('mine', 'model.type');
    await expect(reading).rejects.toMatchObject({ hint: 'The site has none.' });
  }
});

test('a template that is too long is not read', async () => {
  write('long.yaml', Buffer.alloc(TEMPLATE_LIMITS.bytes + 1, '#'));
  await expect(openTemplates(folder).read('long', 'model.type')).rejects.toMatchObject({
    code: 'CONFLICT',
    message: expect.stringContaining('has 262145 bytes, the limit is 262144'),
  });
});

test('code is the files beside it, hidden ones and caches left out', async () => {
  const templates = openTemplates(folder);
  write('mine.yaml', 'code: mine\n---\ncommand: [x]\n');
  write('mine/train.py', 'print(1)\n');
  write('mine/lib/a.sh', '#!/bin/sh\n');
  chmodSync(path.join(folder, 'mine/lib/a.sh'), 0o755);
  write('mine/.git/config', 'x');
  write('mine/lib/__pycache__/a.pyc', 'x');
  const template = await templates.read('mine', 'model.type');
  const { bundle, blobs } = (await templates.codeOf(template))!;
  const { files } = parseManifest(blobs.get(bundle)!.toString());
  expect(files.map(({ path: at, executable }) => [at, executable])).toEqual([
    ['lib/a.sh', true],
    ['train.py', false],
  ]);
  expect(blobs.get(files[1]!.hash)?.toString()).toBe('print(1)\n');
  write('mine/train.py', 'print(2)\n');
  expect((await templates.codeOf(template))!.bundle).not.toBe(bundle);
});

test('code that is absent, empty or too much makes it no template', async () => {
  const templates = openTemplates(folder);
  write('mine.yaml', 'code: mine\n---\ncommand: [x]\n');
  const template = await templates.read('mine', 'model.type');
  const told = async (): Promise<string> =>
    templates.codeOf(template).then(
      () => 'nothing',
      ({ code, message }) => `${code} ${message}`,
    );
  expect(await told()).toBe('CONFLICT The template mine: its code mine/ cannot be read');
  write('mine/.hidden', '');
  expect(await told()).toBe('CONFLICT The template mine: its code mine/ has no files');
  write('mine/large', Buffer.alloc(TEMPLATE_LIMITS.codeBytes + 1));
  expect(await told()).toContain('is more than 200 files or 4194304 bytes');
  rmSync(path.join(folder, 'mine/large'));
  for (let i = 0; i <= TEMPLATE_LIMITS.codeFiles; i++) write(`mine/${i}`, '');
  expect(await told()).toContain('is more than 200 files');
});

test('a template without code has none', async () => {
  write('mine.yaml', 'command: [x]\n');
  const templates = openTemplates(folder);
  expect(await templates.codeOf(await templates.read('mine', ''))).toBeUndefined();
});

test.each(['linear', 'pytorch-mlp'])('the example %s fits its shipped template', async (name) => {
  const templates = openTemplates('');
  const text = readFileSync(path.join(EXAMPLES, `${name}.json`), 'utf8');
  const { name: title = '', priority: _, ...blocks } = submission.parse(JSON.parse(text));
  const { template: chosen, field } = templateOf(blocks);
  const template = await templates.read(chosen, field);
  const spec = templateJob(template, { ...blocks, name: title }, {});
  expect(spec).toMatchObject({ command: ['python3', '-u', 'train.py'], retries: 3 });
  expect(JSON.parse(spec.env['BLOCK_MODEL']!)).toEqual(blocks.model);
  const { evaluation } = template;
  const source = { tree: `tree:sha256:${'0'.repeat(64)}` };
  const values = { ...blocks, evaluation: { samples: 9 }, source };
  const evaluated = templateJob(await templates.read(evaluation, ''), values, {});
  expect(evaluated.inputs).toMatchObject([{ name: 'checkpoint', uri: source.tree }]);
});

test('all shipped templates can be read, and their code too', async () => {
  const templates = openTemplates('');
  const shipped = readdirSync(path.resolve(import.meta.dirname, '../../../templates/training'));
  const names = shipped.filter((file) => file.endsWith('.yaml')).map((file) => file.slice(0, -5));
  expect(names).toHaveLength(4);
  for (const name of names) {
    const template = await templates.read(name, 'model.type');
    expect(template.description, name).not.toBe('');
    expect((await templates.codeOf(template))!.blobs.size, name).toBe(4);
  }
});

test('a GPU is asked for where the block does', async () => {
  const template = await openTemplates('').read('pytorch-mlp', 'model.type');
  const resources = { cpus: 4, gpus: 2, gpu_models: ['A100'], pool: 'lab' };
  const blocks = { model: {}, data: {}, training: {}, checkpoint: {}, name: '' };
  expect(templateJob(template, { ...blocks, resources }, {})).toMatchObject({
    pool: 'lab',
    resources: { cpuMillis: 4000, device: { kind: 'gpu', count: 2, models: ['A100'] } },
  });
});

test('the template of the guide works, and its mistakes are told as it says', () => {
  const guide = readFileSync(path.resolve(EXAMPLES, '../../docs/training.md'), 'utf8');
  const [, text = ''] = /```yaml\n([^]*?)```/.exec(guide) ?? [];
  const template = readTemplate('resnet', text);
  const values = (resources: object): object => ({ model: {}, training: {}, resources });
  expect(templateJob(template, values({ hours: 2, gpus: 1 }), {})).toMatchObject({
    env: { DEPTH: '50', TRAINING: '{}' },
    timeLimitMs: 7_200_000,
  });
  for (const resources of [{}, { hours: 2, gpus: 'two' }]) {
    let told = '';
    try {
      templateJob(template, values(resources), {});
    } catch (error) {
      told = (error as Error).message;
    }
    expect(told).toMatch(/^template resnet, line \d+: /);
    expect(guide).toContain(told);
  }
});
