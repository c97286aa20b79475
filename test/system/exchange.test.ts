/**
 * Tokens of other services, in real processes: an OpenID provider with token exchange that nobody
 * here wrote, a controller with its gateway, an agent, and jobs that look at what they were given.
 */
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createClient, type DroverClient } from '../../src/protocol/client.ts';
import type { EventView } from '../../src/protocol/jobs.ts';
import { processesOf } from '../support/processes.ts';
import { startServer, type TestAgent, type TestServer } from '../support/server.ts';
import { until } from '../support/wait.ts';
import { exchangeEnvironment, startExchangeServer } from './exchangeServer.ts';
import type { ExchangeServer } from './exchangeServer.ts';

const STORAGE = 'https://drive.example.org';
const REGISTRY = 'https://atlas.example.org';
/** Tokens live this long; they are renewed after two thirds of it. */
const LIFE_SECONDS = 3;
const PEOPLE = {
  ada: 'physics',
  bob: 'biology',
  carol: 'physics',
  dave: 'physics',
  eve: 'physics',
};

const folder = mkdtempSync(path.join(tmpdir(), 'drover-exchange-'));
let issuer: ExchangeServer;
let server: TestServer;
let agent: TestAgent;
const logins = new Map<string, string>();
const submitted = new Map<string, string>();

beforeAll(async () => {
  issuer = await startExchangeServer(PEOPLE);
  issuer.tokenSeconds = LIFE_SECONDS;
  for (const person of Object.keys(PEOPLE)) logins.set(person, await issuer.login(person));
  server = await startServer({
    env: {
      ...exchangeEnvironment(issuer, folder, AUDIENCES),
      DROVER_LOG_LEVEL: 'debug',
      DROVER_EXCHANGE_REFRESH: 'offline-access',
      DROVER_EXCHANGE_ON_REFUSAL: 'stop',
    },
  });
});
afterAll(async () => {
  await server?.close();
  await issuer?.close();
  rmSync(folder, { recursive: true });
});

const AUDIENCES = {
  storage: { audience: STORAGE, scope: 'files.read', required: true },
  registry: { audience: REGISTRY, scope: 'files.read', metadata: 'x-scaiatlas-token' },
};

const as = (person: string): DroverClient =>
  createClient({ url: server.url, token: logins.get(person) ?? '' });

const claims = '| cut -d. -f2 | tr _- /+ | base64 -d 2>/dev/null';
/** What a job says of its tokens: the text is masked, what it means is not. */
const LOOK = [
  'cd "$DROVER_TOKENS" && stat -c "%a %n" . *',
  `for one in *; do cat $one ${claims}; echo; done`,
  'echo "token: $(cat storage)"',
].join('; ');
/** Until its file is another one. */
const CHANGES = 'old=$(cat storage); while [ "$old" = "$(cat storage)" ]; do sleep 0.1; done';
const sh = (script: string) => ({ command: ['sh', '-c', script], retries: 0 });

async function submit(person: string, script: string): Promise<string> {
  const { id } = await as(person).submitJob(sh(script), `${person}-${submitted.size}`);
  submitted.set(id, person);
  return id;
}

async function ended(job: string) {
  const client = as(submitted.get(job) ?? '');
  const view = await until(`job ${job} ended`, async () => {
    const found = await client.waitJob(job, 1000);
    return found.endedAtMs !== null && found;
  });
  let output = '';
  for await (const { stream, text } of client.followLogs(job, {})) {
    if (stream === 'stdout') output += text ?? '';
  }
  return { ...view, output };
}

const events = async (job: string): Promise<EventView[]> =>
  (await as(submitted.get(job) ?? '').listEvents(job, { limit: 500 })).items;

async function post(token: string): Promise<{ status: number; text: string }> {
  const response = await fetch(`${server.url}/v1/jobs`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(sh('true')),
  });
  return { status: response.status, text: await response.text() };
}

test('a submission hears at once what is refused, what is away and who must log in', async () => {
  const ada = logins.get('ada') ?? '';
  issuer.refused.add(`ada ${STORAGE}`);
  const refused = await post(ada);
  expect(refused.status).toBe(403);
  expect(refused.text).toMatch(/No token for \\"storage\\".*invalid_target: ada may not use/);
  issuer.refused.clear();
  issuer.away = true;
  const away = await post(ada);
  expect([away.status, away.text]).toEqual([503, expect.stringContaining('answered 503')]);
  issuer.away = false;
  const key = await post(server.token);
  expect(key.status).toBe(403);
  expect(key.text).toContain(`Log in with the issuer ${issuer.issuer}`);
});

let waiting: Record<'ada' | 'bob' | 'carol' | 'dave' | 'eve', string>;

test('a controller that starts anew between submission and start knows for whom', async () => {
  issuer.refused.add(`bob ${REGISTRY}`);
  waiting = {
    ada: await submit(
      'ada',
      `${LOOK}; ${CHANGES}; ` +
        `echo renewed; cat storage | sha256sum; echo "again: $(cat storage)"`,
    ),
    bob: await submit('bob', LOOK),
    carol: await submit('carol', LOOK),
    dave: await submit('dave', LOOK),
    eve: await submit('eve', LOOK),
  };
  await server.kill();
  await server.start();
  // Between submission and start: carol is gone, and nobody vouches for dave.
  issuer.refused.add('carol');
  issuer.unvouched.add('dave');
  agent = server.agent('one');
  const { output, state } = await ended(waiting.ada);
  expect(state).toBe('SUCCEEDED');
  expect(output).toMatch(/^700 \.\n600 registry\n600 storage\n/);
  for (const [aud] of [[STORAGE], [REGISTRY]]) {
    expect(output).toMatch(new RegExp(`"sub":"ada".*"aud":"${aud}"`));
  }
  expect(output).toMatch(/^token: \*{100,}$/m);
  expect(output).toMatch(/^again: \*{100,}$/m);
  // A token that was given to it, and no half of one.
  const last = /renewed\n([0-9a-f]{64})/.exec(output)?.[1];
  const given = [...issuer.seen].map((one) => createHash('sha256').update(one).digest('hex'));
  expect(given).toContain(last);
});

