/**
 * The edge, measured: `make bench-edge`. What the bridge adds to a call, what open streams cost,
 * whether a slow reader slows others, and what three times the load leaves. Prints a table and
 * writes bench/results/edge.json.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { Row } from '../jobs/support/report.ts';
import { bridge } from './bridge.ts';
import { startCluster, type EdgeCluster } from './cluster.ts';
import { overload } from './overload.ts';
import { slowReader } from './slowReader.ts';
import { streams } from './streams.ts';

const ROOT = new URL('../../', import.meta.url).pathname;

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '5' },
    streams: { type: 'string', default: '10000' },
    only: { type: 'string', multiple: true },
    dir: { type: 'string', default: join(ROOT, '.cache') },
    out: { type: 'string', default: join(ROOT, 'bench/results/edge.json') },
  },
});
const seconds = Number(values.seconds);

/** By name, for --only. */
const SCENARIOS: Record<string, (directory: string) => Promise<Row[]>> = {
  bridge: (directory) => inCluster(directory, false, (cluster) => bridge(cluster, seconds)),
  slow: (directory) => inCluster(directory, true, (cluster) => slowReader(cluster, seconds)),
  streams: (directory) =>
    inCluster(directory, false, (cluster) => streams(cluster, Number(values.streams))),
  overload: (directory) => overload({ seconds, directory }),
};

async function inCluster(
  directory: string,
  slow: boolean,
  measure: (cluster: EdgeCluster) => Promise<Row[]>,
): Promise<Row[]> {
  const cluster = await startCluster(directory, slow);
  try {
    return await measure(cluster);
  } finally {
    await cluster.close();
  }
}

mkdirSync(values.dir, { recursive: true });
const rows: Row[] = [];
for (const name of values.only ?? Object.keys(SCENARIOS)) {
  const directory = mkdtempSync(join(values.dir, 'bench-edge-'));
  try {
    rows.push(...((await SCENARIOS[name]?.(directory)) ?? []));
  } finally {
    rmSync(directory, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  }
}
console.table(
  rows.map(({ scenario, value, unit, target, met }) => ({ scenario, value, unit, target, met })),
);
for (const { scenario, note } of rows) console.log(`${scenario}: ${note}`);
mkdirSync(join(ROOT, 'bench/results'), { recursive: true });
writeFileSync(values.out, `${JSON.stringify(rows, null, 2)}\n`);
