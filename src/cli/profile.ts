/** drover profile: where a running task spends its time, as a flame graph. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { flameGraph } from '../lib/flameGraph.ts';
import {
  MAX_PROFILE_SECONDS,
  PROFILE_TOOLS,
  profileResult,
  readDocument,
  type ProfileResult,
} from '../protocol/tunnel/inside.ts';
import { oneOf, UsageError, wholeNumber } from './args.ts';
import { defineCommand, takePositionals, type CommandContext } from './command.ts';
import { EXIT } from './exitCodes.ts';
import { insideTask } from './insideTask.ts';
import { printable } from './table.ts';
import { findTask } from './taskOfId.ts';

const DEFAULT_SECONDS = '10';

export const profileCommand = defineCommand({
  name: 'profile',
  summary: 'Draw a flame graph of a running task',
  usage: ['profile ID [--task N] [--seconds 10] [--pid P] [-o FILE.svg]'],
  options: {
    task: { kind: 'text', value: 'N', help: 'the task of an array or a gang (or its id as ID)' },
    seconds: { kind: 'text', value: 'S', help: `how long to look (default ${DEFAULT_SECONDS})` },
    pid: { kind: 'text', value: 'P', help: 'a process of `drover ps` (default: the busiest)' },
    tool: { kind: 'text', value: 'T', help: 'py-spy, node or perf (default: by the program)' },
    output: { kind: 'text', short: 'o', value: 'FILE', help: 'default: TASK.svg; - is stdout' },
  },
  details:
    'Python needs py-spy in the environment of the task or on its machine, Node nothing,\n' +
    'anything else perf. The process goes on as if nothing was. --json prints the folded stacks.',
  async run({ options, ...parsed }, context) {
    const [written] = takePositionals(parsed, ['ID']) as [string];
    const seconds = wholeNumber(options.seconds ?? DEFAULT_SECONDS, '--seconds', 1);
    if (seconds > MAX_PROFILE_SECONDS) {
      throw new UsageError(`--seconds ${seconds} is above ${MAX_PROFILE_SECONDS}`);
    }
    const pid = options.pid === undefined ? {} : { pid: wholeNumber(options.pid, '--pid', 1) };
    const tool =
      options.tool === undefined ? {} : { tool: oneOf(options.tool, PROFILE_TOOLS, '--tool') };
    const task = await findTask(context.client(), written, options.task, 'profile ID --task N');
    const inside = insideTask(context.connection(), task);
    try {
      const stream = await inside.open({ kind: 'profile', seconds, ...pid, ...tool });
      const result = await readDocument(stream, profileResult);
      if (context.json) await context.printJson({ task, ...result });
      else await write(context, task, result, options.output ?? `${task}.svg`);
      return EXIT.ok;
    } finally {
      inside.close('the profile is read');
    }
  },
});

async function write(
  context: CommandContext,
  task: string,
  result: ProfileResult,
  output: string,
): Promise<void> {
  const { pid, command, tool, folded } = result;
  const what = printable(`${pid} (${command})`).slice(0, 100);
  const svg = flameGraph(folded, `${task}: process ${what} by ${tool}`);
  if (output === '-') return context.io.stdout.write(svg);
  const file = path.resolve(context.io.cwd, output);
  try {
    writeFileSync(file, svg);
  } catch (error) {
    throw new UsageError(`${file} cannot be written: ${(error as Error).message}`, '-o FILE');
  }
  await context.print(file);
  await context.notice(`process ${what} by ${tool}`);
}
