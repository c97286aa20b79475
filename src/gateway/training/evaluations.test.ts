/** Evaluations over real HTTP: of which checkpoint, by which template, with which scores. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { blobHashOf } from '../../model/blob.ts';
import { manifestText } from '../../model/manifest.ts';
import type { CheckpointView } from '../../protocol/jobs.ts';
import { EVALUATION_NAME } from './blocks.ts';
import { SCORES_BYTES } from './scores.ts';
import { startTestTraining, type TestTraining } from './testTraining.ts';

const CHECKPOINT: CheckpointView = {
  ...{ task: 'j1.0', n: 3, attempt: 'a1', manifest: blobHashOf(Buffer.from('x')) },
  ...{ bytes: 5, files: 1, reason: 'end', createdAtMs: 1_000 },
};
const EVALUATION = [
  'command: [score]',
  'inputs: [{ name: checkpoint, uri: {{ source.tree | json }} }]',
  'env: { SAMPLES: {{ evaluation.samples | default(1) | string | json }} }',
].join('\n');

let checkpoints: CheckpointView[] = [];
let training: TestTraining;
beforeAll(async () => {
  training = await startTestTraining({
    ownTemplates: true,
    overrides: { listCheckpoints: async () => ({ items: checkpoints, nextCursor: null }) },
  });
  training.template('plain', 'evaluation: plain-evaluation\n---\ncommand: [run]');
  training.template('plain-evaluation', EVALUATION);
});
afterAll(() => training[Symbol.asyncDispose]());

const submit = async (type = 'plain'): Promise<string> =>
  (await training.ask('POST /jobs', { model: { type } })).data['job_id'];

test('an evaluation takes the newest checkpoint, or the one that is named', async () => {
  const id = await submit();
  checkpoints = [CHECKPOINT, { ...CHECKPOINT, n: 4, manifest: blobHashOf(Buffer.from('y')) }];
  const newest = await training.ask('POST /evaluations', { job_id: id, config: { samples: 9 } });
  expect([newest.status, newest.data]).toMatchObject([
    200,
    { job_id: id, checkpoint: 4, scores: null, scores_error: null, config: { samples: 9 } },
  ]);
  const job = training.fake.jobs.get(newest.data['evaluation_id'])!;
  expect(job.spec).toMatchObject({ name: EVALUATION_NAME, env: { SAMPLES: '9' } });
  expect(job.spec!.inputs).toMatchObject([{ uri: `tree:${newest.data['manifest']}` }]);
  const named = await training.ask('POST /evaluations', { job_id: id, checkpoint: 3 });
  expect(named.data).toMatchObject({ checkpoint: 3, manifest: CHECKPOINT.manifest });
  const { evaluations } = (await training.ask('GET /evaluations?page_size=2')).data;
  expect(evaluations).toMatchObject([{ checkpoint: 3 }, { checkpoint: 4, job_id: id }]);
});

test('what cannot be evaluated is told', async () => {
  const id = await submit();
  checkpoints = [CHECKPOINT];
  const told = async (body: object): Promise<string> => {
    const { status, error } = await training.ask('POST /evaluations', body);
    return `${status} ${error['message']} ${error['hint']}`;
  };
  expect(await told({ job_id: 'none' })).toContain('404 There is no job none');
  expect(await told({ job_id: id, checkpoint: 9 })).toMatch(/^404 .* checkpoint 9 There are 3\.$/);
  expect(await told({ job_id: id, template: 'plian' })).toContain('Did you mean plain?');
  expect(await told({ job_id: id, config: [] })).toContain('400 config: Invalid input');
  checkpoints = [];
  expect(await told({ job_id: id })).toContain('409 Task 0 of the job');
  training.template('bare', 'command: [x]');
  const bare = await submit('bare');
  expect(await told({ job_id: bare })).toContain('the template bare names no evaluation');
  const who = { token: 't', tenant: 'main', user: 'ada', scopes: [] } as never;
  const { ids } = await training.fake.submit(who, {
    ...{ idempotencyKey: null, bodyHash: null, specs: [{ name: 'x', priority: 'batch' } as never] },
  });
  expect(await told({ job_id: ids[0] })).toContain('409 The job');
  expect((await training.ask(`GET /jobs/${ids[0]}`)).data).toMatchObject({ model: null });
  expect((await training.ask(`GET /evaluations/${ids[0]}`)).status).toBe(404);
});

test('scores are what it left, or why there are none', async () => {
  let result: string | null = null;
  await using scored = await startTestTraining({
    overrides: {
      listCheckpoints: async () => ({ items: [CHECKPOINT], nextCursor: null }),
      listAttempts: async () => ({ items: [{ result }] as never, nextCursor: null }),
    },
  });
  const put = async (text: string) => {
    const bytes = Buffer.from(text);
    const hash = blobHashOf(bytes);
    await scored.store.put('main', hash, bytes.length, [bytes]);
    return { hash, size: bytes.length };
  };
  const resultOf = async (path: string, text: string): Promise<string> => {
    const files = [{ path, ...(await put(text)), executable: false }];
    return (await put(manifestText({ version: 1, files, links: [], folders: [] }))).hash;
  };
  const { data: job } = await scored.ask('POST /jobs', { model: { type: 'linear' } });
  const { data } = await scored.ask('POST /evaluations', { job_id: job['job_id'] });
  const id = data['evaluation_id'];
  await scored.ask(`POST /jobs/${id}/cancel`);
  const told = async (): Promise<unknown> => {
    const { scores, scores_error } = (await scored.ask(`GET /evaluations/${id}`)).data;
    return scores ?? scores_error;
  };
  expect(await told()).toBe('it left no result');
  result = await resultOf('scores.json', '{"accuracy": 0.5}');
  expect(await told()).toEqual({ accuracy: 0.5 });
  result = await resultOf('other.json', '{}');
  expect(await told()).toBe('its result has no scores.json');
  result = await resultOf('scores.json', '[1]');
  expect(await told()).toBe('scores.json is no JSON object');
  result = await resultOf('scores.json', ' '.repeat(SCORES_BYTES + 1));
  expect(await told()).toBe('scores.json has 262145 bytes, the limit is 262144');
  result = blobHashOf(Buffer.from('gone'));
  expect(await told()).toBe('its result was removed');
});
