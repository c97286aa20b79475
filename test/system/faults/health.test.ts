/** A machine that becomes unfit: no new work; what failed by its fault says so; it comes back. */
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { gate, shell } from '../../support/jobs.ts';
import { startServer, type TestServer } from '../../support/server.ts';
import { until } from '../../support/wait.ts';

const PERIOD_MS = 1000;
let server: TestServer;
let tools: string;

/** What stands for the machine: the answer of its nvidia-smi, and of a check of the site's own. */
const gpus = (...lines: string[]): void =>
  writeFileSync(path.join(tools, 'gpus'), lines.map((line) => `${line}\n`).join(''));
const site = (text: string): void => writeFileSync(path.join(tools, 'site'), text);
const SOUND = [0, 1].map(
  (n) =>
    `${n}, GPU-f75e2061-802a-b334-5982-704803ba3fd${n}, 00000000:3${n}:00.0, 34, 0, [N/A], ` +
    'No, No, Not Active, Not Active, Not Active, None',
);

beforeAll(async () => {
  server = await startServer();
  tools = path.join(server.root, 'tools');
  mkdirSync(tools);
  gpus(...SOUND);
  site('');
  const program = path.join(tools, 'nvidia-smi');
  writeFileSync(
    program,
    `#!/bin/sh\ncase "$1" in\n` +
      `*memory.total*) printf '0, NVIDIA H200, 143771\\n1, NVIDIA H200, 143771\\n';;\n` +
      `*uuid*) cat '${path.join(tools, 'gpus')}';;\nesac\n`,
  );
  chmodSync(program, 0o755);
  server.agent('a', {
    env: {
      PATH: `${tools}:${process.env['PATH'] ?? ''}`,
      DROVER_AGENT_HEALTH: JSON.stringify({
        periodMs: PERIOD_MS,
        command: `cat '${path.join(tools, 'site')}'`,
      }),
    },
  });
  await server.online(1);
});
afterAll(() => server.close());

const gpuJob = (script: string) =>
  shell(script, { resources: { device: { kind: 'gpu', count: 2 } } });

/** It says why, and nothing starts on it; then, repaired, what waits there runs. */
async function expectNoWorkUntil(repair: () => void, why: RegExp): Promise<void> {
  await until('it drains', async () => {
    const { problems } = (await server.client.listWorkers({})).items[0]!;
    return problems.some((one) => one.severity === 'drain' && why.test(one.message));
  });
  const job = await server.submit(shell('echo here'));
  await delay(PERIOD_MS);
  expect(await server.attempts(job)).toEqual([]);
  repair();
  expect(await server.ended(job)).toMatchObject({ state: 'SUCCEEDED' });
}

test("a site's own check drains it, and lets work back by itself", async () => {
  const job = await server.submit(gpuJob('nvidia-smi --query-gpu=uuid | wc -l'));
  expect(await server.ended(job)).toMatchObject({ state: 'SUCCEEDED' });
  site('DRAIN /scratch is not mounted\n');
  await expectNoWorkUntil(() => site('WARN a fan is slow\n'), /^\/scratch is not mounted$/);
  expect((await server.client.listWorkers({})).items[0]!.problems).toEqual([
    { check: 'command', severity: 'warn', message: 'a fan is slow' },
  ]);
});

test('an attempt that fails as its device goes blames the machine; others wait', async () => {
  const door = gate(server, 'gpu');
  const { job } = await server.running(gpuJob(`${door.wait}; exit 7`));
  gpus(SOUND[0]!);
  door.open();
  const ended = await until('it ended', async () =>
    (await server.attempts(job)).find(({ endedAtMs }) => endedAtMs !== null),
  );
  expect(ended).toMatchObject({ cause: 'exited', exitCode: 7 });
  expect(ended.message).toMatch(/its machine has failed: GPU 1 is missing \(GPU-f75e2061/);
  await expectNoWorkUntil(() => gpus(...SOUND), /^GPU 1 is missing/);
});
