/** drover submit: jobs from a file. */
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { SubmittedSpec } from '../protocol/jobSpec.ts';
import { UsageError } from './args.ts';
import { BUNDLE_OPTION } from './bundle/bringCode.ts';
import { bringParts } from './bundle/bringParts.ts';
import { defineCommand, takePositionals, type CommandContext } from './command.ts';
import { EXIT } from './exitCodes.ts';
import { readAll, type CliIo } from './io.ts';
import { toSpec, type JobDraft } from './jobDraft.ts';
import { BATCH_JOBS, checkOrder, idsByName, linkBack } from './submitParts.ts';

export const submitCommand = defineCommand({
  name: 'submit',
  summary: 'Submit jobs from a YAML or JSON file',
  usage: ['submit -f FILE'],
  options: {
    file: { kind: 'text', short: 'f', value: 'FILE', help: 'the file; - is stdin' },
    'bundle-limit': BUNDLE_OPTION,
  },
  details:
    'A file holds one job, a list of jobs, or several documents. Keys are the flags of\n' +
    '`drover run` (command, gpus, cpus, mem, array, gang, time, env, …); `command` is a list\n' +
    'of words, or a line for sh. Ids are printed one per line, in the order of the file.\n' +
    'A job may wait for others of the file: `after: [NAME]`, by their names.\n' +
    `Up to ${BATCH_JOBS} jobs are accepted all or none.`,
  async run(parsed, context) {
    takePositionals(parsed, []);
    const { file } = parsed.options;
    if (file === undefined) throw new UsageError('-f FILE is missing', 'drover submit -f job.yaml');
    const specs = await readSpecs(context, file);
    const brought = await bringParts(context, specs, parsed.options['bundle-limit']);
    const ids = await submitAll(context, brought);
    if (context.json) await context.printJson({ ids });
    return EXIT.ok;
  },
});

export async function readSpecs({ io }: CommandContext, file: string): Promise<SubmittedSpec[]> {
  const drafts = await readDrafts(file, await readText(io, file));
  return drafts.map((draft, at) => specOf(draft, at, drafts.length, io));
}

async function readText(io: CliIo, file: string): Promise<string> {
  if (file === '-') return readAll(io.stdin);
  try {
    return readFileSync(path.resolve(io.cwd, file), 'utf8');
  } catch (error) {
    throw new UsageError(`${file} cannot be read: ${(error as Error).message}`);
  }
}

/** JSON is YAML too, but is read much faster as what it is. */
async function readDrafts(file: string, text: string): Promise<unknown[]> {
  const documents = parseJson(text) ?? (await parseYaml(file, text));
  const drafts = documents.flatMap((document) => {
    if (Array.isArray(document)) return document as unknown[];
    const jobs = (document as { jobs?: unknown } | null)?.jobs;
    return Array.isArray(jobs) && Object.keys(document as object).length === 1 ? jobs : [document];
  });
  if (drafts.length === 0) throw new UsageError(`${file} holds no job`);
  return drafts;
}

function parseJson(text: string): unknown[] | undefined {
  if (!/^\s*[[{]/.test(text)) return undefined;
  try {
    return [JSON.parse(text)];
  } catch {
    // YAML's flow style looks the same; its parser has the better messages, too.
    return undefined;
  }
}

async function parseYaml(file: string, text: string): Promise<unknown[]> {
  const { parseAllDocuments } = await import('yaml');
  const documents = parseAllDocuments(text);
  return [...documents].flatMap((document) => {
    const error = document.errors[0];
    if (error) throw new UsageError(`${file}: ${error.message.split('\n', 1)[0]}`);
    const value: unknown = document.toJS();
    return value === null ? [] : [value];
  });
}

function specOf(draft: unknown, at: number, count: number, io: CliIo): SubmittedSpec {
  const where = count > 1 ? `job ${at + 1}: ` : '';
  if (typeof draft !== 'object' || draft === null || Array.isArray(draft)) {
    throw new UsageError(`${where}is not a job`, 'a job is a list of keys: command, gpus, …');
  }
  try {
    return toSpec(draft as JobDraft, { cwd: io.cwd, env: io.env, label: (key) => key });
  } catch (error) {
    if (!(error instanceof UsageError) || where === '') throw error;
    throw new UsageError(where + error.message, error.hint);
  }
}

async function submitAll(context: CommandContext, specs: SubmittedSpec[]): Promise<string[]> {
  checkOrder(specs);
  const client = context.client();
  const all: string[] = [];
  for (let from = 0; from < specs.length; from += BATCH_JOBS) {
    const part = linkBack(specs.slice(from, from + BATCH_JOBS), idsByName(specs, all));
    const ids =
      specs.length === 1
        ? [(await client.submitJob(part[0]!, randomUUID())).id]
        : (await client.submitBatch(part, randomUUID())).ids;
    all.push(...ids);
    // At once, so that a failure later on does not hide what was accepted.
    if (!context.json) await context.print(ids.join('\n'));
  }
  return all;
}
