/** drover job: all there is to know about one job. */
import { eachItem, type DroverClient } from '../protocol/client.ts';
import type { AttemptView, CheckpointView, JobView, TaskView } from '../protocol/jobs.ts';
import { defineCommand, takePositionals, type CommandContext } from './command.ts';
import { costFacts } from './costFacts.ts';
import { ago } from './durations.ts';
import { EXIT } from './exitCodes.ts';
import { printFacts } from './facts.ts';
import { colours } from './io.ts';
import { collect as collectCheckpoints, printCheckpoints } from './checkpoints.ts';
import { ranFor } from './jobs.ts';
import { specFacts } from './specFacts.ts';
import { statePaint } from './states.ts';
import { printTable } from './table.ts';

/** More tasks than fit a screen are summed up, and only those that went wrong are listed. */
const TASKS_SHOWN = 20;
const ATTEMPTS_SHOWN = 20;
const CHECKPOINTS_SHOWN = 20;
const PAGE = 500;

export const jobCommand = defineCommand({
  name: 'job',
  summary: 'Show one job: state, reason, tasks, attempts, resources',
  usage: ['job ID', 'job ID --capsule'],
  options: {
    all: { kind: 'flag', help: 'every task and attempt, however many' },
    capsule: { kind: 'flag', help: 'what it ran, exactly, as JSON: see rerun and diff' },
  },
  async run(parsed, context) {
    const [id] = takePositionals(parsed, ['ID']);
    const client = context.client();
    if (parsed.options.capsule) {
      const capsule = await client.capsule(id!);
      if (context.json) await context.printJson(capsule);
      else await context.print(JSON.stringify(capsule, null, 2));
      return EXIT.ok;
    }
    const job = await client.getJob(id!);
    const tasks = await collect(eachItem((page) => client.listTasks(job.id, page), PAGE));
    const attempts = await collectAttempts(client, job);
    const checkpoints = job.spec?.checkpoint ? await collectCheckpoints(context, job.id) : [];
    if (context.json) {
      await context.printJson({ ...job, taskList: tasks, attempts, checkpoints });
      return EXIT.ok;
    }
    await printJob(context, job, attempts);
    await printTasks(context, tasks, parsed.options.all);
    await printAttempts(context, attempts, parsed.options.all);
    await printSaved(context, checkpoints, parsed.options.all);
    return EXIT.ok;
  },
});

async function collect<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const collected: Item[] = [];
  for await (const item of items) collected.push(item);
  return collected;
}

function collectAttempts(client: DroverClient, job: JobView): Promise<AttemptView[]> {
  return collect(eachItem((page) => client.listAttempts(job.id, page), PAGE));
}

async function printJob(
  context: CommandContext,
  job: JobView,
  attempts: AttemptView[],
): Promise<void> {
  const nowMs = context.io.now();
  const paint = colours(context.io, context.io.stdout);
  const when = (atMs: number | null): string =>
    atMs === null ? '' : `${ago(atMs, nowMs)} (${new Date(atMs).toISOString()})`;
  await printFacts(context, [
    ['job', job.id],
    ['name', job.name],
    ['state', job.state, statePaint(job.state, paint)],
    ['reason', job.reason],
    ['exit code', job.exitCode === null ? '' : String(job.exitCode)],
    ['owner', job.owner],
    ['priority', job.priority],
    ['pool', job.pool || 'any'],
    ...(job.spec ? specFacts(job.spec) : []),
    ['created', when(job.createdAtMs)],
    ['started', when(job.startedAtMs)],
    ['ended', when(job.endedAtMs)],
    ['ran', job.startedAtMs === null ? '' : ranFor(job, nowMs)],
    ['cancelled', when(job.cancelRequestedAtMs)],
    ['tasks', taskSummary(job)],
    ...costFacts(attempts, nowMs),
  ]);
}

function taskSummary({ tasks }: JobView): string {
  const { total, ...states } = tasks;
  const parts = Object.entries(states).flatMap(([state, n]) => (n > 0 ? [`${n} ${state}`] : []));
  return [String(total), ...parts].join(', ');
}

async function printTasks(context: CommandContext, tasks: TaskView[], all: boolean): Promise<void> {
  if (tasks.length < 2) return;
  const unusual = tasks.filter((task) => task.state === 'FAILED' || task.state === 'UNSCHEDULABLE');
  const many = tasks.length > TASKS_SHOWN && !all;
  const shown = (many ? unusual : tasks).slice(0, all ? undefined : TASKS_SHOWN);
  if (shown.length === 0) return;
  const nowMs = context.io.now();
  await context.print('');
  await printTable(context.io, shown, [
    { title: 'TASK', value: (task) => task.id },
    { title: 'STATE', value: (task) => task.state, paint: (task, p) => statePaint(task.state, p) },
    { title: 'EXIT', value: (task) => String(task.exitCode ?? '-') },
    { title: 'ATTEMPTS', value: (task) => String(task.attempts) },
    { title: 'WORKER', value: (task) => task.worker ?? '-' },
    { title: 'RAN', value: (task) => ranFor(task, nowMs) },
    { title: 'REASON', value: (task) => task.reason },
  ]);
  if (many) await context.notice(`${shown.length} of ${tasks.length} tasks shown: --all for all`);
}

async function printAttempts(
  context: CommandContext,
  attempts: AttemptView[],
  all: boolean,
): Promise<void> {
  if (attempts.length === 0) return;
  const shown = all ? attempts : attempts.slice(-ATTEMPTS_SHOWN);
  const nowMs = context.io.now();
  await context.print('');
  await printTable(context.io, shown, [
    { title: 'ATTEMPT', value: (attempt) => `${attempt.task}#${attempt.n}` },
    { title: 'STATE', value: (attempt) => attempt.state },
    { title: 'END', value: showEnd },
    { title: 'WORKER', value: (attempt) => attempt.worker },
    { title: 'ASSIGNED', value: (attempt) => ago(attempt.assignedAtMs, nowMs) },
    { title: 'RAN', value: (attempt) => ranFor(attempt, nowMs) },
    { title: 'MESSAGE', value: (attempt) => attempt.message },
  ]);
  if (shown.length < attempts.length) {
    await context.notice(`the last ${shown.length} of ${attempts.length} attempts: --all for all`);
  }
}

async function printSaved(
  context: CommandContext,
  checkpoints: CheckpointView[],
  all: boolean,
): Promise<void> {
  if (checkpoints.length === 0) return;
  await context.print('');
  const shown = all ? checkpoints : checkpoints.slice(-CHECKPOINTS_SHOWN);
  await printCheckpoints(context, shown);
  if (shown.length === checkpoints.length) return;
  await context.notice(`the last ${shown.length} of ${checkpoints.length} checkpoints shown`);
}

function showEnd({ cause, exitCode, signal }: AttemptView): string {
  if (cause === null) return '-';
  const detail = signal ?? (exitCode === null ? '' : String(exitCode));
  return detail ? `${cause} ${detail}` : cause;
}
