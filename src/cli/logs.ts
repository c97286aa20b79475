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
    const query = {
      task,
      tail: options.tail === undefined ? undefined : wholeNumber(options.tail, '--tail'),
      sinceMs: options.since === undefined ? undefined : startMs(io.now(), options.since),
      signal: interrupts.first,
    };
    try {
      const records = options.follow ? client.followLogs(id, query) : client.readLogs(id, query);
      for await (const record of records) await output.write(record);
      await output.end();
      return EXIT.ok;
    } catch (error) {
      if (interrupts.first.aborted) return EXIT.interrupt;
      throw error;
    } finally {
      interrupts.stop();
    }
  },
});

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
