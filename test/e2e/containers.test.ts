/** Jobs in images, by a real podman: what they see, how they stop, and what is refused. */
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { keyOf } from '../../src/agent/environments/store.ts';
import { startJourney, until, type Journey } from '../support/journey.ts';
import { LOGIN, missingPodman, startPodman, type Podman } from '../support/podman.ts';
import { exchangeEnvironment, startExchangeServer } from '../system/exchangeServer.ts';
import type { ExchangeServer } from '../system/exchangeServer.ts';

const missing = missingPodman();
if (missing !== undefined) console.warn(`jobs in containers are not tested: ${missing}`);
const runs = missing === undefined || process.env['CI'] === 'true';

const folder = mkdtempSync(path.join(tmpdir(), 'drover-e2e-containers-'));
let podman: Podman;
let journey: Journey;
let issuer: ExchangeServer;
const secrets = path.join(folder, 'secrets');

beforeAll(async () => {
  if (!runs) return;
  podman = await startPodman(path.join(folder, 'podman'));
  mkdirSync(path.join(secrets, 'default'), { recursive: true });
  const login = `${LOGIN.user}:${LOGIN.password}\n`;
  writeFileSync(path.join(secrets, 'default', 'REGISTRY'), login, { mode: 0o600 });
  writeFileSync(path.join(secrets, 'default', 'API_KEY'), 'line one\nline two', { mode: 0o600 });
  issuer = await startExchangeServer({ ada: 'default' });
  issuer.tokenSeconds = 3;
  const storage = { audience: 'https://drive', scope: 'files.read' };
  const tokens = exchangeEnvironment(issuer, folder, { storage });
  const home = mkdtempSync(path.join(tmpdir(), 'drover-journey-'));
  const agent = keyOf([path.join(home, '.drover', 'agent')]).slice(0, 16);
  podman.run(
    ...['create', '--name', 'drover-stray', '--label', `drover.agent=${agent}`],
    ...[podman.image, 'true'],
  );
  journey = await startJourney({
    home,
    args: ['--resources', 'cpus=4,mem=2Gi'],
    env: { ...podman.env, DROVER_SECRETS_FOLDER: secrets, ...tokens },
  });
});
afterAll(async () => {
  if (!runs) return;
  await journey.close();
  await issuer.close();
  podman.close();
  rmSync(folder, { recursive: true, force: true });
});

const inBox = (...args: string[]): string[] => ['run', '--image', podman.image, ...args];
const containers = (): string[] =>
  podman
    .run('ps', '-a', '--format', '{{.Names}}')
    .split('\n')
    .filter((name) => name.startsWith('drover-'));

test.runIf(runs)('a container that an earlier agent left is gone', async () => {
  await until('the stray one is gone', () => containers().length === 0);
});

test.runIf(runs)('tokens of other services inside, and new ones while it runs', async () => {
  const DROVER_TOKEN = await issuer.login('ada');
  const script =
    'cd $DROVER_TOKENS; old=$(cat storage); ' +
    'while [ "$old" = "$(cat storage)" ]; do sleep 0.1; done; ls; ' +
    'touch x || echo "not for writing"';
  const env = { DROVER_TOKEN };
  const run = await journey.start(inBox('--', 'sh', '-c', script), { env }).ended;
  expect([run.code, run.stdout]).toEqual([0, 'storage\nnot for writing\n']);
});

test.runIf(runs)('code, inputs, secrets, result and limits of /dev/shm inside', async () => {
  const code = path.join(folder, 'code');
  mkdirSync(code);
  writeFileSync(path.join(code, 'main.sh'), 'echo "from the code"\n');
  writeFileSync(path.join(folder, 'words.txt'), 'an input\n');
  const script =
    'sh main.sh; cat $DROVER_INPUTS/words; touch $DROVER_INPUTS/new 2>&1 | sed s/.*:// ; ' +
    'test "$API_KEY" = "$(printf "line one\\nline two")" && echo same; ' +
    'echo "$PATH" | cat; df -k /dev/shm | tail -n 1; id -u; ' +
    'echo done >$DROVER_RESULT_DIR/answer; ls /proc/1/root/app; exit 7';
  const {
    code: exit,
    stdout,
    stderr,
  } = await journey.start(
    [
      ...inBox('--workdir', './code', '--input', 'words=words.txt', '--secret', 'API_KEY'),
      ...['--shm', '8M', '--env', 'PATH=/bin:/app', '--', 'sh', '-c', script],
    ],
    { cwd: folder },
  ).ended;
  expect([exit, stderr]).toEqual([7, expect.any(String)]);
  expect(stdout).toContain('from the code\nan input\n');
  expect(stdout).toContain('/bin:/app');
  expect(stdout).toMatch(/shm\s+8192\b/);
  expect(stdout).toContain('same\n');
  expect(containers()).toEqual([]);
});

