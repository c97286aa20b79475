/** drover checkpoints, drover checkpoint: what tasks can resume from, and asking for one more. */
import { eachItem } from '../protocol/client.ts';
import type { CheckpointView } from '../protocol/jobs.ts';
import { UsageError, wholeNumber } from './args.ts';
import { defineCommand, takePositionals, type CommandContext } from './command.ts';
import { ago } from './durations.ts';
import { EXIT } from './exitCodes.ts';
import { fetchInto } from './folders.ts';
import { splitTask } from './logs.ts';
import { showMemory } from './resources.ts';
import { printTable } from './table.ts';

const PAGE = 500;

export const checkpointsCommand = defineCommand({
  name: 'checkpoints',
  summary: 'List what a job can resume from, or fetch one',
  usage: ['checkpoints ID [ls] [--task N]', 'checkpoints ID get N DIR [--task N]'],
  options: {
    task: { kind: 'text', value: 'N', help: "only this index (or write the task's id)" },
  },
  async run(parsed, context) {
    const [written, verb = 'ls', ...rest] = parsed.positionals;
    if (written === undefined) throw new UsageError('ID is missing');
    const { id, task } = splitTask(written, parsed.options.task);
    const found = await collect(context, id, task);
    if (verb === 'get') return getOne(context, found, rest);
    if (verb !== 'ls' || rest.length > 0) {
      throw new UsageError(`unexpected argument ${JSON.stringify(verb)}`, 'ls, or get N DIR');
    }
    if (context.json) await context.printJson(found);
    else if (found.length === 0) await context.notice(`${written} has none yet`);
    else await printCheckpoints(context, found);
    return EXIT.ok;
  },
});

export const checkpointCommand = defineCommand({
  name: 'checkpoint',
  summary: 'Ask a running job for a checkpoint now',
  usage: ['checkpoint ID [--task N]'],
  options: {
    task: { kind: 'text', value: 'N', help: "only this index (or write the task's id)" },
  },
  details: '`drover checkpoints ID` lists it when it is stored.',
  async run(parsed, context) {
    const [written] = takePositionals(parsed, ['ID']);
    const { id, task } = splitTask(written!, parsed.options.task);
    const tasks = await context.client().requestCheckpoint(id, task);
    if (context.json) await context.printJson({ tasks });
    else await context.print(tasks.map((one) => `${one} asked`).join('\n'));
    return EXIT.ok;
  },
});

export async function collect(
  context: CommandContext,
  id: string,
  task?: number,
): Promise<CheckpointView[]> {
  const client = context.client();
  const found: CheckpointView[] = [];
  const pages = eachItem((page) => client.listCheckpoints(id, { ...page, task }), PAGE);
  for await (const one of pages) found.push(one);
  return found;
}

export async function printCheckpoints(
  context: CommandContext,
  checkpoints: CheckpointView[],
): Promise<void> {
  const nowMs = context.io.now();
  await printTable(context.io, checkpoints, [
    { title: 'CHECKPOINT', value: ({ task, n }) => `${task} ${n}` },
    { title: 'FILES', value: ({ files }) => String(files) },
    { title: 'SIZE', value: ({ bytes }) => showMemory(bytes) },
    { title: 'TAKEN', value: ({ createdAtMs }) => ago(createdAtMs, nowMs) },
    { title: 'FOR', value: ({ reason }) => reason },
    { title: 'ATTEMPT', value: ({ attempt }) => attempt },
  ]);
}

async function getOne(
  context: CommandContext,
  found: CheckpointView[],
  [number, directory, ...more]: string[],
): Promise<number> {
  if (number === undefined || directory === undefined || more.length > 0) {
    throw new UsageError('which one, and where to?', 'drover checkpoints ID get N DIR');
  }
  const n = wholeNumber(number, 'N', 1);
  const matching = found.filter((one) => one.n === n);
  if (matching.length > 1) throw new UsageError(`several tasks have a number ${n}`, 'add --task N');
  const [one] = matching;
  if (!one) {
    const there = found.map((known) => known.n).join(', ') || 'none';
    throw new UsageError(`there is no checkpoint ${n} any more`, `there are: ${there}`);
  }
  await fetchInto(context, one.manifest, directory);
  if (context.json) await context.printJson(one);
  return EXIT.ok;
}
