/**
 * Jobs in images, by a real Apptainer: `make check-apptainer`, which gets one first. Its images are
 * pulled from a registry that asks for a password.
 */
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { detectContainers } from '../../src/agent/environments/containers/host.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { startJourney, until, type Journey } from '../support/journey.ts';
import { LOGIN, startPodman, type Podman } from '../support/podman.ts';

/** The folder it is in. */
const APPTAINER = process.env['APPTAINER'];
const folder = mkdtempSync(path.join(tmpdir(), 'drover-e2e-apptainer-'));
let podman: Podman;
let journey: Journey;
let image: string;

beforeAll(async () => {
  if (!APPTAINER) return;
  podman = await startPodman(path.join(folder, 'podman'));
  image = `${podman.registry}/box:1`;
  const secrets = path.join(folder, 'secrets');
  mkdirSync(path.join(secrets, 'default'), { recursive: true });
  const login = `${LOGIN.user}:${LOGIN.password}\n`;
  writeFileSync(path.join(secrets, 'default', 'REGISTRY'), login, { mode: 0o600 });
  writeFileSync(path.join(secrets, 'default', 'API_KEY'), 'line one\nline two', { mode: 0o600 });
  journey = await startJourney({
    args: ['--resources', 'cpus=4,mem=2Gi'],
    env: {
      PATH: `${path.resolve(APPTAINER)}:${process.env['PATH']}`,
      DROVER_SECRETS_FOLDER: secrets,
      DROVER_AGENT_CONTAINER_RUNTIME: 'apptainer',
      APPTAINER_CACHEDIR: path.join(folder, 'cache'),
      APPTAINER_NOHTTPS: '1',
    },
  });
});
afterAll(async () => {
  if (APPTAINER) await journey.close();
  if (APPTAINER) podman.close();
  rmSync(folder, { recursive: true, force: true });
});

const inBox = (...args: string[]): string[] => [
  ...['run', '--image', image, '--registry-secret', 'REGISTRY', ...args],
];

test('where there is none, the agent says so', async () => {
  const found = await detectContainers('apptainer', { PATH: folder }, systemClock);
  expect(found).toEqual({ host: null, problems: ['there is no apptainer on the PATH'] });
});

if (APPTAINER) {
  test('code, inputs, secrets and result inside; the image is fetched once', seesItsThings);
  test('a stop reaches the command; exec and ps land inside', stops);
  test('an image that is refused or not there is named', refuses);
}

async function seesItsThings(): Promise<void> {
  mkdirSync(path.join(folder, 'code'));
  writeFileSync(path.join(folder, 'code', 'main.sh'), 'echo "from the code"\n');
  writeFileSync(path.join(folder, 'words.txt'), 'an input\n');
  const script =
    'sh main.sh; cat $DROVER_INPUTS/words; touch $DROVER_INPUTS/new || echo "not for writing"; ' +
    'test "$API_KEY" = "$(printf "line one\\nline two")" && echo same; ls -d /app; ' +
    `ls ${folder} || echo "nothing else of the machine"; ` +
    'echo "$PATH"; echo done >$DROVER_RESULT_DIR/answer; exit 7';
  const flags = ['--workdir', './code', '--input', 'words=words.txt', '--secret', 'API_KEY'];
  const command = [...inBox(...flags, '--env', 'PATH=/bin:/app', '--', 'sh', '-c', script)];
  const first = await journey.start(command, { cwd: folder }).ended;
  expect([first.code, first.stdout]).toEqual([
    7,
    'from the code\nan input\nnot for writing\nsame\n/app\nnothing else of the machine\n' +
      '/bin:/app\n',
  ]);
  const environments = path.join(journey.dir, 'agent', 'environments');
  const made = readdirSync(environments);
  expect(made).toHaveLength(1);
  const again = await journey.drover(...inBox('--', 'sh', '-c', 'echo again'));
  expect([again.code, again.stdout]).toEqual([0, 'again\n']);
  expect(readdirSync(environments)).toEqual(made);
}

async function stops(): Promise<void> {
  const heeds = 'trap "echo stopping; exit 0" TERM; echo up; sleep 100 & wait';
  const deaf = 'trap "" TERM; echo up; while :; do sleep 1; done';
  const environment = { image, registrySecret: 'REGISTRY' };
  const jobs: string[] = [];
  for (const script of [heeds, deaf]) {
    jobs.push(await journey.submit({ command: ['sh', '-c', script], environment, graceMs: 2500 }));
  }
  for (const job of jobs) {
    await until('it is up', async () => (await journey.drover('logs', job)).stdout.includes('up'));
  }
  const [attempt] = await journey.attempts(jobs[0]!);
  expect(attempt?.facts).toMatchObject({
    image,
    'image.digest': expect.stringMatching(/^sha256:/),
    'image.runtime': expect.stringMatching(/^apptainer .*1\.\d/),
  });
  const inside = await journey.drover('exec', jobs[0]!, '--', 'ls', '-d', '/app');
  expect(inside.stdout).toBe('/app\n');
  expect((await journey.drover('ps', jobs[0]!)).stdout).toContain('sleep 100');
  await Promise.all(jobs.map((job) => journey.drover('cancel', job)));
  for (const job of jobs) expect((await journey.ended(job)).state).toBe('CANCELLED');
  expect((await journey.drover('logs', jobs[0]!)).stdout).toContain('stopping');
}

async function refuses(): Promise<void> {
  const refused = await journey.drover('run', '--image', `${image}0`, '--', 'true');
  expect(refused.code).not.toBe(0);
  expect(refused.stderr).toContain('--registry-secret');
  const absent = `${podman.registry}/nope:2`;
  const flags = ['--image', absent, '--registry-secret', 'REGISTRY'];
  const gone = await journey.drover('run', ...flags, '--', 'true');
  expect(gone.stderr).toContain(`there is no image ${absent}`);
  const command = await journey.drover(...inBox('--', 'no-such-program'));
  expect([command.code === 0, command.stderr]).toEqual([false, expect.stringMatching(/not found/)]);
  expect(journey.log()).not.toContain(LOGIN.password);
}
