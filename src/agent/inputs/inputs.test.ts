/** Inputs from S3 and from the Hugging Face Hub, as real servers would be asked for them. */
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../lib/clock.ts';
import { ContentCache } from '../cache/contentCache.ts';
import { order } from '../runtimes/testing.ts';
import { createInputStep } from './inputStep.ts';

let root: string;
let server: Server;
let url: string;
let asked: IncomingMessage[];
let answer: (request: IncomingMessage, response: ServerResponse) => void;
beforeEach(async () => {
  root = mkdtempSync(path.join(tmpdir(), 'drover-inputs-'));
  asked = [];
  server = createServer((request, response) => {
    asked.push(request);
    answer(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterEach(() => {
  server.closeAllConnections();
  server.close();
  rmSync(root, { recursive: true });
});

let stages = 0;
async function prepare(uri: string, env: Record<string, string>, maxBytes = 1e9, hash = '') {
  const folder = path.join(root, 'cache');
  const cache = new ContentCache({ folder, maxBytes, clock: systemClock });
  const step = createInputStep({ cache, folder, env, blobs: () => ({ url: '' }) });
  const stage = path.join(root, `stage${++stages}`);
  mkdirSync(stage);
  const facts: Record<string, string> = {};
  const task = { command: [], env: {} as Record<string, string>, workdir: '' };
  await step.prepare!({
    order: order(['true'], { inputs: [{ name: 'it', uri, hash }] }),
    ...{ stage, home: '/attempt', task, facts, secrets: {} },
    signal: new AbortController().signal,
    say: () => undefined,
  });
  expect(task.env['DROVER_INPUTS']).toBe('/attempt/inputs');
  return { at: path.join(stage, 'inputs/it'), fact: facts['input.it'] };
}

test('an object of S3 is asked for with a signature, and once', async () => {
  answer = (_request, response) => response.writeHead(200, { etag: '"x"' }).end('object');
  const env = {
    AWS_ENDPOINT_URL: url,
    AWS_ACCESS_KEY_ID: 'key',
    AWS_SECRET_ACCESS_KEY: 'secret',
    AWS_SESSION_TOKEN: 'session',
    AWS_REGION: 'eu-west-1',
  };
  const { at } = await prepare('s3://bucket/a b/c', env);
  expect(readFileSync(at, 'utf8')).toBe('object');
  expect(statSync(at).mode & 0o222).toBe(0);
  expect(asked[0]?.url).toBe('/bucket/a%20b/c');
  expect(asked[0]?.headers).toMatchObject({
    'x-amz-security-token': 'session',
    authorization: expect.stringMatching(/^AWS4-HMAC-SHA256 Credential=key\/\d+\/eu-west-1\/s3/),
  });
  answer = (request, response) =>
    response.writeHead(request.headers['if-none-match'] === '"x"' ? 304 : 500).end();
  await prepare('s3://bucket/a b/c', env);
  await expect(prepare('s3://bucket', env)).rejects.toThrow(/names no object/);
  answer = (_request, response) => response.writeHead(403).end();
  await expect(prepare('s3://bucket/other', env)).rejects.toMatchObject({
    name: 'Unprepared',
    message: 'input it: its server answered 403',
  });
});

test('all below a prefix of S3 is a folder, however many pages list it', async () => {
  const keys = ['set/', 'set/a&b.txt', 'set/sub/', 'set/sub/c d', 'set/sub/e'];
  answer = (request, response) => {
    const { pathname, searchParams } = new URL(request.url!, url);
    if (pathname !== '/bucket/') return void response.end(`of ${decodeURIComponent(pathname)}`);
    if (searchParams.get('prefix') !== 'set/') {
      const error = '<Error><Code>NoSuchBucket</Code><Message>gone</Message></Error>';
      const empty = searchParams.get('prefix') === 'empty/';
      return void response.writeHead(empty ? 200 : 404).end(empty ? '<List></List>' : error);
    }
    const from = Number(searchParams.get('continuation-token') ?? 0);
    const page = keys.slice(from, from + 2).map((key) => key.replace('&', '&amp;'));
    const more = from + 2 < keys.length;
    const next = more ? `<NextContinuationToken>${from + 2}</NextContinuationToken>` : '';
    const contents = page.map((key) => `<Contents><Key>${key}</Key></Contents>`);
    response.end(`<List>${contents.join('')}${next}</List>`);
  };
  const env = { AWS_ENDPOINT_URL: url, AWS_ACCESS_KEY_ID: 'k', AWS_SECRET_ACCESS_KEY: 's' };
  const { at, fact } = await prepare('s3://bucket/set/', env);
  const names = readdirSync(at, { recursive: true, encoding: 'utf8' });
  expect(new Set(names)).toEqual(new Set(['a&b.txt', 'sub', 'sub/c d', 'sub/e']));
  expect(readFileSync(path.join(at, 'sub/c d'), 'utf8')).toBe('of /bucket/set/sub/c d');
  expect((await prepare('s3://bucket/set/', env, 1e9, fact)).fact).toBe(fact);
  keys.push('set/sub/f');
  const changed = prepare('s3://bucket/set/', env, 1e9, fact);
  await expect(changed).rejects.toThrow(/input it is not what it was/);
  keys.push('set/sub/e/g');
  await expect(prepare('s3://bucket/set/', env)).rejects.toThrow(/sub\/e\/g .* below another file/);
  keys.splice(0, keys.length, 'set/../../outside');
  await expect(prepare('s3://bucket/set/', env)).rejects.toThrow(/is no path below it/);
  await expect(prepare('s3://bucket/empty/', env)).rejects.toThrow(/holds no files/);
  await expect(prepare('s3://bucket/none/', env)).rejects.toThrow(/answered 404 to a list .* gone/);
});

test('a folder of the machine is copied whole; what cannot be copied is named', async () => {
  const folder = path.join(root, 'own');
  mkdirSync(path.join(folder, 'sub'), { recursive: true });
  writeFileSync(path.join(folder, 'one'), 'first');
  writeFileSync(path.join(folder, 'sub', 'two'), 'second');
  const { at, fact } = await prepare(`file://${folder}/`, {});
  expect(readFileSync(path.join(at, 'sub/two'), 'utf8')).toBe('second');
  expect(statSync(path.join(at, 'one')).mode & 0o222).toBe(0);
  expect((await prepare(`file://${folder}`, {})).fact).toBe(fact);
  symlinkSync('one', path.join(folder, 'link'));
  const odd = prepare(`file://${folder}/`, {});
  await expect(odd).rejects.toThrow(/own\/link is neither a file nor a folder; take pool:\/\//);
});

test('files of one revision of the hub, without a token to whoever stores them', async () => {
  const files: Record<string, string> = { 'config.json': '{}', 'sub/model.bin': 'weights' };
  answer = (request, response) => {
    const { pathname } = new URL(request.url!, url);
    if (pathname === '/api/models/org/name/revision/v1') {
      const siblings = [...Object.keys(files), '../outside'].map((rfilename) => ({ rfilename }));
      return void response.end(JSON.stringify({ sha: 'c0ffee', siblings }));
    }
    if (request.headers.host?.startsWith('localhost')) {
      expect(request.headers.authorization).toBeUndefined();
      return void response.end(files[pathname.slice('/cdn/'.length)]);
    }
    expect(request.headers.authorization).toBe('Bearer hf_x');
    const file = /^\/org\/name\/resolve\/c0ffee\/(.*)$/.exec(pathname)?.[1];
    if (!file) return void response.writeHead(404).end();
    const location = `${url.replace('127.0.0.1', 'localhost')}/cdn/${file}`;
    response.writeHead(302, { location }).end();
  };
  const env = { HF_ENDPOINT: url, HF_TOKEN: 'hf_x' };
  const { at, fact } = await prepare('hf://org/name@v1', env);
  expect(readFileSync(path.join(at, 'sub/model.bin'), 'utf8')).toBe('weights');
  expect(readFileSync(path.join(at, 'config.json'), 'utf8')).toBe('{}');
  expect((await prepare('hf://org/name@v1', env, 1e9, fact)).fact).toBe(fact);
  const one = await prepare('hf://org/name@v1/sub/model.bin', env);
  expect(readFileSync(one.at, 'utf8')).toBe('weights');
  const part = await prepare('hf://org/name@v1/sub', env);
  expect(readFileSync(path.join(part.at, 'model.bin'), 'utf8')).toBe('weights');
  await expect(prepare('hf://org/name@v1/none', env)).rejects.toThrow(/has no none/);
  await expect(prepare('hf://org/name@v2', env)).rejects.toThrow(/the hub answered 404/);
  await expect(prepare('hf://name', env)).rejects.toThrow(/is not hf:\/\/ORG\/NAME/);
  const other = prepare('hf://org/name@v1', env, 1e9, `sha256:${'1'.repeat(64)}`);
  await expect(other).rejects.toThrow(/input it is not what it was/);
});

test('what does not fit the cache is refused before it is fetched', async () => {
  answer = (_request, response) => response.end(Buffer.alloc(1000));
  await expect(prepare(`${url}/large`, {}, 999)).rejects.toMatchObject({
    hostFault: true,
    message: expect.stringContaining('the cache of this machine is full: 1000 bytes more'),
  });
  await prepare(`${url}/large`, {}, 1000);
});
