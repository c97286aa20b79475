/** Data by name, capsules, reruns, copies in and out, and what is collected. */
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startJourney, until, type Journey } from '../support/journey.ts';

let journey: Journey;
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'drover-data-'));
  journey = await startJourney({ args: ['--resources', 'cpus=8,mem=4Gi'] });
});
afterAll(async () => {
  await journey.close();
  rmSync(folder, { recursive: true });
});

const put = (name: string, text: string): void => {
  mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
  writeFileSync(path.join(folder, name), text);
};
const read = (name: string): string => readFileSync(path.join(folder, name), 'utf8');
const drover = (...args: string[]) => journey.start(args, { cwd: folder }).ended;
const ok = async (...args: string[]): Promise<string> => {
  const { code, stdout, stderr } = await drover(...args);
  expect([code, stderr]).toEqual([0, '']);
  return stdout.trim();
};

const blobFiles = (): string[] =>
  readdirSync(path.join(journey.dir, 'blobs'), { recursive: true, withFileTypes: true }).flatMap(
    (entry) =>
      entry.isFile() && /^[0-9a-f]{64}$/.test(entry.name)
        ? [path.join(entry.parentPath, entry.name)]
        : [],
  );

test('data by name: what the name meant at submission is what a rerun gets', async () => {
  put('set/one.txt', 'version 1\n');
  expect(await ok('data', 'put', 'set')).toMatch(/^data:set {2}version 1/);
  const script = 'cat $DROVER_INPUTS/d/*';
  const first = await ok('run', '-d', '--input', 'd=data:set', '--', 'sh', '-c', script);
  put('set/one.txt', 'version 2\n');
  expect(await ok('data', 'put', 'set')).toMatch(/version 2/);
  const again = await ok('rerun', first, '--set', 'env.SEED=7');
  const newer = await ok('run', '--input', 'd=data:set', '--', 'sh', '-c', script);
  await journey.ended(again);
  expect([await ok('logs', again), newer]).toEqual(['version 1', 'version 2']);
  expect(await ok('rerun', first, '-f')).toBe('version 1');
  expect((await drover('rerun', first, '-f', '-d')).stderr).toContain('exclude each other');
  expect(await ok('data', 'ls')).toMatch(/^NAME .*\nset +2 /);
  const { code, stdout } = await drover('diff', first, again);
  expect([code, stdout]).toEqual([1, expect.stringMatching(/^spec +env\.SEED +- +7$/m)]);
  expect(await ok('data', 'rm', 'set')).toContain('is removed');
  for (const args of [
    ['data', 'rm', 'set'],
    ['run', '--input', 'd=data:set', '--', 'true'],
  ]) {
    expect((await drover(...args)).stderr).toContain('NOT_FOUND: there is no data set set');
  }
  expect((await drover('data', 'put', 'missing')).stderr).toContain('cannot be read');
});

test('a capsule says what ran; a diff names the file that changed', async () => {
  put('proj/main.sh', 'cat lib.txt\n');
  put('proj/lib.txt', 'good\n');
  const good = await ok('run', '-d', '--workdir', 'proj', '--', 'sh', 'main.sh');
  await journey.ended(good);
  put('proj/lib.txt', 'bad\n');
  const bad = await ok('rerun', good, '--set', 'workdir=proj');
  await journey.ended(bad);
  expect(await ok('logs', bad)).toBe('bad');
  const same = await ok('rerun', good);
  await journey.ended(same);
  expect(await ok('logs', same)).toBe('good');
  const capsule = JSON.parse(await ok('job', good, '--capsule')) as Record<string, never>;
  expect(capsule).toMatchObject({
    job: good,
    state: 'SUCCEEDED',
    spec: { command: ['sh', 'main.sh'], code: { bundle: expect.stringMatching(/^sha256:/) } },
    attempts: [{ facts: { kernel: expect.any(String) }, machine: { attributes: {} } }],
  });
  expect(await drover('diff', good, same)).toMatchObject({
    code: 0,
    stdout: 'they ran the same\n',
  });
  const differences = JSON.parse((await drover('diff', good, bad, '--json')).stdout) as object[];
  expect(differences).toMatchObject([
    { what: 'code', name: 'lib.txt' },
    { what: 'fact', name: 'code.bundle' },
  ]);
  expect((await drover('rerun', good, '--set', 'resources.device.count=many')).stderr).toContain(
    'resources.device.count',
  );
});

