/**
 * Scenario 0: what the load generator and the disk can do, so that no server is blamed for them.
 */
import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { startScript } from './support/processes.ts';
import { COUNTER, closedLoop } from './support/loader.ts';
import { CONNECTIONS, PAYLOAD } from './support/workload.ts';
import { percentile } from './support/measure.ts';
import { folder, type Bench } from './support/bench.ts';

const DISK_SAMPLES = 500;

interface Autocannon {
  (options: object): Promise<{ requests: { average: number; total: number }; errors: number }>;
}

export async function calibrate(bench: Bench): Promise<void> {
  calibrateDisk(bench);
  const child = startScript(new URL('servers/ok.ts', import.meta.url), []);
  const figure = { durability: 'none', note: 'POST to plain node:http, no work behind it' };
  const add = async (system: string, load: () => Promise<{ perSecond: number; count: number }>) => {
    const before = process.cpuUsage();
    const { perSecond, count } = await load();
    const { user, system: kernel } = process.cpuUsage(before);
    bench.report.add('loaderCeiling', { system, value: perSecond, ...figure });
    bench.report.add('loaderCost', { system, value: (user + kernel) / count, ...figure });
  };
  try {
    const port = Number((await child.line('port ')).slice('port '.length));
    const headers = { authorization: 'Bearer token', 'idempotency-key': `bench-${COUNTER}` };
    const body = JSON.stringify(PAYLOAD);
    const request = { method: 'POST', path: '/', headers, body };
    const { seconds, warmupSeconds } = bench;
    await add('loader', async () => {
      const options = { port, request, connections: CONNECTIONS, seconds, warmupSeconds };
      const { perSecond, accepted } = await closedLoop(options);
      return { perSecond, count: accepted };
    });
    await add('autocannon', () => autocannon(port, body, seconds));
  } finally {
    await child.stop();
  }
}

/** What every durable figure rests on: how long this disk takes to promise. */
function calibrateDisk(bench: Bench): void {
  const file = openSync(join(folder(bench, 'disk'), 'appended'), 'w');
  const block = Buffer.alloc(4096, 1);
  const samples: number[] = [];
  for (let i = 0; i < DISK_SAMPLES; i++) {
    writeSync(file, block);
    const began = performance.now();
    fsyncSync(file);
    samples.push(performance.now() - began);
  }
  closeSync(file);
  const figure = { system: 'disk', durability: 'fsync' };
  bench.report.add('diskSync', { ...figure, value: percentile(samples, 0.5) });
  bench.report.add('diskSyncP99', { ...figure, value: percentile(samples, 0.99) });
}

/**
 * A well-known generator on the same server, to see that ours counts right and does not cost
 * more.
 */
async function autocannon(
  port: number,
  body: string,
  seconds: number,
): Promise<{ perSecond: number; count: number }> {
  // Computed, as it lives in bench/node_modules only.
  const name: string = 'autocannon';
  const { default: run } = (await import(name)) as { default: Autocannon };
  const result = await run({
    url: `http://127.0.0.1:${port}/`,
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer token' },
    body,
    connections: CONNECTIONS,
    duration: Math.max(1, Math.round(seconds)),
  });
  if (result.errors > 0) throw new Error(`autocannon had ${result.errors} errors`);
  return { perSecond: result.requests.average, count: result.requests.total };
}
