/** How much memory the gateway needs for thousands of open streams, each a call of its own. */
import { performance } from 'node:perf_hooks';
import { sleep } from '../jobs/support/measure.ts';
import { start, treeUsage } from '../jobs/support/processes.ts';
import type { Row } from '../jobs/support/report.ts';
import { OPEN_FILES, type EdgeCluster } from './cluster.ts';
import { row } from './rows.ts';

const MOST_GIB = 1.5;
const GIB = 1024 ** 3;
/** Long enough for a heartbeat to each. */
const HELD_MS = 20_000;

export async function streams(cluster: EdgeCluster, count: number): Promise<Row[]> {
  const { client, port, token, gateway } = cluster;
  // No machine has so many processors: it waits, and its log is quiet.
  const { id } = await client.submitJob(
    { command: ['true'], resources: { cpuMillis: 1_000_000 }, startWithinMs: 3_600_000 },
    'followed',
  );
  const before = treeUsage(gateway.pid).residentBytes;
  const began = performance.now();
  const script = new URL('openStreams.ts', import.meta.url).pathname;
  const args = [script, String(port), `/v1/jobs/${id}/logs?follow=true`, String(count)];
  const limited = ['-c', `ulimit -n ${OPEN_FILES} && exec "$0" "$@"`, process.execPath, ...args];
  const holder = start('sh', limited);
  try {
    holder.say(token);
    await holder.line('open');
    const openedMs = performance.now() - began;
    let most = 0;
    const heldUntil = performance.now() + HELD_MS;
    while (performance.now() < heldUntil) {
      most = Math.max(most, treeUsage(gateway.pid).residentBytes);
      await sleep(500);
    }
    const cpu = treeUsage(gateway.pid);
    await sleep(5_000);
    const idleMs = treeUsage(gateway.pid).cpuMs - cpu.cpuMs;
    const note =
      `${(before / GIB).toFixed(2)} GiB before; opened in ${(openedMs / 1000).toFixed(1)} s; ` +
      `${(idleMs / 50).toFixed(0)} % of a core while idle`;
    return [row(`memory of the gateway with ${count} streams`, most / GIB, 'GiB', MOST_GIB, note)];
  } finally {
    await holder.stop();
  }
}
