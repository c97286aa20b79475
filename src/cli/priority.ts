/** drover priority: moves a job to another band. */
import { PRIORITIES } from '../model/job.ts';
import { oneOf } from './args.ts';
import { defineCommand, takePositionals } from './command.ts';
import { EXIT } from './exitCodes.ts';

export const priorityCommand = defineCommand({
  name: 'priority',
  summary: 'Move a job to another priority',
  usage: [`priority ID ${PRIORITIES.join('|')}`],
  options: {},
  details: 'What of it waits is planned anew at once; what runs goes on.',
  async run(parsed, context) {
    const [id, wanted] = takePositionals(parsed, ['ID', 'PRIORITY']);
    const priority = oneOf(wanted!, PRIORITIES, 'PRIORITY');
    const job = await context.client().setPriority(id!, priority);
    if (context.json) await context.printJson(job);
    else await context.print(`${job.id} ${job.priority}`);
    return EXIT.ok;
  },
});
