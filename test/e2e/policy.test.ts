/** A site's policy as users and operators meet it: refusals, trying jobs, changing the file. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { call, DROVER, startJourney, type, until, type Journey } from '../support/journey.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'drover-e2e-policy-'));
const file = path.join(folder, 'policy.yaml');
const jobFile = path.join(folder, 'job.yaml');
const SECRET = 'a-secret-that-is-long-enough';
const POLICY = `
defaults:
  - timeLimit: 1h
    env: { SITE: berlin }
rules:
  - name: short-jobs
    because: see the wiki
    require: { longestTimeLimit: 1d }
  - name: images
    unless: { roles: [tokens:manage] }
    require: { images: { allow: ['registry.example.org/*'] } }
  - name: bands
    require: { priorities: [batch, interactive] }
`;
let journey: Journey;
beforeAll(async () => {
  writeFileSync(file, POLICY);
  journey = await startJourney({
    args: ['--resources', 'cpus=4,mem=1Gi'],
    env: { DROVER_POLICY_FILE: file, DROVER_GRPC_API_SECRET: SECRET },
  });
});
afterAll(async () => {
  await journey.close();
  rmSync(folder, { recursive: true });
});

const inForce = (text: string): Promise<unknown> =>
  until('the policy is in force', async () => (await journey.client.policy()).text === text);

test('fills in, and refuses with all rules, by every way in', async () => {
  const run = await journey.drover('run', '--', 'sh', '-c', 'echo $SITE');
  expect([run.code, run.stdout]).toEqual([0, 'berlin\n']);
  const long = ['--time', '3d', '--priority', 'production', '--', 'true'];
  const refused = await journey.drover('run', ...long);
  expect(refused.code).toBe(125);
  expect(refused.stderr).toMatch(/POLICY.*rule "bands": the priority is production; allowed are/s);
  expect(refused.stderr).toContain(
    'rule "short-jobs": the time limit 3d is over the longest allowed, 1d (see the wiki)',
  );
  const planned = await journey.drover('run', '--plan', ...long);
  expect(planned.stderr).toContain('rule "short-jobs"');
  const spec = { command: ['true'], timeLimitMs: 1e11 };
  const answer = await journey.api('POST /v1/jobs', spec);
  expect([answer.status, answer.body['code']]).toEqual([403, 'POLICY']);
  const batch = await journey.api('POST /v1/jobs/batch', { jobs: [{ command: ['true'] }, spec] });
  expect([batch.status, batch.body['code']]).toEqual([403, 'POLICY']);
  expect(batch.body['detail']).toContain('job 2: the time limit');
});

test('a user is refused an image that the operator may use', async () => {
  const { secret } = await journey.client.createToken({ user: 'eve', scopes: ['jobs:manage'] });
  const spec = { command: ['true'], environment: { image: 'docker://ubuntu' } };
  const eve = await journey.api('POST /v1/jobs', spec, { token: secret ?? '' });
  expect([eve.status, eve.body['code']]).toEqual([403, 'POLICY']);
  expect(eve.body['detail']).toContain('registry.example.org/*');
  const admin = await journey.api('POST /v1/jobs', spec);
  expect(admin.status).toBe(201);
  await journey.client.cancelJob(admin.body['data'].id as string);
  const seen = await journey.api('GET /v1/policy', undefined, { token: secret ?? '' });
  expect(seen.status).toBe(403);
});

test('policy show and policy test', async () => {
  expect((await journey.drover('policy', 'show')).stdout.trim()).toBe(POLICY.trim());
  writeFileSync(jobFile, 'name: train\ncommand: python train.py\nimage: ubuntu\n');
  const tried = await journey.drover('policy', 'test', '-f', jobFile, '--as', 'vision/ada');
  expect(tried.code).toBe(1);
  expect(tried.stdout.split('\n').slice(0, 6)).toEqual([
    'train: refused',
    '  timeLimit = 1h (default 1)',
    '  env.SITE = berlin (default 1)',
    '  rule bands: kept',
    expect.stringContaining('rule images: the image "ubuntu" is not allowed; allowed are registry'),
    '  rule short-jobs: kept',
  ]);
  const as = ['--as', 'vision/ada', '--role', 'admin', '--json'];
  const admin = await journey.drover('policy', 'test', '-f', jobFile, ...as);
  expect(admin.code).toBe(0);
  expect(JSON.parse(admin.stdout)).toMatchObject([
    { violations: [], rules: ['short-jobs', 'bands'] },
  ]);
  const wrong = path.join(folder, 'wrong.yaml');
  writeFileSync(wrong, 'ruls: []\n');
  const local = ['policy', 'test', '-f', jobFile, '--as', 'a/b', '--policy', wrong];
  const { code, stderr } = await journey.drover(...local);
  expect([code, stderr]).toEqual([2, expect.stringContaining('did you mean rules?')]);
});

test('a changed file is in force soon, a broken one never; replays stay as they were', async () => {
  const key = { headers: { 'idempotency-key': 'once' } };
  const spec = { command: ['true'] };
  const first = await journey.api('POST /v1/jobs', spec, key);
  expect(first.status).toBe(201);
  const closed = 'rules:\n  - name: closed\n    require: { refuse: closed until Monday }\n';
  writeFileSync(file, closed);
  await inForce(closed);
  const again = await journey.api('POST /v1/jobs', spec, key);
  expect([again.status, again.body['data'].id]).toEqual([200, first.body['data'].id]);
  const other = await journey.api('POST /v1/jobs', spec);
  expect(other.body['detail']).toContain('rule "closed": closed until Monday');

  writeFileSync(file, 'rules:\n  - name: closed\n    requier: { refuse: never }\n');
  const { problem } = await until('the broken file is noticed', async () => {
    const view = await journey.client.policy();
    return view.problem !== null && view;
  });
  expect(problem).toContain(
    'line 3, rules[0].requier: there is no such key; did you mean require?',
  );
  expect((await journey.drover('policy', 'show')).stderr).toContain('did you mean require?');
  expect((await journey.api('POST /v1/jobs', spec)).status).toBe(403);
  expect(journey.log()).toContain('the policy cannot be used: what was in force stays so');
  writeFileSync(file, '');
  await inForce('');
  expect((await journey.api('POST /v1/jobs', spec)).status).toBe(201);
});

test('a gateway has a policy of its own before a coordinator that has another', async () => {
  const lines = journey.log().split('\n');
  const line = lines.find((text) => text.includes('gRPC listens')) ?? '{}';
  const { url: grpcUrl } = JSON.parse(line) as { url: string };
  const own = path.join(folder, 'gateway.yaml');
  writeFileSync(own, 'rules: [{ name: edge, require: { mostRetries: 0 } }]\n');
  const home = mkdtempSync(path.join(folder, 'gateway-'));
  const env = { HOME: home, DROVER_POLICY_FILE: own, DROVER_GRPC_API_SECRET: SECRET };
  const gateway = type(DROVER, ['gateway', '--coordinator', grpcUrl, '--port', '0'], { env });
  try {
    const url = await until(
      'the gateway listens',
      () => /"url":"([^"]+)"[^\n]*gateway listens/.exec(gateway.stderr())?.[1],
    );
    const submit = (where: string) =>
      call(where, 'POST /v1/jobs', { command: ['true'], retries: 1 }, { token: journey.token });
    const refused = await submit(url);
    expect([refused.status, refused.body['detail']]).toEqual([
      403,
      expect.stringContaining('rule "edge": it has 1 retries, at most 0 are allowed'),
    ]);
    expect((await submit(journey.url)).status).toBe(201);
  } finally {
    gateway.child.kill('SIGTERM');
    await gateway.ended;
  }
});

test('patterns that look like hostile expressions hurt nobody', async () => {
  const stars = '*a'.repeat(400);
  const demand = `{ inputs: { allow: ['(a+)+$', '${stars}b'] } }`;
  const hostile = `rules:\n  - name: hostile\n    require: ${demand}\n`;
  writeFileSync(file, hostile);
  await inForce(hostile);
  const inputs = Array.from({ length: 200 }, (_, at) => ({
    name: `i${at}`,
    uri: `data:${'a'.repeat(4000)}`,
  }));
  const begun = performance.now();
  const answer = await journey.api('POST /v1/jobs', { command: ['true'], inputs });
  expect([answer.status, answer.body['code']]).toEqual([403, 'POLICY']);
  expect(answer.text.length).toBeLessThan(20_000);
  expect(performance.now() - begun).toBeLessThan(5000);
});

test('a server does not start with a file that is wrong or missing', async () => {
  const home = mkdtempSync(path.join(folder, 'home-'));
  const start = (named: string) => {
    const env = { HOME: home, DROVER_POLICY_FILE: named, DROVER_GRPC_ENABLED: 'false' };
    return type(DROVER, ['controller', '--port', '0'], { env }).ended;
  };
  writeFileSync(jobFile, 'leaving: { jobs: burn }\n');
  const wrong = await start(jobFile);
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('line 1, leaving.jobs')]);
  const missing = await start(path.join(folder, 'nothing.yaml'));
  expect(missing.code).toBe(2);
  expect(missing.stderr).toContain('policy.file names');
});
