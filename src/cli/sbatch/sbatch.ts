/** drover sbatch: a batch script for Slurm, submitted as it is. */
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { hostname, userInfo } from 'node:os';
import path from 'node:path';
import type { DroverClient } from '../../protocol/client.ts';
import type { SubmittedSpec } from '../../protocol/jobSpec.ts';
import { UsageError } from '../args.ts';
import { bringParts } from '../bundle/bringParts.ts';
import { defineCommand, type CommandContext } from '../command.ts';
import { EXIT } from '../exitCodes.ts';
import { readAll, type CliIo } from '../io.ts';
import { toSpec } from '../jobDraft.ts';
import { explainEnd, judgeEnd, waitForEnd } from '../jobEnd.ts';
import { showPlan } from '../plan.ts';
import { mapSbatch, type Mapped } from './map.ts';
import { arrange, mergeSettings, readCommandLine, readScript } from './settings.ts';
import { readVariables, type Settings } from './settings.ts';
import { readTable } from './table.ts';
import { checkScript } from './words.ts';

/** One word of an environment, which Linux limits to 128 KiB. */
export const SCRIPT_BYTES = 120 * 1024;

export const sbatchCommand = defineCommand({
  name: 'sbatch',
  summary: 'Submit a batch script written for Slurm',
  usage: ['sbatch [options of sbatch] SCRIPT [ARGUMENT…]', 'sbatch [options] --wrap COMMAND'],
  options: {
    'dry-run': { kind: 'flag', help: 'print the job as YAML for `drover submit -f`, and stop' },
    workdir: { kind: 'text', value: 'DIR', help: './DIR goes along; else the worker has this one' },
    strict: { kind: 'flag', help: 'refuse when anything could not be mapped' },
  },
  details:
    'Takes sbatch’s options on the command line, in SBATCH_ variables and on #SBATCH lines;\n' +
    'what has no equivalent is listed on stderr. --test-only says where and when it would run,\n' +
    '--wait exits with the job’s code, --parsable prints the id alone. Partitions, QOS and\n' +
    'features are mapped by ~/.config/drover/sbatch.yaml (or DROVER_SBATCH_TABLE).\n\n' +
    'examples:\n' +
    '  drover sbatch train.sh --epochs 10\n' +
    '  drover sbatch --dependency=afterok:JOB -t 2:00:00 evaluate.sh\n' +
    '  drover sbatch --dry-run train.sh > train.yaml',
  arrange,
  async run({ options, rest }, context) {
    const commandLine = readCommandLine(rest ?? []);
    const { settings, ...script } = await readRequest(commandLine, context.io);
    const { cwd, env } = context.io;
    const from = { cwd, env, host: hostname(), user: userInfo().username };
    const { workdir } = options;
    const table = await readTable(env);
    const mapped = mapSbatch({ ...script, ...from, settings, table, workdir });
    await tellUnmapped(context, mapped, options.strict);
    if (options['dry-run']) return dryRun(context, mapped);
    const spec = toSpec(mapped.draft, { cwd, env, label: (key) => key });
    if (settings.has('test-only')) return showPlan(context, spec);
    return submit(context, spec, mapped, settings);
  },
});

interface Request {
  settings: Settings;
  script: string;
  name: string;
  args: string[];
}

async function readRequest(
  { settings, rest }: ReturnType<typeof readCommandLine>,
  io: CliIo,
): Promise<Request> {
  const wrapped = settings.get('wrap')?.value;
  if (wrapped !== undefined && rest.length > 0) {
    throw new UsageError('--wrap and a script exclude each other');
  }
  const [file, ...args] = rest;
  const script = wrapped === undefined ? await readText(file, io) : `#!/bin/sh\n${wrapped}\n`;
  const shown = file ?? 'the script';
  checkScript(script, shown);
  if (Buffer.byteLength(script) > SCRIPT_BYTES) {
    throw new UsageError(
      `${shown} is ${Buffer.byteLength(script)} bytes; the limit is ${SCRIPT_BYTES}`,
      'keep data in files of their own',
    );
  }
  const inScript = wrapped === undefined ? readScript(script, shown) : new Map();
  const name = wrapped === undefined ? path.basename(file ?? 'sbatch') : 'wrap';
  const all = mergeSettings(inScript, readVariables(io.env), settings);
  return { settings: all, script, name: name === '-' ? 'sbatch' : name, args };
}

async function readText(file: string | undefined, io: CliIo): Promise<string> {
  if (file === '-' || (file === undefined && !io.stdin.isTTY)) return readAll(io.stdin);
  if (file === undefined) throw new UsageError('SCRIPT is missing', 'drover sbatch train.sh');
  try {
    return readFileSync(path.resolve(io.cwd, file), 'utf8');
  } catch (error) {
    throw new UsageError(`${file} cannot be read: ${(error as Error).message}`);
  }
}

async function tellUnmapped(
  context: CommandContext,
  { unmapped }: Mapped,
  strict: boolean,
): Promise<void> {
  const lines = unmapped.map(({ option, from, why }) => `${option} (${from}): ${why}`);
  if (strict && lines.length > 0) {
    const count = `${lines.length} ${lines.length === 1 ? 'option' : 'options'}`;
    throw new UsageError(
      `${count} could not be mapped: ${lines.join('; ')}`,
      'take them out, or leave out --strict',
    );
  }
  for (const line of lines) await context.notice(`not mapped: ${line}`);
}

async function dryRun(context: CommandContext, mapped: Mapped): Promise<number> {
  const { draft, unmapped } = mapped;
  if (mapped.singleton) await context.notice('--dependency=singleton is looked up when submitted');
  if (context.json) {
    await context.printJson({ job: draft, unmapped });
    return EXIT.ok;
  }
  const { stringify } = await import('yaml');
  await context.print(stringify(draft, { lineWidth: 0 }).trimEnd());
  return EXIT.ok;
}

async function submit(
  context: CommandContext,
  spec: SubmittedSpec,
  { unmapped, singleton }: Mapped,
  settings: Settings,
): Promise<number> {
  const client = context.client();
  if (singleton) spec.after = [...(spec.after ?? []), ...(await namesakes(client, spec.name!))];
  const [brought] = await bringParts(context, [spec]);
  const { id } = await client.submitJob(brought!, randomUUID());
  if (context.json) await context.printJson({ id, unmapped });
  else if (settings.has('parsable')) await context.print(id);
  else if (!settings.has('quiet')) await context.print(`Submitted batch job ${id}`);
  if (!settings.has('wait')) return EXIT.ok;
  const end = await judgeEnd(client, await waitForEnd(client, id, {}));
  if (!context.json) await explainEnd(context, end);
  return end.exitCode;
}

/** Jobs of this name that have not ended: one at a time is what singleton means. */
async function namesakes(
  client: DroverClient,
  name: string,
): Promise<NonNullable<SubmittedSpec['after']>> {
  const after: NonNullable<SubmittedSpec['after']> = [];
  for (const state of ['PENDING', 'RUNNING']) {
    const { items } = await client.listJobs({ name, state, limit: 100 });
    after.push(...items.map(({ id }) => ({ job: id, when: 'any' as const })));
  }
  return after;
}
