/** Scenario 2: one call that submits 1,000 jobs, then the next. */
import { RIVALS } from './rivals/contract.ts';
import { BARE_SYSTEM, startBare } from './servers/bareClient.ts';
import { DROVER_SYSTEM, DroverServer } from './servers/drover.ts';
import { folder, measure, mustEqual, type Bench, type System } from './support/bench.ts';
import { closedLoop, type RequestShape } from './support/loader.ts';
import { concurrently } from './support/measure.ts';
import { BATCH_SIZE } from './support/workload.ts';

export async function batch(bench: Bench): Promise<void> {
  await measure(bench, BARE_SYSTEM, ['batchRate'], async () => {
    const server = await startBare(folder(bench, 'bare'));
    try {
      const sent = await overHttp(bench, BARE_SYSTEM, server.port, server.batch);
      mustEqual('bare', server.jobs(), sent);
    } finally {
      await server.close();
    }
  });
  await measure(bench, DROVER_SYSTEM, ['sweepRate'], async () => {
    const server = await DroverServer.start(folder(bench, 'drover'));
    try {
      await server.drainLocalAgent();
      await overHttp(bench, DROVER_SYSTEM, server.port, server.sweep('sweep'), 'sweepRate');
    } finally {
      await server.close();
    }
  });
  await measure(bench, DROVER_SYSTEM, ['batchRate'], async () => {
    const server = await DroverServer.start(folder(bench, 'drover'));
    try {
      await server.drainLocalAgent();
      const sent = await overHttp(bench, DROVER_SYSTEM, server.port, server.batch('batch'));
      mustEqual('drover', (await server.tasks()).pending, sent);
    } finally {
      await server.close();
    }
  });
  for (const entry of RIVALS) {
    await measure(bench, entry, ['batchRate'], async () => {
      const rival = await entry.open(folder(bench, entry.system));
      try {
        const add = (): Promise<void> => rival.addMany(BATCH_SIZE);
        const warmup = await concurrently(1, bench.warmupSeconds, add);
        const { perSecond, latenciesMs } = await concurrently(1, bench.seconds, add);
        const calls = warmup.latenciesMs.length + latenciesMs.length;
        mustEqual(entry.system, await rival.waiting(), calls * BATCH_SIZE);
        const { system, durability } = entry;
        const note = 'its own client, without HTTP';
        bench.report.add('batchRate', { system, durability, value: perSecond * BATCH_SIZE, note });
      } finally {
        await rival.close();
      }
    });
  }
}

/** Returns how many jobs were accepted. */
async function overHttp(
  bench: Bench,
  system: System,
  port: number,
  request: RequestShape,
  metric: 'batchRate' | 'sweepRate' = 'batchRate',
): Promise<number> {
  const { seconds, warmupSeconds } = bench;
  const result = await closedLoop({ port, request, connections: 1, seconds, warmupSeconds });
  const value = result.perSecond * BATCH_SIZE;
  bench.report.add(metric, { ...system, value, note: 'over HTTP, one connection' });
  return result.accepted * BATCH_SIZE;
}
