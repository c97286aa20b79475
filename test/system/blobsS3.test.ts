/** Blobs in a bucket, put and fetched through a real server and read back by other S3 clients. */
import { execFileSync } from 'node:child_process';
import { hash as digest, randomBytes } from 'node:crypto';
import { mkdirSync, renameSync, rmSync, writeFileSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { S3BlobStore } from '../../src/blobs/s3/s3BlobStore.ts';
import { systemClock as clock } from '../../src/lib/clock.ts';
import { blobHashOf, hexOf } from '../../src/model/blob.ts';
import { getBlob, putBlob } from '../../src/protocol/blobClient.ts';
import { startProxy } from '../support/proxy.ts';
import { PYTHON_PLACE, S3_BUCKET, S3_KEY, S3_SECRET } from '../support/s3Servers.ts';
import { type S3Server, startMoto, startRclone } from '../support/s3Servers.ts';
import { startServer, type TestServer } from '../support/server.ts';

const MIB = 1024 * 1024;
const PREFIX = 'lab/drover';
const bytes = randomBytes(20 * MIB + 5);
const hash = blobHashOf(bytes);
const key = `${PREFIX}/default/blobs/${hexOf(hash)}`;
let s3: S3Server;
let server: TestServer;
let file: string;

const settings = (endpoint: string, secret = S3_SECRET) => ({
  DROVER_BLOBS_KIND: 's3',
  DROVER_BLOBS_ENDPOINT: endpoint,
  DROVER_BLOBS_BUCKET: S3_BUCKET,
  DROVER_BLOBS_PREFIX: PREFIX,
  DROVER_BLOBS_PATH_STYLE: 'true',
  DROVER_BLOBS_ACCESS_KEY_ID: S3_KEY,
  DROVER_BLOBS_SECRET_ACCESS_KEY: secret,
});

beforeAll(async () => {
  s3 = await startRclone();
  server = await startServer({ env: settings(s3.endpoint) });
  file = path.join(server.root, 'source');
  writeFileSync(file, bytes);
  await putBlob(server, file);
});
afterAll(async () => {
  await server.close();
  await s3.stop();
});

/** Runs Python with boto3; `s3` is its client, and what is printed comes back. */
function boto(endpoint: string, script: string): string {
  const setUp = `import boto3, botocore.config, os
s3 = boto3.client('s3', endpoint_url='${endpoint}', region_name='us-east-1',
  config=botocore.config.Config(s3={'addressing_style': 'path'}))
`;
  const env = { AWS_ACCESS_KEY_ID: S3_KEY, AWS_SECRET_ACCESS_KEY: S3_SECRET };
  const python = path.resolve(PYTHON_PLACE, 'python');
  return execFileSync(python, ['-c', setUp + script], { env, encoding: 'utf8' }).trim();
}

function storeOn(endpoint: string, prefix: string): S3BlobStore {
  return new S3BlobStore({
    endpoint,
    region: 'us-east-1',
    bucket: S3_BUCKET,
    prefix,
    pathStyle: true,
    accessKeyId: S3_KEY,
    secretAccessKey: S3_SECRET,
    clock,
  });
}

const call = (where: { url: string; token: string }, method: string, name: string) =>
  fetch(`${where.url}/v1/blobs/${name}`, {
    method,
    headers: { authorization: `Bearer ${where.token}` },
    redirect: 'manual',
  });

test('boto3, rclone and curl read what was put', async () => {
  const script = `import hashlib
body = s3.get_object(Bucket='${S3_BUCKET}', Key='${key}')['Body'].read()
print(hashlib.sha256(body).hexdigest())`;
  expect(boto(s3.endpoint, script)).toBe(hexOf(hash));

  const remote = `:s3,provider=Other,endpoint='${s3.endpoint}',env_auth:${S3_BUCKET}/${key}`;
  const copy = path.join(server.root, 'by-rclone');
  execFileSync(path.resolve(PYTHON_PLACE, 'rclone'), ['copyto', remote, copy], {
    env: { AWS_ACCESS_KEY_ID: S3_KEY, AWS_SECRET_ACCESS_KEY: S3_SECRET, HOME: server.root },
  });
  expect(readFileSync(copy).equals(bytes)).toBe(true);

  const { status, headers } = await call(server, 'GET', `${hash}?redirect=1`);
  expect([status, headers.get('cache-control')]).toEqual([307, 'no-store']);
  const url = headers.get('location')!;
  expect(url).not.toContain(S3_SECRET);
  const fetched = execFileSync('curl', ['-sf', url], { maxBuffer: 64 * MIB });
  expect(blobHashOf(fetched)).toBe(hash);
  const part = execFileSync('curl', ['-sf', '-r', '100-199', url]);
  expect(part.equals(bytes.subarray(100, 200))).toBe(true);
  const spoiled = execFileSync('curl', ['-s', '-w', '%{http_code}', `${url}0`], {
    encoding: 'utf8',
  });
  expect(spoiled).toMatch(/403$/);
});

test('the client follows the signed URL, and the bytes also come through the gateway', async () => {
  const direct = path.join(server.root, 'direct');
  await getBlob(server, hash, direct, { redirect: true });
  expect(readFileSync(direct).equals(bytes)).toBe(true);
  const through = path.join(server.root, 'through');
  writeFileSync(`${through}.part`, bytes.subarray(0, 9 * MIB));
  await getBlob(server, hash, through);
  expect(readFileSync(through).equals(bytes)).toBe(true);
});

test('an object that boto3 put under its hash is a blob', async () => {
  const other = Buffer.from('put by somebody else');
  const name = `${PREFIX}/default/blobs/${hexOf(blobHashOf(other))}`;
  boto(
    s3.endpoint,
    `s3.put_object(Bucket='${S3_BUCKET}', Key='${name}', Body=b'${other.toString()}')`,
  );
  const got = await call(server, 'GET', blobHashOf(other));
  expect(await got.text()).toBe(other.toString());
});

test('a prefix of a bucket is a folder for a job, over more than one page', async () => {
  const names = Array.from({ length: 1050 }, (_, at) => `f${at}`);
  mkdirSync(path.join(s3.bucketFolder, 'set', 'sub dir'), { recursive: true });
  for (const name of names) writeFileSync(path.join(s3.bucketFolder, 'set', name), `is ${name}`);
  boto(s3.endpoint, `s3.put_object(Bucket='${S3_BUCKET}', Key='set/sub dir/é&', Body=b'last')`);
  server.agent('one');
  const env = {
    AWS_ENDPOINT_URL: s3.endpoint,
    AWS_ACCESS_KEY_ID: S3_KEY,
    AWS_SECRET_ACCESS_KEY: S3_SECRET,
  };
  const script = 'cd $DROVER_INPUTS/set; find . -type f | wc -l; cat f1049 "sub dir/é&"';
  const inputs = [{ name: 'set', uri: `s3://${S3_BUCKET}/set/` }];
  const job = await server.submit({ command: ['sh', '-c', script], env, inputs });
  expect((await server.ended(job)).state).toBe('SUCCEEDED');
  expect((await server.stdout(job)).trim()).toBe('1051\nis f1049last');
});

test('checksums are kept: of a small blob, of each part of a large one', async () => {
  const moto = await startMoto();
  const store = storeOn(moto.endpoint, '');
  const small = Buffer.from('small');
  await store.put('main', blobHashOf(small), small.length, [small]);
  await store.put('main', hash, bytes.length, [bytes]);
  const script = (name: string) => `
print(s3.head_object(Bucket='${S3_BUCKET}', Key='main/blobs/${name}',
  ChecksumMode='ENABLED')['ChecksumSHA256'])`;
  const ofSmall = boto(moto.endpoint, script(hexOf(blobHashOf(small))));
  expect(ofSmall).toBe(digest('sha256', small, 'base64'));
  const parts = [0, 8, 16].map((at) => bytes.subarray(at * MIB, (at + 8) * MIB));
  const digests = Buffer.concat(parts.map((part) => digest('sha256', part, 'buffer')));
  const ofLarge = boto(moto.endpoint, script(hexOf(hash)));
  // A checksum of the parts' checksums, with or without their number behind it.
  expect(ofLarge.replace(/-3$/, '')).toBe(digest('sha256', digests, 'base64'));
  await store.close();
  await moto.stop();
});

test('a line that breaks midway is taken up again, up and down', async () => {
  const breaking = async (use: (store: S3BlobStore) => Promise<void>) => {
    const proxy = await startProxy(s3.endpoint);
    let connections = 0;
    proxy.cutAfter = () => (++connections % 2 === 0 ? Number.POSITIVE_INFINITY : 6 * MIB);
    const store = storeOn(proxy.url, 'broken');
    await use(store);
    expect(proxy.cuts()).toBeGreaterThan(0);
    await store.close();
    await proxy.close();
  };
  await breaking(async (store) => {
    expect(await store.put('lab', hash, bytes.length, [bytes])).toEqual({ created: true });
  });
  await breaking(async (store) => {
    const chunks: Buffer[] = [];
    for await (const chunk of await store.open('lab', hash)) chunks.push(chunk as Buffer);
    expect(blobHashOf(Buffer.concat(chunks))).toBe(hash);
  });
});

test('wrong credentials, a bucket that vanished, a server that is away: said as such', async () => {
  const wrong = await startServer({ env: settings(s3.endpoint, 'wrong') });
  for (const method of ['GET', 'DELETE']) {
    const answer = await call(wrong, method, hash);
    const { code, detail } = (await answer.json()) as { code: string; detail: string };
    expect([answer.status, code]).toEqual([503, 'UNAVAILABLE']);
    expect(detail).toContain('refuses the credentials');
  }
  expect(wrong.process().output()).toContain('the bucket of the blob store cannot be used now');
  expect(wrong.process().output()).not.toContain(S3_SECRET);
  await wrong.close();

  const away = `${s3.bucketFolder}-away`;
  renameSync(s3.bucketFolder, away);
  const gone = await call(server, 'GET', blobHashOf(Buffer.from('never put')));
  const problem = (await gone.json()) as { code: string; detail: string };
  expect([gone.status, problem.code]).toEqual([503, 'UNAVAILABLE']);
  expect(problem.detail).toContain(`The bucket ${S3_BUCKET} does not exist`);
  renameSync(away, s3.bucketFolder);

  await s3.stop();
  const absent = await call(server, 'HEAD', hash);
  expect(absent.status, 'not a 404').toBe(503);
  rmSync(file);
});
