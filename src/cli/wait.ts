/** drover wait: returns when jobs have ended, with the first bad exit code. */
import { DroverError } from '../lib/errors.ts';
import { UsageError } from './args.ts';
import { defineCommand } from './command.ts';
import { parseDuration } from './durations.ts';
import { EXIT } from './exitCodes.ts';
import { explainEnd, hasEnded, judgeEnd, waitForEnd } from './jobEnd.ts';

export const waitCommand = defineCommand({
  name: 'wait',
  summary: 'Wait until jobs have ended and exit with their code',
  usage: ['wait ID… [--timeout D]'],
  options: { timeout: { kind: 'text', value: 'D', help: 'stop waiting after this time: 10m' } },
  failureCode: EXIT.drover,
  async run({ options, positionals, rest }, context) {
    if (rest !== undefined || positionals.length === 0) throw new UsageError('ID is missing');
    const client = context.client();
    const timeoutMs =
      options.timeout === undefined ? undefined : parseDuration(options.timeout, '--timeout');
    const deadlineMs = timeoutMs === undefined ? undefined : context.io.now() + timeoutMs;
    let code: number = EXIT.ok;
    for (const id of positionals) {
      const leftMs = deadlineMs === undefined ? undefined : deadlineMs - context.io.now();
      const job = await waitForEnd(client, id, { timeoutMs: leftMs });
      if (!hasEnded(job)) {
        throw new DroverError('TIMEOUT', `job ${id} is still ${job.state}: ${job.reason}`, {
          hint: `drover wait ${id} without --timeout, or drover logs -f ${id}`,
        });
      }
      const end = await judgeEnd(client, job);
      if (context.json) {
        await context.printJson({ exitCode: end.exitCode, job });
      } else {
        await context.print(`${id} ${job.state}`);
        await explainEnd(context, end);
      }
      if (code === EXIT.ok) code = end.exitCode;
    }
    return code;
  },
});
