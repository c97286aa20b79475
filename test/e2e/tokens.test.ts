/** Tokens: scopes, expiry, revocation, login; and that no secret shows anywhere it should not. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DROVER, startJourney, type, until } from '../support/journey.ts';
import { processesOf } from '../support/leftovers.ts';
import type { Journey, Typed } from '../support/journey.ts';

let journey: Journey;
beforeAll(async () => {
  journey = await startJourney({
    args: ['--resources', 'cpus=4,mem=1Gi'],
    env: { DROVER_LOG_LEVEL: 'debug' },
  });
});
afterAll(() => journey.close());

/** As a person with this token and nothing else. */
const as = (token: string, ...args: string[]) =>
  type(DROVER, args, {
    env: { HOME: path.join(journey.home, 'other'), DROVER_URL: journey.url, DROVER_TOKEN: token },
  }).ended;

async function create(...args: string[]): Promise<{ id: string; secret: string }> {
  const { stdout } = await journey.drover('tokens', 'create', ...args, '--json');
  return JSON.parse(stdout) as { id: string; secret: string };
}

describe('tokens', () => {
  test('one that may read reads, and may nothing else', async () => {
    const { secret } = await create('--name', 'reader', '--scope', 'jobs:read');
    const [jobs, run, workers, tokens] = await Promise.all([
      as(secret, 'jobs'),
      as(secret, 'run', '--', 'true'),
      as(secret, 'workers'),
      as(secret, 'tokens'),
    ]);
    expect(jobs.code).toBe(0);
    expect([run.code, workers.code, tokens.code]).toEqual([125, 1, 1]);
    for (const { stderr } of [run, workers, tokens]) {
      expect(stderr).toMatch(/error PERMISSION_DENIED: .*(jobs:manage|fleet:read|tokens:manage)/);
      expect(stderr).toMatch(/^try: /m);
    }
  });

  test('nobody hands out what he does not have', async () => {
    const { secret } = await create('--scope', 'tokens:manage', '--scope', 'jobs:read');
    const more = await as(secret, 'tokens', 'create', '--scope', 'jobs:manage');
    expect([more.code, more.stderr]).toEqual([1, expect.stringContaining('lacks jobs:manage')]);
    expect((await as(secret, 'tokens', 'create', '--scope', 'jobs:read')).code).toBe(0);
  });

  test('a revoked one is refused within 5 seconds', async () => {
    const { id, secret } = await create('--scope', 'jobs:read');
    expect((await journey.api('GET /v1/jobs', undefined, { token: secret })).status).toBe(200);
    expect((await journey.drover('tokens', 'revoke', id)).stdout).toBe(`${id} revoked\n`);
    const answer = await until(
      'it is refused',
      async () => {
        const got = await journey.api('GET /v1/jobs', undefined, { token: secret });
        return got.status === 401 && got;
      },
      5000,
    );
    expect(answer.body).toMatchObject({ code: 'UNAUTHENTICATED', hint: expect.any(String) });
    expect((await journey.drover('tokens')).stdout).toMatch(new RegExp(`${id} .*revoked`));
  });

  test('an expired one is refused', async () => {
    const { secret } = await create('--scope', 'jobs:read', '--expires', '2s');
    expect((await journey.api('GET /v1/jobs', undefined, { token: secret })).status).toBe(200);
    await until('it is refused', async () => {
      const got = await journey.api('GET /v1/jobs', undefined, { token: secret });
      return got.status === 401;
    });
  });

  test('login keeps a token for later commands; a wrong one is not kept', async () => {
    const home = path.join(journey.home, 'login');
    const { secret } = await create('--scope', 'jobs:read', '--scope', 'fleet:read');
    const login = (token: string) =>
      type(DROVER, ['login', journey.url], { env: { HOME: home }, input: `${token}\n` }).ended;
    const wrong = await login(`${secret}x`);
    expect([wrong.code, wrong.stderr]).toEqual([1, expect.stringContaining('UNAUTHENTICATED')]);
    const right = await login(secret);
    expect(right).toMatchObject({ code: 0 });
    const file = path.join(home, '.config/drover/context.json');
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const { code, stdout } = await type(DROVER, ['info'], { env: { HOME: home } }).ended;
    expect([code, stdout]).toEqual([0, expect.stringContaining(journey.url)]);
  });
});

