/** Secrets reach a job and nothing else; a job submits jobs with a token that ends with it. */
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { DROVER, startJourney, type Journey } from '../support/journey.ts';

const SECRET = 'correct-horse-battery-staple';
const folder = mkdtempSync(path.join(tmpdir(), 'drover-e2e-secrets-'));
let journey: Journey;
beforeAll(async () => {
  mkdirSync(path.join(folder, 'default'));
  writeFileSync(path.join(folder, 'default', 'API_KEY'), `${SECRET}\n`, { mode: 0o600 });
  journey = await startJourney({
    args: ['--resources', 'cpus=4,mem=1Gi'],
    env: { DROVER_LOG_LEVEL: 'debug', DROVER_SECRETS_FOLDER: folder },
  });
});
afterAll(async () => {
  await journey.close();
  rmSync(folder, { recursive: true });
});

test('as a variable and as a file; hidden in the log, also where printed in halves', async () => {
  const script =
    'test "$API_KEY" = "$(cat "$DROVER_SECRETS/key")" && stat -c %a "$DROVER_SECRETS/key" && ' +
    'printf "it is correct-horse-"; sleep 0.4; echo "battery-staple!"';
  const flags = ['--secret', 'API_KEY', '--secret', 'API_KEY=file:key'];
  const { code, stdout } = await journey.drover('run', ...flags, '--', 'sh', '-c', script);
  expect([code, stdout]).toEqual([0, `600\nit is ${'*'.repeat(SECRET.length)}!\n`]);
});

test('a secret that nobody knows fails the job, and says which', async () => {
  const { code, stderr } = await journey.drover('run', '--secret', 'NOPE', '--', 'true');
  expect(code).not.toBe(0);
  expect(stderr).toContain('there is no secret "NOPE"');
});

test('it is in no file of the server, in no log, and who got it is on record', async () => {
  const audit = await journey.drover('audit');
  expect(audit.stdout).toMatch(/secrets\.given .*names=API_KEY/);
  const found: string[] = [];
  for (const name of readdirSync(journey.dir, { recursive: true, encoding: 'utf8' })) {
    const file = path.join(journey.dir, name);
    // The agent's own folder has it while the attempt's directory is there: for the task alone.
    if (name.startsWith('agent/attempts') || !statSync(file).isFile()) continue;
    if (readFileSync(file).includes(SECRET)) found.push(name);
  }
  expect(found).toEqual([]);
  expect(journey.log()).not.toContain(SECRET);
});

test('a job submits jobs that end with it, and sees no others', async () => {
  await journey.drover('run', '--name', 'stranger', '--', 'true');
  const submit = `${DROVER} run -d --name part --if-named keep -- sleep 100`;
  const script = `${submit}; ${submit}; ${DROVER} jobs; ${DROVER} workers; true`;
  const run = await journey.drover('run', '--name', 'p', '--may-submit', '--', 'sh', '-c', script);
  expect(run.code).toBe(0);
  const [first, second] = run.stdout.split('\n');
  expect(second).toBe(first);
  expect(run.stdout).not.toContain('stranger');
  expect(run.stderr).toContain('scope fleet:read');
  const ended = await journey.drover('wait', first!.trim());
  expect(ended.code).not.toBe(0);
  const job = await journey.drover('job', first!.trim());
  expect(job.stdout).toContain('the end of its parent');
});
