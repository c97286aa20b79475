/**
 * A pool of SaladCloud from a job that waits to an empty group, with a real controller and agents
 * that run as the containers of the emulator.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock as clock } from '../../src/lib/clock.ts';
import { DROVER } from '../support/processes.ts';
import { createContainers, type Containers } from '../support/salad/containers.ts';
import { startSaladEmulator, type SaladEmulator } from '../support/salad/emulator.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { until } from '../support/wait.ts';

const TIMES = { prepareMs: 200, allocateMs: 100, downloadMs: 100, createMs: 50, stopMs: 100 };

let folder: string;
let containers: Containers;
let emulator: SaladEmulator;
let server: TestServer;

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'drover-salad-'));
  containers = createContainers(folder);
  const { run } = containers;
  emulator = await startSaladEmulator({ clock, times: TIMES, run });
  writeFileSync(path.join(folder, 'key'), emulator.apiKey, { mode: 0o600 });
  server = await startServer({ env: { DROVER_FLEET_POOLS: JSON.stringify({ salad: pool() }) } });
});
afterAll(async () => {
  await emulator.close();
  await server.close();
  rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
});

function pool() {
  const start = `exec ${DROVER} agent --join "$DROVER_URL" --data "$HOME/agent"`;
  return {
    ...{ max: 4, idleTimeoutMs: 1000, cooldownMs: 10, pollMs: 1000, pricePerInstanceHour: 1 },
    largestWorker: { cpus: 2, memoryBytes: 1_073_741_824 },
    salad: {
      ...{ organization: 'a-lab', project: 'gpus', url: emulator.url },
      ...{ apiKeyFile: path.join(folder, 'key'), image: 'debian:13', requestsPerMinute: 160 },
      agentCommand: `${start} --resources cpus=2,mem=1Gi`,
    },
  };
}

/** Waits for ever at first, and is done at once when it is tried again. */
const INTERRUPTED = {
  command: ['sh', '-c', 'echo "try $DROVER_ATTEMPT"; [ "$DROVER_ATTEMPT" != 1 ] || sleep 300'],
  resources: { cpuMillis: 1000 },
};

async function moved(what: string, move: () => void): Promise<void> {
  const { job } = await server.running(INTERRUPTED);
  move();
  expect(await server.ended(job, 60_000), what).toMatchObject({ state: 'SUCCEEDED' });
  const attempts = await server.attempts(job);
  expect(attempts.map(({ cause }) => cause)).toEqual(['lost', 'exited']);
  expect(await server.stdout(job)).toContain('try 2');
}

const replica = () => emulator.group().instances[0]!;

test('whoever waits is told what is wrong at SaladCloud', async () => {
  emulator.conduct.imageFailure = 'manifest unknown';
  const job = await server.submit({ command: ['true'], resources: { cpuMillis: 1000 } });
  await until('the reason is told', async () =>
    JSON.stringify(await server.client.why(job)).includes('manifest unknown'),
  );
  emulator.conduct.imageFailure = '';
  emulator.fail({ kind: 'html', times: 2, path: /instances$/ });
  expect(await server.ended(job)).toMatchObject({ state: 'SUCCEEDED' });
});

test('jobs are interrupted and tried again uncharged; then nothing is left', async () => {
  await moved('the same replica on another machine', () => {
    emulator.group().reallocate(replica(), true);
  });
  await moved('another replica', () => emulator.group().reallocate(replica(), false));

  // Nobody needs it any more.
  const stopped = await until('the group is stopped', () => {
    const group = emulator.group();
    return group.status() === 'stopped' && group.instances.length === 0 && group;
  });
  expect(stopped.replicas).toBe(0);
  expect(stopped.container.environment_variables?.['DROVER_URL']).toBe(server.url);
  expect(server.process().output()).not.toContain(emulator.apiKey);
  expect(server.process().output()).not.toContain('INFRA_FATAL');
});
