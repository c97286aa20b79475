/** drover data: bytes under a name, for jobs to use as `data:NAME`. */
import path from 'node:path';
import { DATA_NAME, type DataView } from '../protocol/dataSets.ts';
import { UsageError, type OptionTable } from './args.ts';
import { sendData } from './bundle/bringParts.ts';
import { defineCommand, takePositionals, type CommandContext } from './command.ts';
import { ago } from './durations.ts';
import { EXIT } from './exitCodes.ts';
import { printList } from './paging.ts';
import { showMemory } from './resources.ts';
import type { Column } from './table.ts';

const options = {
  name: { kind: 'text', value: 'NAME', help: 'put: how jobs call it (else as the file is called)' },
} as const satisfies OptionTable;

export const dataCommand = defineCommand({
  name: 'data',
  summary: 'Put, list and remove data that jobs use by name',
  usage: ['data put PATH [--name NAME]', 'data ls', 'data rm NAME'],
  options,
  details:
    'A folder goes whole; what the server has already is not sent again. A name that exists\n' +
    'means the new bytes from then on; jobs that were submitted before keep theirs.\n\n' +
    'examples:\n' +
    '  drover data put ./imagenet-100\n' +
    '  drover run --input train=data:imagenet-100 -- python3 train.py',
  async run(parsed, context) {
    const [verb, ...positionals] = parsed.positionals;
    const rest = { positionals, rest: parsed.rest };
    const { name } = parsed.options;
    if (verb === 'put') return put(context, takePositionals(rest, ['PATH'])[0]!, name);
    if (name !== undefined) throw new UsageError('--name is for drover data put');
    if (verb === 'rm') return remove(context, takePositionals(rest, ['NAME'])[0]!);
    if (verb === 'ls' || verb === undefined) return show(context, takePositionals(rest, []));
    throw new UsageError(`drover data ${verb} is not known`, 'drover data put, ls or rm');
  },
});

async function put(context: CommandContext, local: string, named?: string): Promise<number> {
  const full = path.resolve(context.io.cwd, local);
  const name = named ?? path.basename(full);
  if (!DATA_NAME.test(name)) {
    const hint = 'give it one with --name: letters, digits, dots, dashes and underscores';
    throw new UsageError(`${JSON.stringify(name)} cannot be the name of a data set`, hint);
  }
  const { hash, folder, files, bytes, sentBytes } = await sendData(context, full);
  const kind = folder ? 'tree' : 'blob';
  const view = await context.client().putData({ name, kind, hash, bytes, files });
  if (context.json) await context.printJson({ ...view, sentBytes });
  else await context.print(`data:${view.name}  version ${view.version}  ${showMemory(bytes)}`);
  return EXIT.ok;
}

async function show(context: CommandContext, _none: string[]): Promise<number> {
  const items = await context.client().listData();
  const nowMs = context.io.now();
  const columns: Column<DataView>[] = [
    { title: 'NAME', value: ({ name }) => name },
    { title: 'VERSION', value: ({ version }) => String(version) },
    { title: 'SIZE', value: ({ bytes }) => showMemory(bytes) },
    { title: 'FILES', value: ({ files }) => String(files) },
    { title: 'PUT', value: ({ createdAtMs }) => ago(createdAtMs, nowMs) },
    { title: 'BY', value: ({ createdBy }) => createdBy },
    { title: 'HASH', value: ({ kind, hash }) => `${kind}:${hash}` },
  ];
  const whenEmpty = 'no data; `drover data put PATH` brings some';
  await printList(context, { items, more: false }, columns, whenEmpty);
  return EXIT.ok;
}

async function remove(context: CommandContext, name: string): Promise<number> {
  await context.client().removeData(name);
  if (context.json) await context.printJson({ name, removed: true });
  else await context.print(`data:${name} is removed; jobs that used it keep it`);
  return EXIT.ok;
}
