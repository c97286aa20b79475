/** Jobs in images, by a real podman: what they see, how they stop, and what is refused. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startJourney, until, type Journey } from '../support/journey.ts';
import { LOGIN, missingPodman, startPodman, type Podman } from '../support/podman.ts';

const missing = missingPodman();
if (missing !== undefined) console.warn(`jobs in containers are not tested: ${missing}`);
const runs = missing === undefined || process.env['CI'] === 'true';

const folder = mkdtempSync(path.join(tmpdir(), 'drover-e2e-containers-'));
let podman: Podman;
let journey: Journey;
const secrets = path.join(folder, 'secrets');

beforeAll(async () => {
  if (!runs) return;
  podman = await startPodman(path.join(folder, 'podman'));
  mkdirSync(path.join(secrets, 'default'), { recursive: true });
  const login = `${LOGIN.user}:${LOGIN.password}\n`;
  writeFileSync(path.join(secrets, 'default', 'REGISTRY'), login, { mode: 0o600 });
  writeFileSync(path.join(secrets, 'default', 'API_KEY'), 'line one\nline two', { mode: 0o600 });
  journey = await startJourney({
    args: ['--resources', 'cpus=4,mem=2Gi'],
    env: { ...podman.env, DROVER_SECRETS_FOLDER: secrets },
  });
});
afterAll(async () => {
  if (!runs) return;
  await journey.close();
  podman.close();
  rmSync(folder, { recursive: true, force: true });
});

const inBox = (...args: string[]): string[] => ['run', '--image', podman.image, ...args];
const containers = (): string[] =>
  podman
    .run('ps', '-a', '--format', '{{.Names}}')
    .split('\n')
    .filter((name) => name.startsWith('drover-'));

test.runIf(runs)('the worker says by what it starts images', async () => {
  const { items } = await journey.client.listWorkers({});
  expect(items[0]?.attributes).toMatchObject({ containers: 'podman' });
});

test.runIf(runs)('code, inputs, secrets, result and limits of /dev/shm inside', async () => {
  const code = path.join(folder, 'code');
  mkdirSync(code);
  writeFileSync(path.join(code, 'main.sh'), 'echo "from the code"\n');
  writeFileSync(path.join(folder, 'words.txt'), 'an input\n');
  const script =
    'sh main.sh; cat $DROVER_INPUTS/words; touch $DROVER_INPUTS/new 2>&1 | sed s/.*:// ; ' +
    'echo "$API_KEY"; echo "$PATH" | cat; df -k /dev/shm | tail -n 1; id -u; ' +
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
});
