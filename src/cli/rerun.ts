/** drover rerun: the same job once more, or with something changed. */
import path from 'node:path';
import type { SubmittedSpec } from '../protocol/jobSpec.ts';
import { UsageError, type OptionTable } from './args.ts';
import { BUNDLE_OPTION } from './bundle/bringCode.ts';
import { bringParts } from './bundle/bringParts.ts';
import { defineCommand, takePositionals } from './command.ts';
import { runToEnd, submitOnly } from './run.ts';

const options = {
  set: { kind: 'list', value: 'KEY=VALUE', help: 'change this: env.LR=0.1, resources.ports=2' },
  'bundle-limit': BUNDLE_OPTION,
  follow: { kind: 'flag', short: 'f', help: 'follow its log and exit with its code, as run does' },
  detach: { kind: 'flag', short: 'd', help: 'print the id and return at once (as without it)' },
} as const satisfies OptionTable;

export const rerunCommand = defineCommand({
  name: 'rerun',
  summary: 'Run a job again: same code, same data, or with something changed',
  usage: ['rerun ID [--set KEY=VALUE …] [-f]'],
  options,
  details:
    'Prints the new id. Keys are those of `drover job ID --capsule`; an empty value takes the\n' +
    'key away. `--set workdir=.` brings the code of this folder instead.\n\n' +
    'examples:\n' +
    '  drover rerun JOB --set env.SEED=2 --set resources.device.count=2\n' +
    '  drover diff JOB $(drover rerun JOB --set workdir=.)',
  async run(parsed, context) {
    const [id] = takePositionals(parsed, ['ID']);
    const { follow, detach } = parsed.options;
    if (follow && detach) throw new UsageError('--follow and --detach exclude each other');
    const client = context.client();
    const { spec } = await client.capsule(id!);
    const changed = withChanges(spec, parsed.options.set);
    const [brought] = await bringParts(context, [changed], parsed.options['bundle-limit']);
    return follow ? runToEnd(context, client, brought!) : submitOnly(context, client, brought!);
  },
});

type Tree = Record<string, unknown>;

/** Values of variables and labels are texts; others are read as JSON where they are any. */
function withChanges(spec: SubmittedSpec, changes: readonly string[]): SubmittedSpec {
  const changed = structuredClone(spec) as SubmittedSpec & Tree;
  for (const change of changes) {
    const equals = change.indexOf('=');
    if (equals < 1) throw new UsageError(`--set ${change}: write --set KEY=VALUE`);
    const keys = change.slice(0, equals).split('.');
    const text = change.slice(equals + 1);
    const isText = keys[0] === 'env' || keys[0] === 'labels';
    setAt(changed, keys, isText ? text : valueOf(text), change);
  }
  // A folder of this machine takes the place of the code that was.
  const { workdir } = changed;
  if (workdir && !path.isAbsolute(workdir)) delete changed.code;
  return changed;
}

function valueOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // A plain word needs no quotes.
    return text;
  }
}

function setAt(tree: Tree, keys: string[], value: unknown, change: string): void {
  let at = tree;
  for (const key of keys.slice(0, -1)) {
    const next = at[key] ?? {};
    if (typeof next !== 'object') throw new UsageError(`--set ${change}: ${key} has no parts`);
    at[key] = next;
    at = next as Tree;
  }
  const last = keys.at(-1)!;
  if (value === '' && keys[0] !== 'env' && keys[0] !== 'labels') delete at[last];
  else at[last] = value;
}
