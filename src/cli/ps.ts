/** drover ps: the processes of a running task. */
import { processList, readDocument, type ProcessList } from '../protocol/tunnel/inside.ts';
import { defineCommand, takePositionals } from './command.ts';
import { shortDuration } from './durations.ts';
import { EXIT } from './exitCodes.ts';
import { insideTask } from './insideTask.ts';
import { showMemory } from './resources.ts';
import { printTable, type Column } from './table.ts';
import { findTask } from './taskOfId.ts';

export const psCommand = defineCommand({
  name: 'ps',
  summary: 'List the processes of a running task, the busiest first',
  usage: ['ps ID [--task N]'],
  options: {
    task: { kind: 'text', value: 'N', help: 'the task of an array or a gang (or its id as ID)' },
  },
  async run({ options, ...parsed }, context) {
    const [written] = takePositionals(parsed, ['ID']) as [string];
    const task = await findTask(context.client(), written, options.task, 'ps ID --task N');
    const inside = insideTask(context.connection(), task);
    try {
      const { processes } = await readDocument(await inside.open({ kind: 'ps' }), processList);
      if (context.json) await context.printJson({ task, processes });
      else await printTable(context.io, processes, columns);
      return EXIT.ok;
    } finally {
      inside.close('the list is read');
    }
  },
});

const columns: Column<ProcessList['processes'][number]>[] = [
  { title: 'PID', value: ({ pid }) => String(pid) },
  { title: 'PARENT', value: ({ parent }) => String(parent) },
  { title: 'STATE', value: ({ state }) => state },
  { title: 'CPU%', value: ({ cpuPercent }) => cpuPercent.toFixed(1) },
  { title: 'MEMORY', value: ({ rssBytes }) => showMemory(rssBytes) },
  { title: 'THREADS', value: ({ threads }) => String(threads) },
  { title: 'CPU TIME', value: ({ cpuMs }) => shortDuration(cpuMs) },
  { title: 'AGE', value: ({ elapsedMs }) => shortDuration(elapsedMs) },
  { title: 'COMMAND', value: ({ command }) => command },
];
