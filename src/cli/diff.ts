/** drover diff: what changed between two jobs, one of which worked. */
import { isBlobHash } from '../model/blob.ts';
import { parseManifest, type Manifest } from '../model/manifest.ts';
import { readBlob, type BlobClientOptions } from '../protocol/blobClient.ts';
import { USED_PREFIX } from '../model/metric.ts';
import type { CapsuleView } from '../protocol/capsule.ts';
import { defineCommand, takePositionals } from './command.ts';
import { EXIT } from './exitCodes.ts';
import { printable, printTable } from './table.ts';

/** A list of half a million files. */
const MANIFEST_BYTES = 128 * 2 ** 20;
/** Differences shown to a person; `--json` has all. */
const SHOWN = 200;
const LONGEST_VALUE = 60;

export interface Difference {
  what: 'outcome' | 'spec' | 'code' | 'input' | 'fact';
  name: string;
  good: string | null;
  bad: string | null;
}

export const diffCommand = defineCommand({
  name: 'diff',
  summary: 'Name what changed between two jobs: spec, code, inputs, machines',
  usage: ['diff GOOD BAD'],
  options: {},
  details: 'Exits with 0 where they ran the same, with 1 where something differs.',
  async run(parsed, context) {
    const [goodId, badId] = takePositionals(parsed, ['GOOD', 'BAD']);
    const client = context.client();
    const [good, bad] = await Promise.all([client.capsule(goodId!), client.capsule(badId!)]);
    const differences = [
      ...outcome(good, bad),
      ...specs(good.spec, bad.spec),
      ...(await code(context.blobs(), good.spec.code, bad.spec.code)),
      ...inputs(good, bad),
      ...facts(good, bad),
    ];
    const exitCode = differences.some(({ what }) => what !== 'outcome') ? EXIT.failed : EXIT.ok;
    if (context.json) {
      await context.printJson(differences);
      return exitCode;
    }
    if (differences.length === 0) {
      await context.print('they ran the same');
      return exitCode;
    }
    const show = (value: string | null): string => (value === null ? '-' : short(value));
    await printTable(context.io, differences.slice(0, SHOWN), [
      { title: 'WHAT', value: ({ what }) => what },
      { title: 'NAME', value: ({ name }) => name },
      { title: 'GOOD', value: ({ good: one }) => show(one) },
      { title: 'BAD', value: ({ bad: one }) => show(one) },
    ]);
    const more = differences.length - SHOWN;
    if (more > 0) await context.notice(`${more} more: --json has all`);
    return exitCode;
  },
});

function short(value: string): string {
  const text = printable(value);
  return text.length > LONGEST_VALUE ? `${text.slice(0, LONGEST_VALUE - 1)}…` : text;
}

function outcome(good: CapsuleView, bad: CapsuleView): Difference[] {
  const word = ({ state, exitCode }: CapsuleView): string =>
    exitCode === null ? state : `${state} ${exitCode}`;
  return compare('outcome', { state: word(good) }, { state: word(bad) });
}

function specs(good: CapsuleView['spec'], bad: CapsuleView['spec']): Difference[] {
  const leaves = (spec: CapsuleView['spec']) =>
    flatten({ ...spec, code: undefined, inputs: undefined }, '');
  return compare('spec', leaves(good), leaves(bad));
}

/** Commit and changed files, each by its path. */
async function code(
  blobs: BlobClientOptions,
  good: CapsuleView['spec']['code'],
  bad: CapsuleView['spec']['code'],
): Promise<Difference[]> {
  const whole = (one: typeof good) =>
    one ? { commit: one.commit || 'none', folder: one.folder } : {};
  const found = compare('code', whole(good), whole(bad));
  if (good?.bundle === bad?.bundle) return found;
  const [one, other] = await Promise.all([files(blobs, good), files(blobs, bad)]);
  return [...found, ...compare('code', one, other)];
}

async function files(
  blobs: BlobClientOptions,
  one: CapsuleView['spec']['code'],
): Promise<Record<string, string>> {
  if (!one || !isBlobHash(one.bundle)) return {};
  const text = await readBlob(blobs, one.bundle, { mostBytes: MANIFEST_BYTES });
  const manifest: Manifest = parseManifest(text.toString());
  return Object.fromEntries([
    ...manifest.files.map((file) => [file.path, `${file.hash}${file.executable ? ' x' : ''}`]),
    ...manifest.links.map((link) => [link.path, `-> ${link.target}`]),
  ]);
}

function inputs(good: CapsuleView, bad: CapsuleView): Difference[] {
  const named = ({ spec }: CapsuleView) =>
    Object.fromEntries((spec.inputs ?? []).map(({ name, uri }) => [name, uri]));
  return compare('input', named(good), named(bad));
}

/** Of the first task: where it ran, and with what. */
function facts(good: CapsuleView, bad: CapsuleView): Difference[] {
  const of = ({ attempts }: CapsuleView): Record<string, string> => {
    const [first] = attempts;
    if (!first) return {};
    const { machine } = first;
    const devices = machine?.devices.map(({ model }) => model).join(', ');
    return {
      worker: first.worker,
      ...(machine && { machine: machine.name, agent: machine.agentVersion }),
      ...(devices && { devices }),
      ...(machine && flatten(machine.attributes, 'attribute.')),
      // What it used differs from run to run, and is no reason for anything.
      ...withoutUsed(first.facts),
    };
  };
  return compare('fact', of(good), of(bad));
}

function withoutUsed(facts: Record<string, string>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(facts).filter(([name]) => !name.startsWith(USED_PREFIX)),
  );
}

/** The leaves of a value by their path. */
function flatten(value: unknown, prefix: string): Record<string, string> {
  const leaves: Record<string, string> = {};
  for (const [key, part] of Object.entries(value as object) as [string, unknown][]) {
    if (part === undefined) continue;
    const name = `${prefix}${key}`;
    const isTree = typeof part === 'object' && part !== null && !Array.isArray(part);
    if (isTree) Object.assign(leaves, flatten(part, `${name}.`));
    else leaves[name] = typeof part === 'string' ? part : JSON.stringify(part);
  }
  return leaves;
}

function compare(
  what: Difference['what'],
  good: Record<string, string>,
  bad: Record<string, string>,
): Difference[] {
  const names = new Set([...Object.keys(good), ...Object.keys(bad)]);
  return [...names].toSorted().flatMap((name) => {
    const [one, other] = [good[name] ?? null, bad[name] ?? null];
    return one === other ? [] : [{ what, name, good: one, bad: other }];
  });
}
