/** drover result: what a task left, listed or fetched. */
import { defineCommand, takePositionals } from './command.ts';
import { EXIT } from './exitCodes.ts';
import { fetchInto } from './folders.ts';
import { splitTask } from './logs.ts';
import { showMemory } from './resources.ts';
import { printTable } from './table.ts';

export const resultCommand = defineCommand({
  name: 'result',
  summary: 'List or fetch the files a job left',
  usage: ['result ID [--task N] [-o DIR]'],
  options: {
    task: { kind: 'text', value: 'N', help: "this index (or write the task's id); else the first" },
    output: { kind: 'text', short: 'o', value: 'DIR', help: 'fetch them into this directory' },
  },
  details:
    'A result is what a task had in $DROVER_RESULT_DIR when it ended, and the files its job\n' +
    'named with --output.',
  async run(parsed, context) {
    const { options } = parsed;
    const [written] = takePositionals(parsed, ['ID']);
    const { id, task } = splitTask(written!, options.task);
    const result = await context.client().getResult(id, task);
    if (options.output !== undefined) await fetchInto(context, result.manifest, options.output);
    if (context.json) await context.printJson(result);
    else if (options.output === undefined) {
      await printTable(context.io, result.files, [
        { title: 'SIZE', value: ({ size }) => showMemory(size) },
        { title: 'PATH', value: ({ path, executable }) => `${path}${executable ? '*' : ''}` },
        { title: 'HASH', value: ({ hash }) => hash },
      ]);
    }
    return EXIT.ok;
  },
});