test('each tenant has its own; what is not required and refused is an event', async () => {
  const { output, state } = await ended(waiting.bob);
  expect(state).toBe('SUCCEEDED');
  expect(output).toMatch(/^700 \.\n600 storage\n/);
  expect(output).toContain('"sub":"bob"');
  expect(output).not.toContain('ada');
  const told = (await events(waiting.bob)).filter(({ kind }) => kind.startsWith('tokens.'));
  expect(told.map(({ kind, data }) => [kind, data['audience'] ?? data['audiences']])).toEqual([
    ['tokens.refused', 'registry'],
    ['tokens.given', 'storage'],
  ]);
});

test('where nobody takes our word a refresh token does; refused both, it fails', async () => {
  const { output, state } = await ended(waiting.dave);
  expect([state, output]).toEqual(['SUCCEEDED', expect.stringContaining('"sub":"dave"')]);
  expect(issuer.asked.refresh).toBeGreaterThanOrEqual(2);
  const carol = await ended(waiting.carol);
  expect(carol.state).toBe('FAILED');
  expect(carol.reason).toMatch(/did not start: no token for "storage": invalid_.*; invalid_grant/);
});

test('away at the start is an interruption: tried again until it is back', async () => {
  await ended(waiting.eve);
  issuer.away = 'starts';
  const late = await submit('eve', 'true');
  const first = await until('a try that did not start', async () => {
    const { items } = await as('eve').listAttempts(late, { limit: 10 });
    return items.find(({ cause }) => cause === 'never-started');
  });
  expect(first.message).toMatch(
    /no token for "storage": the token server answered .*temporarily_unavailable/,
  );
  issuer.away = false;
  expect((await ended(late)).state).toBe('SUCCEEDED');
});

test('an agent that starts anew goes on renewing, each refresh token used once', async () => {
  const used = issuer.asked.refresh;
  const job = await submit('dave', `cd "$DROVER_TOKENS"; ${CHANGES}; ${CHANGES}; echo twice`);
  await until('it runs', async () => (await as('dave').getJob(job)).state === 'RUNNING');
  await agent.kill();
  agent.start();
  const { state, output } = await ended(job);
  expect([state, output]).toEqual(['SUCCEEDED', 'twice\n']);
  // Rotated at each use: a second use of the same one would have ended them all.
  expect(issuer.asked.refresh).toBeGreaterThanOrEqual(used + 6);
});

test('who is refused while a job runs has it stopped, as the policy says', async () => {
  const job = await submit('bob', 'echo up; sleep 60');
  await until('it runs', async () => (await as('bob').getJob(job)).state === 'RUNNING');
  issuer.refused.add('bob');
  const { state, reason } = await ended(job);
  expect([state, reason]).toEqual(['FAILED', expect.stringContaining('no token for "storage"')]);
});

test('no token is in the database, a log, an event, an argument or an environment', async () => {
  const go = path.join(server.root, 'go');
  const job = await submit(
    'ada',
    `cat "$DROVER_TOKENS"/*; env; while [ ! -e ${go} ]; do sleep 0.1; done`,
  );
  await until('it runs', async () => (await as('ada').getJob(job)).state === 'RUNNING');
  // In its own folder, and nowhere else: not even while it runs.
  const places = leftOf(server.root);
  expect(places).toContainEqual(expect.stringMatching(/\/tokens\/storage$/));
  for (const place of places) {
    expect(place).toMatch(/^agent-one\/attempts\/[^/]+\/(tokens\/\w+|token-masks\.json|stdout)$/);
  }
  const lives = processesOf([server.root]).filter(({ pid }) => {
    const texts = ['cmdline', 'environ'].map((what) => read(`/proc/${pid}/${what}`));
    expect(texts.flatMap(found)).toEqual([]);
    return texts.every(({ length }) => length > 0);
  });
  // At least the server, the agent and the task.
  expect(lives.length).toBeGreaterThanOrEqual(3);
  writeFileSync(go, '');
  await ended(job);
  const told = await Promise.all([...submitted.keys()].map((id) => events(id)));
  expect(found(Buffer.from(JSON.stringify(told)))).toEqual([]);
  expect(found(Buffer.from(server.process().output()))).toEqual([]);
  // Once the output is sent nothing of an attempt is left on its machine.
  await until('attempts are gone', () => leftOf(server.root).length === 0);
  expect(issuer.seen.size).toBeGreaterThan(20);
});

const found = (bytes: Buffer): string[] => [...issuer.seen].filter((one) => bytes.includes(one));

/** Empty where it has gone meanwhile. */
function read(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    const gone = ['ENOENT', 'ESRCH', 'EISDIR', 'ENXIO'];
    if (gone.includes((error as NodeJS.ErrnoException).code ?? '')) return Buffer.alloc(0);
    throw error;
  }
}

/** Files below that hold a token. */
function leftOf(below: string): string[] {
  const names = readdirSync(below, { recursive: true, encoding: 'utf8' });
  return names.filter((name) => {
    const file = path.join(below, name);
    const kind = statSync(file, { throwIfNoEntry: false });
    return kind?.isFile() && found(read(file)).length > 0;
  });
}
