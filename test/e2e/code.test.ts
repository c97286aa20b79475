/** Code and inputs that go along with a job: what is sent, what arrives, what is refused. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startJourney, type Journey } from '../support/journey.ts';

let journey: Journey;
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'drover-code-'));
  journey = await startJourney({ args: ['--resources', 'cpus=8,mem=4Gi'] });
});
afterAll(async () => {
  await journey.close();
  rmSync(folder, { recursive: true });
});

const put = (name: string, text: string | Buffer, mode = 0o644): void => {
  mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
  writeFileSync(path.join(folder, name), text, { mode });
};
const drover = (...args: string[]) => journey.start(args, { cwd: folder }).ended;
const blobCount = (): number =>
  readdirSync(path.join(journey.dir, 'blobs'), { recursive: true, withFileTypes: true }).filter(
    (entry) => entry.isFile() && /^[0-9a-f]{64}$/.test(entry.name),
  ).length;
const sha256 = (bytes: string | Buffer): string =>
  `sha256:${createHash('sha256').update(bytes).digest('hex')}`;

test('code goes along, is the attempt’s own, and is kept with its commit and changes', async () => {
  execFileSync('git', ['init', '-q', folder]);
  const git = (...args: string[]): string =>
    execFileSync('git', ['-C', folder, '-c', 'user.name=a', '-c', 'user.email=a@b', ...args], {
      encoding: 'utf8',
    }).trim();
  put('proj/run.sh', '#!/bin/sh\ncat lib/text; cat link; ls -a; echo more >>lib/text\n', 0o755);
  put('proj/lib/text', 'first\n');
  put('proj/.gitignore', 'secret\n');
  put('proj/secret', 'no');
  symlinkSync('lib/text', path.join(folder, 'proj/link'));
  git('add', '.');
  git('commit', '-qm', 'one');
  put('proj/lib/text', 'second\n');
  for (const _ of [1, 2]) {
    const { code, stdout, stderr } = await drover('run', '--workdir', 'proj', '--', './run.sh');
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toBe('second\nsecond\n.\n..\n.gitignore\nlib\nlink\nrun.sh\n');
  }
  const { items } = await journey.client.listJobs({ limit: 1 });
  const { spec } = await journey.client.getJob(items[0]!.id);
  expect(spec?.code?.commit).toBe(git('rev-parse', 'HEAD'));
  const diff = await journey.api(`GET /v1/blobs/${spec?.code?.diff}`);
  expect(diff.text).toContain('-first\n+second');
  const [attempt] = await journey.attempts(items[0]!.id);
  expect(attempt?.facts).toMatchObject({ 'code.bundle': spec?.code?.bundle });
});

test('examples/code runs as it says', async () => {
  const cwd = path.resolve(import.meta.dirname, '../../examples/code');
  const { stdout, stderr } = await journey.start(['submit', '-f', 'job.yaml'], { cwd }).ended;
  expect(stderr).toBe('');
  await journey.ended(stdout.trim());
  expect((await drover('logs', stdout.trim())).stdout).toBe('8 different words, 7 short ones\n');
  expect((await drover('result', stdout.trim())).stdout).toContain('counts.json');
});

test('of 10,000 files sent again with one changed, one is sent', async () => {
  for (let at = 0; at < 10_000; at++) put(`many/${at % 100}/${at}.txt`, `file ${at}\n`);
  // Waits for ever: what arrives is the test above's.
  const nowhere = ['--constraint', 'name=nobody', '--workdir', './many', '--', 'true'];
  expect(await drover('run', '-d', ...nowhere)).toMatchObject({ code: 0, stderr: '' });
  const before = blobCount();
  put('many/42/4242.txt', 'changed\n');
  const { code, stdout } = await drover('run', '-d', ...nowhere);
  expect(code).toBe(0);
  // The file, and the list of them.
  expect(blobCount() - before).toBe(2);
  const { spec } = await journey.client.getJob(stdout.trim());
  const { text } = await journey.api(`GET /v1/blobs/${spec?.code?.bundle}`);
  const { files } = JSON.parse(text) as { files: { path: string; hash: string }[] };
  expect(files).toHaveLength(10_000);
  expect(files.find(({ path: at }) => at === '42/4242.txt')?.hash).toBe(sha256('changed\n'));
  await drover('cancel', stdout.trim());
}, 180_000);

test.each([
  ['a socket', () => execFileSync('mkfifo', [path.join(folder, 'bad/pipe')]), 'pipe is a named'],
  ['a loop', () => symlinkSync('loop', path.join(folder, 'bad/loop')), 'leads back to itself'],
  ['too much', () => put('bad/big', Buffer.alloc(2 ** 20 + 1)), 'one file may have 1M'],
])('%s in the folder is named and nothing is submitted', async (_what, make, message) => {
  rmSync(path.join(folder, 'bad'), { recursive: true, force: true });
  put('bad/ok', 'ok');
  make();
  const before = (await journey.client.listJobs({ limit: 500 })).items.length;
  const { stderr } = await drover('run', '--workdir', 'bad', '--bundle-limit', '1M', '--', 'true');
  expect(stderr).toContain(message);
  expect((await journey.client.listJobs({ limit: 500 })).items).toHaveLength(before);
});

let served: Record<string, { body: Buffer; etag: string }> = {};
let asked: string[] = [];

/** Breaks off in the middle of `/torn` the first time. */
async function startFiles(): Promise<Server> {
  const server = createServer((request, response) => {
    const { url = '', headers } = request;
    asked.push(`${url} ${headers.range ?? headers['if-none-match'] ?? ''}`.trim());
    const found = served[url];
    if (!found) return void response.writeHead(404).end();
    if (headers['if-none-match'] === found.etag) return void response.writeHead(304).end();
    const from = Number(/\d+/.exec(headers.range ?? '')?.[0] ?? 0);
    const body = found.body.subarray(from);
    response.writeHead(from > 0 ? 206 : 200, { etag: found.etag, 'content-length': body.length });
    if (url !== '/torn' || from > 0) return void response.end(body);
    response.write(body.subarray(0, body.length / 2), () => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}

test('inputs of every kind are there, and what differs or is gone is named', async () => {
  const server = await startFiles();
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const large = Buffer.alloc(300_000, 'torn ');
  served = {
    '/plain': { body: Buffer.from('by http\n'), etag: '"1"' },
    '/torn': { body: large, etag: '"2"' },
  };
  put('local.txt', 'from here\n');
  put('set/a/b.txt', 'in a folder\n');
  put('host.txt', 'of the host\n');
  const host = path.join(folder, 'host.txt');
  const script =
    'cd $DROVER_INPUTS; ls; cat local set/a/b.txt file pool plain; sha256sum torn; ' +
    '[ -w local ] && [ "$(id -u)" != 0 ] && echo writable; true';
  const inputs = [
    'local=local.txt',
    'set=./set',
    `file=file://${host}#${sha256('of the host\n')}`,
    `pool=pool://${host}`,
    `plain=${url}/plain`,
    `torn=${url}/torn#${sha256(large)}`,
  ];
  const args = inputs.flatMap((input) => ['--input', input]);
  for (const _ of [1, 2]) {
    const { code, stdout, stderr } = await drover('run', ...args, '--', 'sh', '-c', script);
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toBe(
      'file\nlocal\nplain\npool\nset\ntorn\nfrom here\nin a folder\nof the host\nof the host\n' +
        `by http\n${sha256(large).slice(7)}  torn\n`,
    );
  }
  expect(asked).toEqual(['/plain', '/torn', '/torn bytes=150000-', '/plain "1"']);
  for (const [input, message] of [
    [`gone=${url}/gone`, 'input gone: its server answered 404: it is not there any more'],
    [`other=${url}/plain#${sha256('x')}`, `input other is not what it was: it has the hash`],
    [`file=file://${host}#${sha256('x')}`, 'input file is not what it was'],
    [`blob=blob:${sha256('x')}`, `input blob: ${sha256('x')} is not in the blob store`],
    [`tree=tree:${sha256('from here\n')}`, 'lists no folder'],
  ] as const) {
    const { code, stderr } = await drover('run', '--input', input, '--', 'true');
    expect([code, stderr]).toEqual([126, expect.stringContaining(message)]);
  }
  server.closeAllConnections();
  server.close();
  asked = [];
}, 60_000);
