/** drover logs: the output of a job, as it is or as it comes. */
import { UsageError, wholeNumber } from './args.ts';
import { defineCommand, takePositionals } from './command.ts';
import { parseDuration } from './durations.ts';
import { EXIT } from './exitCodes.ts';
import { watchInterrupts } from './interrupts.ts';
import { exactOutput, jsonOutput, prefixedOutput } from './logOutput.ts';

export const logsCommand = defineCommand({
  name: 'logs',
  summary: 'Show the output of a job or of one of its tasks',
  usage: ['logs ID [-f] [--task N] [--tail N] [--since D]'],
  options: {
    follow: { kind: 'flag', short: 'f', help: 'go on until the job ends' },
    task: { kind: 'text', value: 'N', help: "only this index (or write the task's id)" },
    tail: { kind: 'text', value: 'N', help: 'only the last N lines' },
    since: { kind: 'text', value: 'D', help: 'only what came in this time: 10m' },
  },
  details:
    "A job's stdout goes to stdout and its stderr to stderr, byte for byte. Of an array or a\n" +
    'gang all lines come, each after its index; --json prints one record per line.',
  async run(parsed, context) {
    const { options } = parsed;
    const [written] = takePositionals(parsed, ['ID']);
    const { id, task } = splitTask(written!, options.task);
    const { io } = context;
    const client = context.client();
    const job = await client.getJob(id);
    const merged = task === undefined && job.tasks.total > 1;
    const output = context.json ? jsonOutput(io) : merged ? prefixedOutput(io) : exactOutput(io);
    const interrupts = watchInterrupts(io);
    // The last bytes of a job may come in after its end: of one that has ended all is shown.
    const toItsEnd = !options.follow && job.endedAtMs !== null;
    const quiet = quietWatch();
    const query = {
      task,
      tail: options.tail === undefined ? undefined : wholeNumber(options.tail, '--tail'),
      sinceMs: options.since === undefined ? undefined : startMs(io.now(), options.since),
      signal: AbortSignal.any([interrupts.first, quiet.signal]),
    };
    try {
      const following = options.follow || toItsEnd;
      const records = following ? client.followLogs(id, query) : client.readLogs(id, query);
      if (toItsEnd) quiet.restart();
      for await (const record of records) {
        await output.write(record);
        if (toItsEnd) quiet.restart();
      }
      await output.end();
      return EXIT.ok;
    } catch (error) {
      if (interrupts.first.aborted) return EXIT.interrupt;
      if (!quiet.signal.aborted) throw error;
      await output.end();
      await context.notice('the rest has not come in yet; `drover logs -f` waits for it');
      return EXIT.ok;
    } finally {
      interrupts.stop();
      quiet.stop();
    }
  },
});

/** How long the output of an ended job may be silent before what is there is all that is shown. */
const QUIET_LIMIT_MS = 5000;

function quietWatch(): { signal: AbortSignal; restart(): void; stop(): void } {
  const controller = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const stop = (): void => clearTimeout(timer);
  return {
    signal: controller.signal,
    stop,
    restart() {
      stop();
      timer = setTimeout(() => controller.abort(), QUIET_LIMIT_MS);
    },
  };
}

/** `j1.3` is task 3 of job j1. */
export function splitTask(
  written: string,
  flag: string | undefined,
): { id: string; task: number | undefined } {
  const match = /^(.+)\.(\d+)$/.exec(written);
  if (match && flag !== undefined) throw new UsageError(`${written} names a task already`);
  if (match) return { id: match[1]!, task: Number(match[2]) };
  return { id: written, task: flag === undefined ? undefined : wholeNumber(flag, '--task') };
}

function startMs(nowMs: number, since: string): number {
  return nowMs - parseDuration(since, '--since');
}
