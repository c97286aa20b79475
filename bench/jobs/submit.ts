/** Scenario 1: single durable submits, as many as go and at a steady pace. */
import { RIVALS, type RivalEntry } from './rivals/contract.ts';
import { BARE_SYSTEM, startBare } from './servers/bareClient.ts';
import { DROVER_SYSTEM, DroverServer } from './servers/drover.ts';
import { folder, measure, mustEqual, type Bench, type System } from './support/bench.ts';
import { closedLoop, paced, type RequestShape } from './support/loader.ts';
import { concurrently, percentile } from './support/measure.ts';
import type { MetricName } from './support/metrics.ts';
import { CONNECTIONS } from './support/workload.ts';

const PACE_PER_SECOND = 2000;
const OVER_HTTP: MetricName[] = ['submitRate', 'submitP99', 'pacedP50', 'pacedP99'];

export async function submit(bench: Bench): Promise<void> {
  await measure(bench, BARE_SYSTEM, OVER_HTTP, async () => {
    const server = await startBare(folder(bench, 'bare'));
    try {
      const sent = await overHttp(bench, BARE_SYSTEM, server.port, (run) => server.single(run));
      mustEqual('bare', server.jobs(), sent);
    } finally {
      await server.close();
    }
  });
  await measure(bench, DROVER_SYSTEM, OVER_HTTP, async () => {
    const server = await DroverServer.start(folder(bench, 'drover'));
    try {
      await server.drainLocalAgent();
      const sent = await overHttp(bench, DROVER_SYSTEM, server.port, (run) => server.single(run));
      mustEqual('drover', (await server.tasks()).pending, sent);
    } finally {
      await server.close();
    }
  });
  for (const entry of RIVALS) {
    await measure(bench, entry, ['submitRate', 'submitP99'], () => byClient(bench, entry));
  }
}

/** Returns how many jobs were accepted. */
async function overHttp(
  bench: Bench,
  system: System,
  port: number,
  request: (run: string) => RequestShape,
): Promise<number> {
  const { seconds, warmupSeconds } = bench;
  const common = { port, connections: CONNECTIONS, seconds, warmupSeconds };
  // The pace first: its latencies should not depend on how much the other left behind.
  const steady = await paced({ ...common, request: request('pace'), perSecond: PACE_PER_SECOND });
  const late = percentile(steady.latenessMs, 0.5).toFixed(2);
  const reached = Math.round(steady.perSecond);
  const note = `from the due time, of which the timer is ${late} at p50; reached ${reached}/s`;
  const pace = { ...system, note };
  bench.report.add('pacedP50', { ...pace, value: percentile(steady.latenciesMs, 0.5) });
  bench.report.add('pacedP99', { ...pace, value: percentile(steady.latenciesMs, 0.99) });
  const most = await closedLoop({ ...common, request: request('most') });
  const full = { ...system, note: 'over HTTP with token, key and JSON body' };
  bench.report.add('submitRate', { ...full, value: most.perSecond });
  bench.report.add('submitP99', { ...full, value: percentile(most.latenciesMs, 0.99) });
  return steady.accepted + most.accepted;
}

/** For scenario 7, which compares it between stores. */
export async function submitRate(server: DroverServer, bench: Bench, run: string): Promise<number> {
  const result = await closedLoop({
    port: server.port,
    connections: CONNECTIONS,
    seconds: bench.seconds,
    warmupSeconds: bench.warmupSeconds,
    request: server.single(run),
  });
  return result.perSecond;
}

async function byClient(bench: Bench, entry: RivalEntry): Promise<void> {
  const rival = await entry.open(folder(bench, entry.system));
  try {
    const add = (n: number): Promise<void> => rival.addOne(n);
    const warmup = await concurrently(CONNECTIONS, bench.warmupSeconds, add);
    const result = await concurrently(CONNECTIONS, bench.seconds, add);
    const accepted = warmup.latenciesMs.length + result.latenciesMs.length;
    mustEqual(entry.system, await rival.waiting(), accepted);
    const note = `${entry.addNote ?? ''}calls of its own client, without HTTP, token or key`;
    const { system, durability } = entry;
    bench.report.add('submitRate', { system, durability, value: result.perSecond, note });
    const p99 = percentile(result.latenciesMs, 0.99);
    bench.report.add('submitP99', { system, durability, value: p99, note });
  } finally {
    await rival.close();
  }
}
