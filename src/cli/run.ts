/** drover run: submits, follows the log, and exits with the job's code. */
import { randomUUID } from 'node:crypto';
import type { DroverClient } from '../protocol/client.ts';
import type { SubmittedSpec } from '../protocol/jobSpec.ts';
import { UsageError, type OptionTable, type OptionValues } from './args.ts';
import { BUNDLE_OPTION } from './bundle/bringCode.ts';
import { bringParts } from './bundle/bringParts.ts';
import { defineCommand, type CommandContext } from './command.ts';
import { labelsFromList } from './environment.ts';
import { EXIT } from './exitCodes.ts';
import { detach, watchInterrupts } from './interrupts.ts';
import type { CliIo } from './io.ts';
import { ruleOptions } from './ruleDraft.ts';
import { environmentOptions } from './environmentDraft.ts';
import { keepOptions } from './keepDraft.ts';
import { toSpec } from './jobDraft.ts';
import { explainEnd, judgeEnd, waitForEnd } from './jobEnd.ts';
import { exactOutput, jsonOutput, prefixedOutput } from './logOutput.ts';
import { showReceiptLine } from './receipt.ts';
import { showPlan } from './plan.ts';
import { showWaitStatus } from './waitStatus.ts';

const placementOptions = {
  constraint: { kind: 'list', value: 'TEST', help: 'only workers where rack=b12, "cuda>12", …' },
  prefer: {
    kind: 'list',
    value: 'TEST',
    help: 'such workers first: "disk in nvme,ssd", exists:nvlink',
  },
  spread: { kind: 'flag', help: 'on the emptiest workers, not packed' },
  exclusive: { kind: 'flag', help: 'nobody else on its workers' },
  'anti-affinity': { kind: 'text', value: 'NAME', help: 'no two tasks of this NAME on one worker' },
  locality: { kind: 'text', value: 'ATTR', help: 'a gang within one rack, zone, …' },
  after: {
    kind: 'list',
    value: 'JOB[:HOW]',
    help: 'when JOB has ended: ok (default), failed or any',
  },
  spot: { kind: 'flag', help: 'interruptible: may go where machines vanish, stopped first' },
  trust: { kind: 'text', value: 'T', help: 'restricted: never on machines of strangers' },
  'max-cost': { kind: 'text', value: 'M', help: 'stop when it has cost this much: 4.10' },
} as const satisfies OptionTable;

export const jobOptions = {
  gpus: { kind: 'text', value: 'N', help: '1, 0.5, A100:2 (model) or 80GB:1 (memory)' },
  cpus: { kind: 'text', value: 'N', help: 'cores: 4, 0.5 (default 1)' },
  mem: { kind: 'text', value: 'SIZE', help: 'memory: 512M, 64G' },
  array: {
    kind: 'text',
    value: 'LIST',
    help: 'one task per index: 0-99, 0,3,7-9; %10: ten at once',
  },
  gang: { kind: 'text', alias: 'nodes', value: 'N', help: 'N tasks that start together' },
  pool: { kind: 'text', value: 'POOL', help: 'only on workers of this pool' },
  ...placementOptions,
  env: { kind: 'list', value: 'K=V|K', help: 'a variable; K alone is taken from this shell' },
  'env-file': { kind: 'list', value: 'FILE', help: 'lines of K=V' },
  workdir: { kind: 'text', value: 'DIR', help: './DIR goes along; /DIR is one of the worker' },
  'bundle-limit': BUNDLE_OPTION,
  input: { kind: 'list', value: 'NAME=URI', help: 'read-only at $DROVER_INPUTS/NAME' },
  retries: { kind: 'text', value: 'N', help: 'start again up to N times after a failure' },
  time: { kind: 'text', value: 'D', help: 'time limit: 90m, 2h, 1-00:00:00' },
  ...environmentOptions,
  ...keepOptions,
  ...ruleOptions,
  'start-within': { kind: 'text', value: 'D', help: 'give up when it has not started by then' },
  priority: { kind: 'text', value: 'P', help: 'production, interactive or batch (default)' },
  name: { kind: 'text', value: 'NAME', help: 'a name for lists' },
  label: { kind: 'list', value: 'K=V', help: 'a label' },
  ports: { kind: 'text', value: 'N', help: 'TCP ports it needs on its worker' },
} as const satisfies OptionTable;

const options = {
  ...jobOptions,
  plan: { kind: 'flag', help: 'say where, when and for how much, and submit nothing' },
  detach: { kind: 'flag', short: 'd', help: 'print the id and return at once' },
} as const satisfies OptionTable;

