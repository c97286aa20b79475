/**
 * Three times the load: what one tenant's flood leaves of the goodput, of the latency of what is
 * accepted, and of a second tenant's few calls. Server and load have processors of their own, so
 * that a load that costs more because it is larger takes nothing away from the server.
 *
 * `node bench/edge/overload.ts [--seconds 10] [--times 3] [--dir DIR]`
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { parseArgs } from 'node:util';
import { DROVER_SYSTEM, DroverServer } from '../jobs/servers/drover.ts';
import { mustEqual } from '../jobs/support/bench.ts';
import { closedLoop } from '../jobs/support/loader.ts';
import { percentile } from '../jobs/support/measure.ts';
import type { Row } from '../jobs/support/report.ts';
import { CONNECTIONS } from '../jobs/support/workload.ts';
import { OpenLoop, type OpenLoopResult } from './openLoop.ts';
import { halves, pin } from './pin.ts';

export interface OverloadOptions {
  /** Of each of the measurements. */
  seconds: number;
  /** How much more than the capacity is offered; 3 unless given. */
  times?: number;
  /** For the store: on a disk. */
  directory: string;
}

/** Independent clients of the flood, and of the tenant that behaves. */
const FLOOD_CONNECTIONS = 512;
const QUIET_CONNECTIONS = 64;
/** Of the capacity. */
const QUIET_SHARE = 0.05;
const WARMUP_SECONDS = 2;
/** Asked of the goodput. */
const GOODPUT = 0.8;

interface Loads {
  capacity: number;
  /** Of all loads, to be found in the store. */
  accepted: number;
  alone: OpenLoopResult;
  flood: OpenLoopResult;
  quiet: OpenLoopResult;
  /** What the load takes of its processors during the flood. */
  loadCores: number;
  seconds: number;
  times: number;
}

export async function overload(options: OverloadOptions): Promise<Row[]> {
  const { seconds, directory, times = 3 } = options;
  const processors = halves();
  if (processors) pin(processors.server);
  const server = await DroverServer.start(mkdtempSync(join(directory, 'overload-')));
  if (processors) pin(processors.load);
  try {
    await server.drainLocalAgent();
    const loads = await measure(server, seconds, times);
    const { alone, flood, quiet, capacity } = loads;
    mustEqual('drover', (await server.tasks()).pending, loads.accepted);
    process.stderr.write(`  capacity ${Math.round(capacity)}/s; alone ${show(alone, seconds)}\n`);
    process.stderr.write(`  flood ${show(flood, seconds)}\n  quiet ${show(quiet, seconds)}\n`);
    return rowsOf(loads, processors !== undefined);
  } finally {
    await server.close();
  }
}

async function measure(server: DroverServer, seconds: number, times: number): Promise<Loads> {
  const { port } = server;
  const other = await server.tokenOf('quiet');
  const common = { port, seconds, warmupSeconds: WARMUP_SECONDS };
  const most = await closedLoop({
    ...common,
    connections: CONNECTIONS,
    request: server.single('most'),
  });
  const capacity = most.perSecond;
  const behaved = (run: string): OpenLoop =>
    new OpenLoop({
      ...common,
      connections: QUIET_CONNECTIONS,
      perSecond: capacity * QUIET_SHARE,
      request: server.single(run, other),
    });
  const alone = await behaved('alone').run();
  const flooding = new OpenLoop({
    ...common,
    connections: FLOOD_CONNECTIONS,
    perSecond: capacity * times,
    request: server.single('flood'),
  });
  const before = process.cpuUsage();
  const began = performance.now();
  const [flood, quiet] = await Promise.all([flooding.run(), behaved('quiet').run()]);
  const { user, system } = process.cpuUsage(before);
  const loadCores = (user + system) / 1000 / (performance.now() - began);
  const accepted = most.accepted + alone.allAccepted + flood.allAccepted + quiet.allAccepted;
  return { capacity, accepted, alone, flood, quiet, loadCores, seconds, times };
}

function show(result: OpenLoopResult, seconds: number): string {
  const { offered, refused, failed, others, notSent, latenciesMs } = result;
  const rate = (count: number): string => `${Math.round(count / seconds)}/s`;
  const p = (fraction: number): string => percentile(latenciesMs, fraction).toFixed(1);
  return (
    `offered ${rate(offered)}, accepted ${rate(result.accepted)}, refused ${rate(refused)}, ` +
    `not sent ${rate(notSent)}, 5xx ${failed}, other ${others}, ` +
    `p50 ${p(0.5)} p99 ${p(0.99)} ms`
  );
}

function rowsOf(loads: Loads, isPinned: boolean): Row[] {
  const { capacity, alone, flood, quiet, loadCores, seconds, times } = loads;
  const goodput = (flood.accepted + quiet.accepted) / seconds / capacity;
  const p99 = (result: OpenLoopResult): number => percentile(result.latenciesMs, 0.99);
  const where = isPinned ? 'server and load on processors of their own' : 'all on one processor';
  const row = (title: string, unit: string, value: number, rest: Partial<Row> = {}): Row => ({
    scenario: `overload. ${title}`,
    ...DROVER_SYSTEM,
    value: Number(value.toPrecision(4)),
    unit,
    target: null,
    met: null,
    ratioToBare: null,
    note: '',
    ...rest,
  });
  const atLeast = (value: number, target: number) => ({ target, met: value >= target });
  const failed = alone.failed + flood.failed + quiet.failed;
  const kept = quiet.accepted / quiet.offered;
  const offered = `${times} times the capacity, ${FLOOD_CONNECTIONS} connections`;
  return [
    row('capacity: single submits, 64 at once', 'jobs/s', capacity, { note: where }),
    row(`goodput at ${offered}`, 'of capacity', goodput, {
      ...atLeast(goodput, GOODPUT),
      note: `${Math.round(flood.refused / seconds)}/s refused, ${flood.notSent} not sent`,
    }),
    row('answers 5xx', 'answers', failed, { target: 0, met: failed === 0 }),
    row('p99 of what was accepted of the flood', 'ms', p99(flood)),
    row('p99 of a refusal', 'ms', percentile(flood.refusalsMs, 0.99)),
    row('another tenant at 5 % of the capacity: accepted of its calls', 'of its calls', kept, {
      ...atLeast(kept, 0.99),
    }),
    row('its p99 during the flood', 'ms', p99(quiet), {
      note: `alone ${p99(alone).toFixed(1)} ms`,
    }),
    row('processor time of the load itself during the flood', 'cores', loadCores),
  ];
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      seconds: { type: 'string', default: '10' },
      times: { type: 'string', default: '3' },
      dir: { type: 'string', default: '/var/tmp' },
    },
  });
  mkdirSync(values.dir, { recursive: true });
  const directory = mkdtempSync(join(values.dir, 'drover-bench-'));
  process.on('exit', () => rmSync(directory, { recursive: true, force: true }));
  const rows = await overload({
    seconds: Number(values.seconds),
    times: Number(values.times),
    directory,
  });
  for (const { scenario, value, unit, target, note } of rows) {
    const asked = target === null ? '' : ` (asked: ${target})`;
    process.stdout.write(`${scenario}: ${value} ${unit}${asked} ${note}\n`);
  }
  if (rows.some((row) => row.met === false)) process.exitCode = 1;
}