test('copies out of a running job and into it, and out of what it left', async () => {
  const script =
    'mkdir -p out/deep; echo inside >out/deep/file; until [ -f given/go ]; do sleep 0.1; done; ' +
    'cat given/go; cp -r out $DROVER_RESULT_DIR/';
  const job = await ok('run', '-d', '--', 'sh', '-c', script);
  await journey.running(job);
  await until('it has made its file', async () => {
    return (await drover('cp', `${job}:out/deep/file`, 'copied')).code === 0;
  });
  expect(read('copied')).toBe('inside\n');
  mkdirSync(path.join(folder, 'place'));
  await ok('cp', `${job}:out`, 'place');
  expect(read('place/out/deep/file')).toBe('inside\n');
  expect((await drover('cp', `${job}:out`, 'place')).stderr).toContain('place/out exists');
  const nothing = await drover('cp', `${job}:no/such`, 'nothing');
  expect([nothing.code, nothing.stderr]).toEqual([1, expect.stringContaining('in the task: tar')]);
  put('given/go', 'went\n');
  await ok('cp', 'given', `${job}:.`);
  await journey.ended(job);
  expect(await ok('logs', job)).toBe('went');
  await ok('cp', `${job}:out/deep/file`, 'left');
  await ok('cp', `${job}:out`, 'left-folder');
  expect([read('left'), read('left-folder/deep/file')]).toEqual(['inside\n', 'inside\n']);
  for (const [args, message] of [
    [[`${job}:missing`, 'x'], `the result of ${job}.0 has no missing`],
    [['given', `${job}:x`], 'has ended'],
    [['a', 'b'], 'one of the two is in a job'],
    [[`${job}:out`, 'no/such/folder/x'], 'there is no folder'],
  ] as const) {
    expect((await drover('cp', ...args)).stderr).toContain(message);
  }
  expect(readdirSync(folder).filter((name) => name.startsWith('.drover'))).toEqual([]);
});

test('what nothing names is collected when it is old; what something names stays', async () => {
  put('unused.bin', 'nobody wants this');
  await ok('data', 'put', 'unused.bin');
  await ok('data', 'rm', 'unused.bin');
  const young = JSON.parse(await ok('gc', '--plan', '--json')) as Record<string, number>;
  expect(young).toMatchObject({ applied: false, blobs: 0 });
  expect(young['sparedBlobs']).toBeGreaterThan(0);
  const before = blobFiles();
  for (const file of before) utimesSync(file, 1_600_000_000, 1_600_000_000);
  const plan = JSON.parse(await ok('gc', '--plan', '--json')) as Record<string, number>;
  expect(plan['blobs']).toBeGreaterThan(0);
  expect(blobFiles()).toHaveLength(before.length);
  expect(await ok('gc', '--apply')).toContain(`removed ${plan['blobs']} blobs`);
  expect(blobFiles()).toHaveLength(before.length - plan['blobs']!);
  // Every job of before still runs, with its code, data and result.
  const { items } = await journey.client.listJobs({ limit: 500 });
  const again: string[] = [];
  for (const { id } of items) {
    const { spec } = await journey.client.capsule(id);
    again.push(await journey.submit({ ...spec, command: ['true'] }));
  }
  for (const id of again) {
    expect(await journey.ended(id)).toMatchObject({ state: 'SUCCEEDED' });
  }
  expect((await drover('gc')).stderr).toContain('say --plan to look, or --apply to remove');
});
