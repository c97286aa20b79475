/** drover cp: files out of a task, while it runs or from what it left, and into one that runs. */
import { existsSync, statSync } from 'node:fs';
import { mkdtemp, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { execUrl } from '../protocol/tunnel/execClient.ts';
import { UsageError } from './args.ts';
import { defineCommand, takePositionals, type CommandContext } from './command.ts';
import { copyFromResult } from './cpResult.ts';
import { packInto, unpackFrom } from './cpTar.ts';
import { EXIT } from './exitCodes.ts';
import { splitTask } from './logs.ts';
import { findTask } from './taskOfId.ts';

/** Of one task; the newest is among them. */
const ATTEMPTS = 500;
const REMOTE = /^([A-Za-z0-9][A-Za-z0-9.-]*):(.*)$/s;

export const cpCommand = defineCommand({
  name: 'cp',
  summary: 'Copy files out of a job, also while it runs, or into one that runs',
  usage: ['cp ID:PATH LOCAL', 'cp LOCAL ID:PATH'],
  options: {
    task: { kind: 'text', value: 'N', help: 'the task of an array or a gang (or its id as ID)' },
  },
  details:
    'PATH is taken from the directory the command started in; of a job that has ended, from its\n' +
    'result. Folders go whole. Into a folder that exists it goes under its own name, else it\n' +
    'gets the name that was given. A local path with a colon is written ./like:this.\n\n' +
    'examples:\n' +
    '  drover cp JOB:checkpoints/last.pt .\n' +
    '  drover cp new-config.yaml JOB:config.yaml',
  async run(parsed, context) {
    const [from, to] = takePositionals(parsed, ['FROM', 'TO']).map(place);
    const flag = parsed.options.task;
    if (from!.id !== undefined && to!.id === undefined) {
      const target = await fetch(context, from as Remote, flag, to!.path);
      await (context.json ? context.printJson({ path: target }) : undefined);
      return EXIT.ok;
    }
    if (from!.id === undefined && to!.id !== undefined) {
      await send(context, from!.path, to as Remote, flag);
      await (context.json ? context.printJson({ path: to!.path }) : undefined);
      return EXIT.ok;
    }
    throw new UsageError('one of the two is in a job and one is here', 'drover cp ID:PATH .');
  },
});

interface Place {
  id: string | undefined;
  path: string;
}

interface Remote extends Place {
  id: string;
}

function place(text: string): Place {
  const match = REMOTE.exec(text);
  return match ? { id: match[1], path: match[2] || '.' } : { id: undefined, path: text };
}

/** Gathered beside its place and renamed there, so that a broken copy leaves nothing. */
async function fetch(
  context: CommandContext,
  from: Remote,
  flag: string | undefined,
  local: string,
): Promise<string> {
  const task = await findTask(context.client(), from.id, flag, 'cp');
  const base = path.posix.basename(path.posix.normalize(from.path));
  const name = base === '.' || base === '..' || base === '' ? from.id : base;
  const given = path.resolve(context.io.cwd, local);
  const target = isFolder(given) ? path.join(given, name) : given;
  const parent = path.dirname(target);
  if (!isFolder(parent)) throw new UsageError(`there is no folder ${parent}`);
  const scratch = await mkdtemp(path.join(parent, '.drover-cp-'));
  try {
    if (await hasEnded(context, task)) await copyFromResult(context, task, from.path, scratch);
    else await unpackFrom(inside(context, task), from.path, scratch);
    await putThere(path.join(scratch, 'copy'), target);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
  return target;
}

async function send(
  context: CommandContext,
  local: string,
  to: Remote,
  flag: string | undefined,
): Promise<void> {
  const source = path.resolve(context.io.cwd, local);
  if (!existsSync(source)) throw new UsageError(`there is no ${source}`);
  const task = await findTask(context.client(), to.id, flag, 'cp');
  if (await hasEnded(context, task)) {
    throw new UsageError(`task ${task} has ended: nothing can be put into it`);
  }
  await packInto(inside(context, task), source, to.path);
}

function inside(context: CommandContext, task: string): { url: string; token: string } {
  const { url, token } = context.connection();
  return { url: execUrl(url, task), token: token ?? '' };
}

/** Of one that has not begun, exec says what it waits for. */
async function hasEnded(context: CommandContext, task: string): Promise<boolean> {
  const { id, task: index } = splitTask(task, undefined);
  const { items } = await context.client().listAttempts(id, { limit: ATTEMPTS, task: index });
  return items.length > 0 && items.every(({ state }) => state === 'ENDED');
}

function isFolder(at: string): boolean {
  return statSync(at, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

async function putThere(copy: string, target: string): Promise<void> {
  if (existsSync(target) && (isFolder(target) || isFolder(copy))) {
    throw new UsageError(`${target} exists`, 'remove it, or name another place');
  }
  await rename(copy, target);
}