describe('secrets', () => {
  const canary = 'canary-in-the-environment-7f3a';
  let second: Typed;
  let secrets: string[];
  beforeAll(async () => {
    const user = await create('--name', 'canary');
    const join = await create('--kind', 'join');
    const args = ['agent', '--join', journey.url, join.secret, '--name', 'second'];
    second = type(DROVER, [...args, '--data', path.join(journey.home, 'second')], {
      env: { HOME: journey.home, DROVER_LOG_LEVEL: 'debug' },
    });
    await until('it has joined', async () =>
      (await journey.client.listWorkers({})).items.some(({ name }) => name === 'second'),
    );
    const workers = await Promise.all(['.drover/agent', 'second'].map(workerToken));
    secrets = [journey.token, journey.joinToken, user.secret, join.secret, ...workers];
    const job = await journey.submit({ command: ['sleep', '300'], env: { CANARY: canary } });
    await journey.running(job);
    const exec = journey.start(['exec', job, '--', 'true'], { input: '' });
    expect((await exec.ended).code).toBe(0);
    await journey.api('POST /v1/jobs', { command: ['true'], token: user.secret });
    await journey.api(`GET /v1/jobs?cursor=${user.secret}`);
    await journey.api('GET /v1/jobs', undefined, { token: `${user.secret}0` });
  });
  afterAll(async () => {
    second.child.kill('SIGTERM');
    await second.ended;
  });

  test('are on no command line', () => {
    const commands = processesOf(journey.home).map(({ command }) => command);
    expect(commands.length).toBeGreaterThan(3);
    for (const secret of [...secrets, canary]) {
      expect(commands.filter((command) => command.includes(secret))).toEqual([]);
    }
  });

  test('are in no log, also not at level debug', () => {
    const logs = journey.log() + second.stderr() + second.stdout() + journey.up.stderr();
    expect(logs).toContain('"level":30');
    for (const secret of [...secrets, canary]) expect(logs).not.toContain(secret);
  });

  test('are in no file but those made for them, which only their owner reads', () => {
    const allowed = new Set(['connection.json', 'worker.json', 'context.json']);
    let files = 0;
    for (const file of filesBelow(journey.home)) {
      const bytes = readFileSync(file);
      files++;
      if (!secrets.some((secret) => bytes.includes(secret))) continue;
      expect([allowed.has(path.basename(file)), file]).toEqual([true, file]);
      expect([statSync(file).mode & 0o077, file]).toEqual([0, file]);
    }
    expect(files).toBeGreaterThan(5);
  });

  test('the variables of a job lie where only their owner reads', () => {
    for (const file of filesBelow(journey.home)) {
      if (!readFileSync(file).includes(canary)) continue;
      const closed = [file, ...parents(file)].some((one) => (statSync(one).mode & 0o077) === 0);
      expect([closed, file]).toEqual([true, file]);
    }
  });

  test('a task sees none of them', async () => {
    const id = await journey.submit({ command: ['env'] });
    await journey.ended(id);
    const { stdout } = await journey.drover('logs', id);
    expect(stdout).toContain('DROVER_JOB_ID');
    for (const secret of secrets) expect(stdout).not.toContain(secret);
  });
});

function workerToken(folder: string): Promise<string> {
  const file = path.join(journey.home, folder, 'worker.json');
  return until(`${file} is written`, () => {
    return (JSON.parse(readFileSync(file, 'utf8')) as { token: string }).token;
  });
}

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath, entry.name));
}

function parents(file: string): string[] {
  const found: string[] = [];
  for (let at = path.dirname(file); at.startsWith(journey.home); at = path.dirname(at))
    found.push(at);
  return found.filter((one) => one !== journey.home);
}
