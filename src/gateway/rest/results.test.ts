/** /v1/jobs/{id}/result and /checkpoints as a client meets them. */
import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import type { BlobStore } from '../../blobs/contract.ts';
import { noSuchBlob } from '../../blobs/errors.ts';
import type { BlobHash } from '../../model/blob.ts';
import { manifestText } from '../../model/manifest.ts';
import type { Coordinator } from '../../protocol/coordinator.ts';
import type { AttemptView } from '../../protocol/jobs.ts';
import { startTestGateway } from '../testGateway.ts';
import { MANIFEST_BYTES, resultRoutes } from './results.ts';

const hash = (digit: number): BlobHash => `sha256:${String(digit).repeat(64)}`;
const file = { path: 'a', hash: hash(9), size: 3, executable: false };
const text = manifestText({ version: 1, files: [file], links: [], folders: [] });
/** Blob 1 is a list of files, 2 is longer than any, 3 is gone. */
const store = {
  stat: async (_tenant: string, name: BlobHash) =>
    name === hash(3) ? undefined : { size: name === hash(2) ? MANIFEST_BYTES + 1 : text.length },
  async open(_tenant: string, name: BlobHash) {
    if (name === hash(3)) throw noSuchBlob(name);
    return Readable.from([Buffer.from(text)]);
  },
} as unknown as BlobStore;

const attempt = (task: number, n: number, result: string | null): AttemptView =>
  ({ uid: `j1.${task}.${n}`, task: `j1.${task}`, n, result, resultBytes: 3 }) as AttemptView;
const attempts = [
  attempt(4, 1, hash(2)),
  attempt(4, 2, hash(1)),
  attempt(4, 3, null),
  attempt(5, 1, hash(2)),
  attempt(6, 1, hash(3)),
  attempt(7, 1, null),
];

function gateway() {
  const answers: Partial<Coordinator> = {
    listTasks: async () => ({ items: [{ index: 4 } as never], nextCursor: null }),
    // One at a time: whoever takes only the first page misses the newest.
    listAttempts: async (_who, _job, { task, cursor }) => {
      const own = attempts.filter((one) => one.task === `j1.${task}`);
      const at = Number(cursor ?? 0);
      const more = at + 1 < own.length;
      return { items: own.slice(at, at + 1), nextCursor: more ? String(at + 1) : null };
    },
    requestCheckpoint: async (_who, job, task) => [`${job}.${task ?? 'all'}`],
  };
  const coordinator = answers as Coordinator;
  return startTestGateway(answers, {
    extraRoutes: (app) => resultRoutes(app, { coordinator, store }),
  });
}

test('the newest result of a task, its first one by default', async () => {
  await using server = await gateway();
  const { status, json } = await server.call('GET', '/v1/jobs/j1/result');
  expect([status, json.data]).toEqual([
    200,
    {
      ...{ task: 'j1.4', attempt: 'j1.4.2', manifest: hash(1), bytes: 3 },
      ...{ files: [file], links: [] },
    },
  ]);
});

test.each([
  ['?task=7', 404, 'NOT_FOUND', 'task j1.7 has left no result'],
  ['?task=5', 413, 'BODY_TOO_LARGE', `has ${MANIFEST_BYTES + 1} bytes`],
  ['?task=6', 404, 'NOT_FOUND', hash(3)],
  ['?task=x', 400, 'INVALID_ARGUMENT', 'task'],
  ['?tsak=1', 400, 'INVALID_ARGUMENT', 'tsak'],
])('a result%s is %i', async (query, status, code, detail) => {
  await using server = await gateway();
  const answer = await server.call('GET', `/v1/jobs/j1/result${query}`);
  expect([answer.status, answer.json.code]).toEqual([status, code]);
  expect(answer.text).toContain(detail);
});

test('a checkpoint is asked for, of all or of one task', async () => {
  await using server = await gateway();
  const all = await server.call('POST', '/v1/jobs/j1/checkpoints');
  const one = await server.call('POST', '/v1/jobs/j1/checkpoints?task=3');
  expect([all.status, all.json.data]).toEqual([202, { tasks: ['j1.all'] }]);
  expect([one.status, one.json.data]).toEqual([202, { tasks: ['j1.3'] }]);
  const denied = await server.call('POST', '/v1/jobs/j1/checkpoints', { token: null });
  expect(denied.status).toBe(401);
});
