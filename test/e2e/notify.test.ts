/** The example receiver is told of jobs by a real server, and what it says is in the receipt. */
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { ROOT, startJourney, type, type Journey, type Typed } from '../support/journey.ts';

const KEY = 'a-signing-key-nobody-else-knows';
const folder = mkdtempSync(path.join(tmpdir(), 'drover-e2e-notify-'));
let journey: Journey;
let receiver: Typed;
let port: string;
beforeAll(async () => {
  writeFileSync(path.join(folder, 'key'), `${KEY}\n`, { mode: 0o600 });
  const script = path.join(ROOT, 'examples/notify/receiver.py');
  receiver = type('python3', [script, path.join(folder, 'key')]);
  await vi.waitUntil(() => receiver.stdout().includes('listening on'), { timeout: 20_000 });
  port = /listening on (\d+)/.exec(receiver.stdout())![1]!;
  const hook = { kind: 'webhook', secretFile: path.join(folder, 'key') };
  const channels = {
    ops: { ...hook, url: `http://127.0.0.1:${port}/`, allowPrivate: true },
    inside: { ...hook, url: `http://127.0.0.1:${port}/` },
  };
  journey = await startJourney({
    args: ['--resources', 'cpus=2,mem=1Gi'],
    env: { DROVER_NOTIFY_CHANNELS: JSON.stringify(channels) },
  });
});
afterAll(async () => {
  receiver.child.kill();
  await journey.close();
  rmSync(folder, { recursive: true });
});

const heard = (): string[] => receiver.stdout().split('\n').slice(1);

test('a job file that names a channel is told of, from start to receipt', async () => {
  const file = path.join(ROOT, 'examples/notify.yaml');
  const { stdout, code } = await journey.drover('submit', '-f', file);
  expect(code).toBe(0);
  const id = /\bj\w+/.exec(stdout)![0];
  await expect
    .poll(heard, { timeout: 30_000 })
    .toContain(`failed: told (${id}) failed with exit code 3`);
  expect(heard()).toContain(`started: told (${id}) has started`);
  expect(heard()).toContain(`  Next: read the end of its log: drover logs ${id} --tail 50.`);
  const receipt = await journey.drover('receipt', id);
  expect(receipt.stdout).toMatch(
    new RegExp(`^${id} told FAILED: exit code 3\n  ran on  .+, \\d+s\n  time    `),
  );
  expect(receipt.stdout).toContain(`drover logs ${id} --tail 50`);
});

test('by flag, only of what was asked for', async () => {
  const { code } = await journey.drover(
    'run',
    '--name',
    'quick',
    '--notify',
    'ops:done',
    '--',
    'true',
  );
  expect(code).toBe(0);
  await expect
    .poll(() => heard().join('\n'), { timeout: 30_000 })
    .toMatch(/done: quick .* is done/);
  expect(heard().filter((line) => line.includes('quick') && !line.startsWith(' '))).toHaveLength(1);
});

test('bad input is named before anything runs', async () => {
  const unknown = await journey.drover('run', '--notify', 'opps', '--', 'true');
  expect(unknown.code).not.toBe(0);
  expect(unknown.stderr).toContain('there is no notification channel "opps"');
  expect(unknown.stderr).toContain('did you mean "ops"?');
  const word = await journey.drover('run', '--notify', 'ops:finished', '--', 'true');
  expect(word.stderr).toContain('finished');
  expect(word.code).not.toBe(0);
});

test('this machine is not reached without leave; the key is in no file of the server', async () => {
  await journey.drover('run', '--name', 'sly', '--notify', 'inside:done', '--', 'true');
  await expect
    .poll(() => journey.log(), { timeout: 30_000 })
    .toContain('is on a private network or this machine');
  expect(receiver.stdout()).not.toContain('sly');
  const found = readdirSync(journey.dir, { recursive: true, encoding: 'utf8' }).filter((name) => {
    const file = path.join(journey.dir, name);
    return statSync(file, { throwIfNoEntry: false })?.isFile() && readFileSync(file).includes(KEY);
  });
  expect(found).toEqual([]);
  expect(journey.log()).not.toContain(KEY);
});

test('a request that is not signed is refused by the example', async () => {
  const { status } = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body: '{}' });
  expect(status).toBe(401);
});
