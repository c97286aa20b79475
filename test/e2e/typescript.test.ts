/** The TypeScript client as its users import it: from the checkout, and from the packed package. */
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  ApiError,
  Client,
  ConnectionError,
  JobFailed,
  WaitTimeout,
} from '../../src/protocol/sdk.ts';
import { ROOT, startJourney, type, type Journey } from '../support/journey.ts';

let journey: Journey;
let client: Client;
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'drover-package-'));
  journey = await startJourney({ args: ['--resources', 'cpus=4,mem=4Gi'] });
  client = new Client(journey);
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await journey.close();
});

const node = (cwd: string, ...args: string[]) =>
  type(process.execPath, args, {
    cwd,
    env: { DROVER_URL: journey.url, DROVER_TOKEN: journey.token },
  }).ended;

test('the example imports it by its name, and shows what it promises', async () => {
  const { code, stdout, stderr } = await node(ROOT, 'examples/typescript/submit.ts');
  expect([code, stderr]).toEqual([0, expect.stringMatching(/^submitted \S+\n$/)]);
  const lines = stdout.trim().split('\n');
  expect(lines.slice(0, -1).toSorted()).toEqual([
    'task 1: 1',
    'task 2: 4',
    'task 3: 9',
    'task 4: 16',
  ]);
  expect(lines.at(-1)).toBe('4 tasks, sum 30');
});

test('the package works where no types are stripped, and its types hold', async () => {
  const packed = await type(process.execPath, ['tools/clientPackage.ts', folder]).ended;
  expect(packed).toMatchObject({ code: 0, stderr: '' });
  const modules = path.join(folder, 'node_modules');
  mkdirSync(path.join(modules, 'drover'), { recursive: true });
  const into = path.join(modules, 'drover');
  const unpack = ['xzf', packed.stdout.trim(), '--strip-components=1', '-C', into];
  expect((await type('tar', unpack).ended).code).toBe(0);
  const manifest = readFileSync(path.join(into, 'package.json'), 'utf8');
  const { dependencies } = JSON.parse(manifest) as { dependencies: Record<string, string> };
  for (const name of [...Object.keys(dependencies), '@types', 'undici-types']) {
    symlinkSync(path.join(ROOT, 'node_modules', name), path.join(modules, name));
  }
  writeFileSync(path.join(folder, 'package.json'), '{"type":"module"}');
  const example = readFileSync(path.join(ROOT, 'examples/typescript/submit.ts'), 'utf8');
  const wrong = '// @ts-expect-error a list of words\nawait client.submit({ command: 3 });\n';
  writeFileSync(path.join(folder, 'user.ts'), example);
  writeFileSync(path.join(folder, 'wrong.ts'), `${example}${wrong}`);
  const options = { target: 'es2024', module: 'nodenext', strict: true, noEmit: true };
  const project = { compilerOptions: { ...options, types: ['node'] }, files: ['wrong.ts'] };
  writeFileSync(path.join(folder, 'tsconfig.json'), JSON.stringify(project));
  const compiler = path.join(ROOT, 'node_modules/.bin/tsc');
  expect(await type(compiler, ['-p', folder]).ended).toMatchObject({ code: 0, stdout: '' });
  expect((await node(folder, 'user.ts')).stdout).toContain('4 tasks, sum 30');
});

test('a job from submit to its end, and everything about it', async () => {
  const spec = { command: ['sh', '-c', "echo out; printf '\\377' >&2; exit 3"], name: 'typed' };
  const job = await client.submit(spec, { idempotencyKey: 'one' });
  expect((await client.submit(spec, { idempotencyKey: 'one' })).id).toBe(job.id);
  expect(await job.output()).toBe('out\n');
  expect(await job.wait()).toMatchObject({ state: 'FAILED', exitCode: 3 });
  await expect(job.check()).rejects.toThrow(JobFailed);
  expect((await all(job.attempts())).map(({ exitCode }) => exitCode)).toEqual([3]);
  expect(await all(job.tasks())).toHaveLength(1);
  expect((await all(job.events())).length).toBeGreaterThan(1);
  expect(await all(client.jobs({ name: 'typed' }))).toMatchObject([{ id: job.id }]);
  expect(await all(client.workers())).toMatchObject([{ state: 'ONLINE' }]);
});

test('many jobs in one call; one that waits says why, and is cancelled', async () => {
  const sleeper = { command: ['sleep', '600'], resources: { cpuMillis: 4000 } };
  const [first, second] = await client.submitAll([sleeper, sleeper]);
  await expect(second!.wait({ timeoutMs: 200 })).rejects.toThrow(WaitTimeout);
  expect((await second!.why()).sentence).not.toBe('');
  await Promise.all([first!.cancel(), second!.cancel()]);
  expect(await first!.wait()).toMatchObject({ state: 'CANCELLED' });
});

test('a file is sent once, is there as an input, and comes back as a result', async () => {
  const file = path.join(folder, 'data.txt');
  writeFileSync(file, 'content');
  const uri = await client.upload(file);
  expect(await client.upload(file)).toBe(uri);
  const copy = 'mkdir "$DROVER_RESULT_DIR/a" && cp "$DROVER_INPUTS/in" "$DROVER_RESULT_DIR/a/out"';
  const inputs = [{ name: 'in', uri }];
  const job = await client.submit({ command: ['sh', '-c', copy], inputs });
  await job.check();
  const got = path.join(folder, 'got');
  const { files } = await job.download(got);
  expect(files).toMatchObject([{ path: 'a/out', size: 7, hash: uri.slice('blob:'.length) }]);
  expect(readFileSync(path.join(got, 'a/out'), 'utf8')).toBe('content');
  expect(readdirSync(got)).toEqual(['a']);
  expect(await all(job.checkpoints())).toEqual([]);
});

test('what is wrong is typed, with a code and what to try', async () => {
  const spec = { command: ['true'] };
  const refused = await new Client({ url: journey.url, token: 'drv_x' }).submit(spec).catch(String);
  expect(refused).toContain('ApiError');
  const problem = await client.submit({ command: [] }).catch((error: unknown) => error);
  expect(problem).toBeInstanceOf(ApiError);
  expect(problem).toMatchObject({ code: 'INVALID_ARGUMENT', status: 400 });
  const port = await unusedPort();
  const nobody = new Client({ url: `http://127.0.0.1:${port}`, token: 'x' });
  await expect(nobody.submit(spec)).rejects.toThrow(ConnectionError);
  expect(() => new Client({ url: '' })).toThrow(/DROVER_URL/);
});

async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const list: Item[] = [];
  for await (const item of items) list.push(item);
  return list;
}

function unusedPort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}
