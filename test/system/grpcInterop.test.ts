/** gRPC clients nobody here wrote: `buf curl`, and Python's, with nothing but the proto files. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startGrpcFake, type GrpcFake } from '../support/grpc.ts';
import { freePort } from '../support/postgres.ts';
import { grpcIsHere, grpcPython } from '../support/python.ts';
import { startServer } from '../support/server.ts';

const root = resolve(import.meta.dirname, '../..');
const run = promisify(execFile);

let grpc: GrpcFake;
beforeAll(async () => {
  grpc = await startGrpcFake();
});
afterAll(() => grpc.close());

async function curl(method: string, body: object, token?: string): Promise<unknown> {
  const words = ['curl', '--schema', 'proto', '--protocol', 'grpc', '--http2-prior-knowledge'];
  if (token !== undefined) words.push('--header', `authorization: Bearer ${token}`);
  const url = `http://127.0.0.1:${grpc.server.port}/${method}`;
  const { stdout } = await run(
    resolve(root, 'node_modules/.bin/buf'),
    [...words, '--data', JSON.stringify(body), url],
    { cwd: root },
  );
  return JSON.parse(stdout);
}

test('the cluster, with a token', async () => {
  const reply = await curl('drover.v1.Coordinator/GetCluster', {}, grpc.fake.adminSecret);
  expect(reply).toMatchObject({
    cluster: { id: 'cfake', name: 'fake', epoch: '1', store: 'STORE_KIND_SQLITE' },
  });
});

test('a job is submitted and seen', async () => {
  const spec = { name: 'größe 大', command: ['true'], shape: { gang: { size: 4 } } };
  const token = grpc.fake.adminSecret;
  const submitted = await curl('drover.v1.Coordinator/SubmitJobs', { specs: [spec] }, token);
  const id = (submitted as { ids: string[] }).ids[0];
  expect(await curl('drover.v1.Coordinator/GetJob', { id }, token)).toMatchObject({
    job: {
      id,
      state: 'JOB_STATE_PENDING',
      tasks: { total: 4 },
      spec: { ...spec, graceMs: '10000' },
    },
  });
});

test('health, without one', async () => {
  expect(await curl('grpc.health.v1.Health/Check', {})).toEqual({ status: 'SERVING' });
});

test('a refusal carries code, sentence and what to try', async () => {
  const failed = await curl('drover.v1.Coordinator/GetCluster', {}, 'unknown').then(
    () => expect.unreachable(),
    (error: { stderr: string }) => JSON.parse(error.stderr),
  );
  expect(failed).toMatchObject({
    code: 'unauthenticated',
    message: 'the token is unknown, expired or revoked',
    details: [{ type: 'drover.v1.ErrorDetail' }],
  });
  const detail = Buffer.from(failed.details[0].value, 'base64').toString();
  expect(detail).toContain('UNAUTHENTICATED');
  expect(detail).toContain('Ask whoever runs the cluster');
});

const withPython = test.runIf(grpcIsHere());
withPython('a Python client on a real controller: submit, list, follow', async () => {
  const stubs = mkdtempSync(join(tmpdir(), 'drover-stubs-'));
  const python = grpcPython(stubs);
  const port = await freePort();
  const env = { DROVER_GRPC_ENABLED: 'true', DROVER_GRPC_PORT: String(port) };
  const server = await startServer({ env });
  try {
    server.agent('w');
    await server.online(1);
    const script = resolve(import.meta.dirname, 'foreign/client.py');
    const { stdout } = await run(python, [script, stubs, `127.0.0.1:${port}`], {
      env: { ...process.env, DROVER_TOKEN: server.token },
    });
    const said = JSON.parse(stdout) as { id: string };
    expect(said).toEqual({
      id: expect.any(String) as string,
      again: { id: said.id, replayed: true },
      many: 2,
      listed: 3,
      text: 'line 1\nline 2\nline 3\n',
      complete: true,
      steps: [1, 2, 3],
      metricsComplete: true,
      missing: { code: 'NOT_FOUND', detailed: true },
    });
  } finally {
    await server.close();
    rmSync(stubs, { recursive: true });
  }
});