export const runCommand = defineCommand({
  name: 'run',
  summary: 'Run a command: follow its log and exit with its code',
  usage: ['run [options] -- COMMAND [ARGUMENT…]'],
  options,
  details:
    'Ctrl-C detaches and the job goes on; a second Ctrl-C cancels it.\n\n' +
    'examples:\n' +
    '  drover run -- python3 -c \'print("hi")\'\n' +
    '  drover run --gpus A100:2 --time 2h -- torchrun train.py\n' +
    "  drover run --array 0-99%10 -- sh -c 'echo $DROVER_ARRAY_INDEX'\n" +
    '  drover run --constraint rack=b12 --after JOB -- ./evaluate.sh',
  failureCode: EXIT.drover,
  async run({ options, positionals, rest }, context) {
    const spec = specFromFlags(options, requireCommand(positionals, rest), context.io);
    if (options.plan) {
      if (options.detach) throw new UsageError('--plan and --detach exclude each other');
      return showPlan(context, spec);
    }
    const client = context.client();
    const [brought] = await bringParts(context, [spec], options['bundle-limit']);
    return options.detach
      ? submitOnly(context, client, brought!)
      : runToEnd(context, client, brought!);
  },
});

function requireCommand(positionals: string[], command: string[] | undefined): string[] {
  if (positionals.length === 0 && command?.length) return command;
  const words = positionals.length > 0 ? positionals.join(' ') : 'COMMAND';
  const message = positionals.length > 0 ? 'the command goes after --' : 'there is no command';
  throw new UsageError(message, `drover run … -- ${words}`);
}

/** Flags of `run` other than those that describe the job are ignored. */
export function specFromFlags(
  flags: OptionValues<typeof jobOptions>,
  command: string[],
  io: CliIo,
): SubmittedSpec {
  const own = Object.entries(flags).filter(([name]) => Object.hasOwn(jobOptions, name));
  const { label, 'bundle-limit': _, ...plain } = Object.fromEntries(own) as typeof flags;
  const labels = label.length > 0 ? labelsFromList(label, '--label') : undefined;
  const draft = { ...plain, labels, command };
  return toSpec(onlySet(draft), { cwd: io.cwd, env: io.env, label: flagName });
}

function flagName(key: string): string {
  if (key === 'labels' || key === 'inputs') return `--${key.slice(0, -1)}`;
  return `--${key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

function onlySet(draft: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(draft).filter(([, value]) => isSet(value)));
}

function isSet(value: unknown): boolean {
  if (Array.isArray(value)) return value.length > 0;
  return value !== undefined && value !== false;
}

export async function submitOnly(
  context: CommandContext,
  client: DroverClient,
  spec: SubmittedSpec,
): Promise<number> {
  const submitted = await client.submitJob(spec, randomUUID());
  await (context.json ? context.printJson(submitted) : context.print(submitted.id));
  return EXIT.ok;
}

export async function runToEnd(
  context: CommandContext,
  client: DroverClient,
  spec: SubmittedSpec,
): Promise<number> {
  const interrupts = watchInterrupts(context.io);
  let id: string | undefined;
  try {
    const submitted = await client.submitJob(spec, randomUUID(), interrupts.first);
    id = submitted.id;
    if (context.json) await context.printJson({ type: 'job', ...submitted });
    else if (context.io.stderr.isTTY) await context.notice(`job ${id}`);
    return await followToEnd(context, client, id, spec, interrupts.first);
  } catch (error) {
    if (!interrupts.first.aborted) throw error;
    if (id !== undefined) return await detach(context, client, id, interrupts);
    await context.notice('stopped while submitting; `drover jobs` shows whether it was accepted');
    return EXIT.interrupt;
  } finally {
    interrupts.stop();
  }
}

async function followToEnd(
  context: CommandContext,
  client: DroverClient,
  id: string,
  spec: SubmittedSpec,
  signal: AbortSignal,
): Promise<number> {
  const { io, json } = context;
  const merged = spec.shape !== undefined && spec.shape.kind !== 'single';
  const output = json ? jsonOutput(io) : merged ? prefixedOutput(io) : exactOutput(io);
  const status = showWaitStatus(io, client, id);
  const onReconnect = async (): Promise<void> => {
    if (io.stderr.isTTY) await context.notice('the connection broke, trying again');
  };
  try {
    for await (const record of client.followLogs(id, { signal, onReconnect })) {
      await status.clear();
      await output.write(record);
    }
    await output.end();
    const end = await judgeEnd(client, await waitForEnd(client, id, { signal, serverKnown: true }));
    await status.clear();
    if (json) await context.printJson({ type: 'end', exitCode: end.exitCode, job: end.job });
    else {
      await explainEnd(context, end);
      await showReceiptLine(context, id);
    }
    return end.exitCode;
  } finally {
    await status.clear();
  }
}
