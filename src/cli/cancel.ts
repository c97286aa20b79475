/** drover cancel: asks for the end of jobs. */
import { UsageError } from './args.ts';
import { defineCommand } from './command.ts';
import { EXIT } from './exitCodes.ts';
import { destroyAll } from './instances.ts';
import { hasEnded } from './jobEnd.ts';

/** Ids say what they are of by their first letter. */
const INSTANCE = /^i[0-9a-z]{10,}(\.\d+)?$/;

export const cancelCommand = defineCommand({
  name: 'cancel',
  summary: 'Cancel jobs, or give back instances',
  usage: ['cancel ID…'],
  options: {},
  details:
    'Running tasks get TERM, and KILL after their grace time; `drover wait ID` waits for it.',
  async run({ positionals, rest }, context) {
    if (rest !== undefined || positionals.length === 0) throw new UsageError('ID is missing');
    const client = context.client();
    for (const id of positionals) {
      if (INSTANCE.test(id)) {
        await destroyAll(context, [id]);
        continue;
      }
      const job = await client.cancelJob(id);
      if (context.json) await context.printJson(job);
      else await context.print(`${id} ${hasEnded(job) ? job.state : 'cancel requested'}`);
    }
    return EXIT.ok;
  },
});
