/** Scenario 7: whether a store full of ended jobs slows submits and execution. */
import { execute, executeRate, taskCount } from './execute.ts';
import { seedEndedJobs } from './agents/seed.ts';
import { DROVER_SYSTEM, DroverServer } from './servers/drover.ts';
import { submit, submitRate } from './submit.ts';
import { folder, measure, type Bench } from './support/bench.ts';
import { DROVER } from './support/report.ts';

const ENDED_JOBS = 1_000_000;
const QUICK_ENDED_JOBS = 20_000;

export async function history(bench: Bench): Promise<void> {
  const ended = bench.quick ? QUICK_ENDED_JOBS : ENDED_JOBS;
  await measure(bench, DROVER_SYSTEM, ['historySubmit', 'historyExecute'], async () => {
    const alone: Bench = { ...bench, systems: new Set([DROVER]) };
    // The empty store's figures are those of scenarios 1 and 3, measured now if left out.
    if (bench.report.value('submitRate', DROVER) === null) await submit(alone);
    if (bench.report.value('executeRate', DROVER) === null) await execute(alone);
    const server = await DroverServer.start(folder(bench, 'drover'));
    try {
      await server.drainLocalAgent();
      await seedEndedJobs(server, ended);
      // As the empty one: a process that has just started.
      await server.crashAndRestart();
      await server.drainLocalAgent();
      const executed = await executeRate(server, taskCount(bench));
      const submitted = await submitRate(server, bench, 'history');
      const emptyExecute = bench.report.value('executeRate', DROVER) ?? Number.NaN;
      const emptySubmit = bench.report.value('submitRate', DROVER) ?? Number.NaN;
      const note = (rate: number): string => `${Math.round(rate)}/s with ${ended} ended jobs`;
      bench.report.add('historySubmit', {
        ...DROVER_SYSTEM,
        value: submitted / emptySubmit,
        note: note(submitted),
      });
      bench.report.add('historyExecute', {
        ...DROVER_SYSTEM,
        value: executed / emptyExecute,
        note: note(executed),
      });
    } finally {
      await server.close();
    }
  });
}