test.runIf(runs)('a stop reaches the command; one that does not heed it is killed', async () => {
  const loss = `echo '{"atMs":${Date.now()},"loss":0.5}' >>$DROVER_METRICS_FILE; `;
  const heeds = `${loss}trap "echo stopping; exit 0" TERM; echo up; sleep 100 & wait`;
  const deaf = 'trap "" TERM; echo up; while :; do sleep 1; done';
  const image = { environment: { image: podman.image }, graceMs: 2500 };
  const jobs = [
    await journey.submit({ command: ['sh', '-c', heeds], ...image }),
    await journey.submit({ command: ['sh', '-c', deaf], ...image }),
  ];
  for (const job of jobs) {
    await until('it is up', async () => (await journey.drover('logs', job)).stdout.includes('up'));
  }
  const inside = await journey.drover('exec', jobs[0]!, '--', 'sh', '-c', 'ls / ; echo $TERM');
  expect(inside.stdout).toContain('app\nbin\n');
  const processes = await journey.drover('ps', jobs[0]!);
  expect(processes.stdout).toContain('sleep 100');
  await until('its own numbers are there', async () =>
    (await journey.drover('metrics', jobs[0]!)).stdout.includes('loss'),
  );
  expect(containers()).toHaveLength(2);
  const facts = (await journey.attempts(jobs[0]!))[0]?.facts;
  expect(facts).toMatchObject({
    image: podman.image,
    'image.digest': expect.stringMatching(/^sha256:/),
    'image.runtime': expect.stringMatching(/^podman /),
  });
  await Promise.all(jobs.map((job) => journey.drover('cancel', job)));
  for (const job of jobs) expect((await journey.ended(job)).state).toBe('CANCELLED');
  expect((await journey.drover('logs', jobs[0]!)).stdout).toContain('stopping');
  expect(containers()).toEqual([]);
});

test.runIf(runs)('a private image comes with its secret, and not without', async () => {
  const image = `${podman.registry}/box:1`;
  const flags = ['run', '--image', image, '--registry-secret', 'REGISTRY'];
  const refused = await journey.drover('run', '--image', image, '--', 'true');
  expect(refused.code).not.toBe(0);
  expect(refused.stderr).toContain('--registry-secret');
  const { code, stdout } = await journey.drover(...flags, '--', 'sh', '-c', 'echo pulled');
  expect([code, stdout]).toEqual([0, 'pulled\n']);
  const absent = await journey.drover(
    ...['run', '--image', `${podman.registry}/nope:2`, '--registry-secret', 'REGISTRY'],
    ...['--', 'true'],
  );
  expect(absent.stderr).toContain(`there is no image ${podman.registry}/nope:2`);
  for (const secret of [LOGIN.password, Buffer.from(LOGIN.password).toString('base64')]) {
    expect(journey.log()).not.toContain(secret);
  }
  expect(existsSync(path.join(journey.dir, 'agent/stages'))).toBe(true);
});

test.runIf(runs)('what cannot be is said before anything starts', async () => {
  const both = await journey.drover(...inBox('--lock', 'auto', '--', 'true'));
  expect(both.stderr).toContain('lock');
  const odd = await journey.drover('run', '--image=-v /:/host', '--', 'true');
  expect(odd.stderr).toContain('is not the name of an image');
  const none = await journey.drover('run', '--image', 'localhost/nope', '--', 'true');
  expect(none.stderr).toContain('there is no image localhost/nope on this machine');
  const command = await journey.drover(...inBox('--', 'no-such-program'));
  expect([command.code, command.stderr]).toEqual([1, expect.stringMatching(/No such file/)]);
});
