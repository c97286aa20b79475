/** Scenario 6: log bytes of 100 tasks, read back and compared, and how soon a line is seen. */
import { DROVER_SYSTEM, DroverServer } from './servers/drover.ts';
import { bytesOf, lines, logComplete, records } from './servers/droverLogs.ts';
import { LogCheck, sequenceCommand } from './support/logCheck.ts';
import { folder, measure, type Bench } from './support/bench.ts';
import { percentile, until } from './support/measure.ts';

const TASKS = 100;
const BYTES_PER_TASK = 5_500_000;
const QUICK_BYTES_PER_TASK = 550_000;
const END_LIMIT_MS = 300_000;
const END_PERIOD_MS = 50;
/** Lines that say when they were written, at this spacing. */
const STAMPS = 300;
const STAMP_SPACING = '0.02';

export async function logs(bench: Bench): Promise<void> {
  const bytes = bench.quick ? QUICK_BYTES_PER_TASK : BYTES_PER_TASK;
  const metrics = ['logRate', 'logFollowedRate', 'logFaults', 'logIdleP99', 'logBusyP99'] as const;
  await measure(bench, DROVER_SYSTEM, [...metrics], async () => {
    const server = await DroverServer.start(folder(bench, 'drover'));
    try {
      await server.localAgentOnline();
      const idle = await followStamps(server);
      const note = `${STAMPS} lines, from written to received`;
      bench.report.add('logIdleP99', { ...DROVER_SYSTEM, value: percentile(idle, 0.99), note });

      const { rate } = await writeAll(server, bytes);
      const total = `${TASKS} tasks of ${bytes / 1e6} MB by the local agent`;
      bench.report.add('logRate', { ...DROVER_SYSTEM, value: rate, note: total });
      const followed = await writeAndFollow(server, bytes);
      const all = `${total}; until a follower of all has received and compared the last byte`;
      bench.report.add('logFollowedRate', { ...DROVER_SYSTEM, value: followed.rate, note: all });
      const read = 'all read over SSE while it was written';
      bench.report.add('logFaults', { ...DROVER_SYSTEM, value: followed.faults, note: read });

      const stamps = followStamps(server);
      await writeAll(server, bytes);
      const busy = percentile(await stamps, 0.99);
      bench.report.add('logBusyP99', { ...DROVER_SYSTEM, value: busy, note });
    } finally {
      await server.close();
    }
  });
}

/** From submit until the last byte is durable, so the tasks' own start counts against the rate. */
async function writeAll(server: DroverServer, bytes: number): Promise<{ rate: number }> {
  const began = performance.now();
  const job = await startWriters(server, bytes);
  await until('the writing tasks end', END_LIMIT_MS, END_PERIOD_MS, async () => {
    const { state } = await server.job(job);
    if (state !== 'PENDING' && state !== 'RUNNING' && state !== 'SUCCEEDED') {
      throw new Error(`the writing job is ${state}`);
    }
    return state === 'SUCCEEDED';
  });
  await logComplete(server, job);
  return { rate: (TASKS * bytes) / 1e3 / (performance.now() - began) };
}

async function writeAndFollow(
  server: DroverServer,
  bytes: number,
): Promise<{ rate: number; faults: number }> {
  const check = new LogCheck(TASKS, bytes);
  const began = performance.now();
  const job = await startWriters(server, bytes);
  for await (const record of records(server, job)) {
    if (record.stream === 'stdout') check.take(record.index, record.offset, bytesOf(record));
  }
  const rate = (TASKS * bytes) / 1e3 / (performance.now() - began);
  return { rate, faults: check.faults() };
}

function startWriters(server: DroverServer, bytes: number): Promise<string> {
  return server.submit({
    name: 'logs',
    command: sequenceCommand(bytes),
    // All at once, even on a machine with one processor.
    resources: { cpuMillis: 5 },
    shape: { kind: 'array', indices: Array.from({ length: TASKS }, (_, i) => i) },
  });
}

async function followStamps(server: DroverServer): Promise<number[]> {
  const script = `for i in $(seq ${STAMPS}); do date +%s%N; sleep ${STAMP_SPACING}; done`;
  const job = await server.submit({
    name: 'stamps',
    command: ['sh', '-c', script],
    // Its share of a busy machine: it must not wait for a processor between `date` and the write.
    resources: { cpuMillis: 1000 },
  });
  const delays: number[] = [];
  for await (const { text, atMs } of lines(server, job)) delays.push(atMs - Number(text) / 1e6);
  if (delays.length !== STAMPS) throw new Error(`${delays.length} of ${STAMPS} lines came`);
  return delays;
}
