/** drover gc: what is stored and nothing names any more. */
import type { OptionTable } from './args.ts';
import { UsageError } from './args.ts';
import { defineCommand, takePositionals } from './command.ts';
import { ago } from './durations.ts';
import { EXIT } from './exitCodes.ts';
import { showMemory } from './resources.ts';
import { printTable } from './table.ts';

/** More do not help a person. */
const SHOWN = 20;

const options = {
  plan: { kind: 'flag', help: 'say what would go, and remove nothing' },
  apply: { kind: 'flag', help: 'remove it' },
} as const satisfies OptionTable;

export const gcCommand = defineCommand({
  name: 'gc',
  summary: 'Remove stored bytes that no job, result, checkpoint or data set names',
  usage: ['gc --plan', 'gc --apply'],
  options,
  details:
    "Of the caller's tenant. What came or was asked for within a day is spared: a job that\n" +
    'names it may be on its way. Needs a token with the scope fleet:manage.',
  async run(parsed, context) {
    takePositionals(parsed, []);
    const { plan, apply } = parsed.options;
    if (plan === apply) throw new UsageError('say --plan to look, or --apply to remove');
    const found = await context.client().collectBlobs(apply);
    if (context.json) {
      await context.printJson(found);
      return EXIT.ok;
    }
    const nowMs = context.io.now();
    await printTable(context.io, found.listed.slice(0, SHOWN), [
      { title: 'BLOB', value: ({ hash }) => hash },
      { title: 'SIZE', value: ({ size }) => showMemory(size) },
      { title: 'UNUSED SINCE', value: ({ modifiedAtMs }) => ago(modifiedAtMs, nowMs) },
    ]);
    const more = found.blobs - Math.min(SHOWN, found.listed.length);
    if (more > 0) await context.print(`… and ${more} more`);
    const what = `${found.blobs} blobs, ${showMemory(found.bytes)}`;
    await context.print(apply ? `removed ${what}` : `would remove ${what}`);
    const spared = `${found.sparedBlobs} blobs, ${showMemory(found.sparedBytes)}`;
    await context.print(
      `spared as younger than a day: ${spared}; ` +
        `in use: ${found.keptBlobs} blobs, ${showMemory(found.keptBytes)}`,
    );
    return EXIT.ok;
  },
});
