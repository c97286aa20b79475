/** Scenario 4: from a submit to the process running, with nothing else to do. */
import { execFile } from 'node:child_process';
import { performance } from 'node:perf_hooks';
import { promisify } from 'node:util';
import { BARE_SYSTEM } from './servers/bareClient.ts';
import { DROVER_SYSTEM, DroverServer } from './servers/drover.ts';
import { lines } from './servers/droverLogs.ts';
import { folder, measure, type Bench } from './support/bench.ts';
import { fineWallClock, percentile, sleep } from './support/measure.ts';
import type { System } from './support/bench.ts';

/** Prints the time in nanoseconds as its first act; a program that starts as fast as any. */
const COMMAND = ['date', '+%s%N'];
/** The pause varies so that samples do not fall into step with a loop's period. */
const PAUSE_MS = { least: 20, spread: 60 };

export async function startLatency(bench: Bench): Promise<void> {
  const samples = bench.quick ? 50 : 500;
  await measure(bench, BARE_SYSTEM, ['startP50', 'startP99'], async () => {
    const run = promisify(execFile);
    const figures = await collect(samples, async () => {
      const { stdout } = await run(COMMAND[0]!, COMMAND.slice(1));
      return Number(stdout) / 1e6;
    });
    add(bench, { ...BARE_SYSTEM, durability: 'none' }, figures, 'spawn of the same program alone');
  });
  await measure(bench, DROVER_SYSTEM, ['startP50', 'startP99'], async () => {
    const server = await DroverServer.start(folder(bench, 'drover'));
    try {
      await server.localAgentOnline();
      const once = async (): Promise<number> => {
        const job = await server.submit({ name: 'start', command: COMMAND });
        let printed = '';
        // To the end of the log, so that the machine is idle again before the next.
        for await (const line of lines(server, job)) printed ||= line.text;
        if (!printed) throw new Error(`job ${job} printed nothing`);
        return Number(printed) / 1e6;
      };
      for (let i = 0; i < 10; i++) await once();
      add(bench, DROVER_SYSTEM, await collect(samples, once), 'over HTTP to the local agent');
    } finally {
      await server.close();
    }
  });
}

/** Milliseconds from before the call to the time that the started process says. */
async function collect(count: number, startedAt: () => Promise<number>): Promise<number[]> {
  const figures: number[] = [];
  for (let i = 0; i < count; i++) {
    const now = fineWallClock();
    const submittedAt = now();
    figures.push((await startedAt()) - submittedAt);
    await sleep(PAUSE_MS.least + ((performance.now() * 1000) % PAUSE_MS.spread));
  }
  return figures;
}

function add(bench: Bench, system: System, figures: number[], note: string): void {
  bench.report.add('startP50', { ...system, value: percentile(figures, 0.5), note });
  bench.report.add('startP99', { ...system, value: percentile(figures, 0.99), note });
}
