/** A site's names in Drover's words: which pool a partition is, which band a QOS. */
import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import { UsageError } from '../args.ts';
import type { Environment } from '../environment.ts';
import type { JobDraft } from '../jobDraft.ts';

/** A text is the pool of a partition, the band of a QOS, the test of a feature; else job keys. */
type Entry = string | JobDraft;

const PARTS = ['partitions', 'qos', 'constraints'] as const;

export interface SiteTable extends Record<(typeof PARTS)[number], Record<string, Entry>> {
  /** The channel of the server's settings that --mail-type goes to; empty: nowhere. */
  mail: string;
}

export const EMPTY_TABLE: SiteTable = { partitions: {}, qos: {}, constraints: {}, mail: '' };

/** DROVER_SBATCH_TABLE, else sbatch.yaml beside the login file, where it may be missing. */
export async function readTable(env: Environment): Promise<SiteTable> {
  const named = env['DROVER_SBATCH_TABLE'];
  const config = env['XDG_CONFIG_HOME'] || path.join(env['HOME'] || homedir(), '.config');
  const file = named || path.join(config, 'drover', 'sbatch.yaml');
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if (!named && (error as NodeJS.ErrnoException).code === 'ENOENT') return EMPTY_TABLE;
    throw new UsageError(`${file} cannot be read: ${(error as Error).message}`);
  }
  return parseTable(text, file);
}

export async function parseTable(text: string, file: string): Promise<SiteTable> {
  const { parseDocument } = await import('yaml');
  const document = parseDocument(text);
  const problem = document.errors[0];
  if (problem) throw new UsageError(`${file}: ${problem.message.split('\n', 1)[0]}`);
  const value: unknown = document.toJS() ?? {};
  const table: SiteTable = { partitions: {}, qos: {}, constraints: {}, mail: '' };
  for (const [part, names] of Object.entries(mapOf(value, file))) {
    if (part === 'mail' && typeof names === 'string') {
      table.mail = names;
      continue;
    }
    const known = PARTS.find((one) => one === part);
    if (!known) throw new UsageError(`${file}: unknown key ${part}`, `${PARTS.join(', ')}, mail`);
    for (const [name, entry] of Object.entries(mapOf(names, `${file}: ${part}`))) {
      const is = typeof entry === 'string' ? entry : mapOf(entry, `${file}: ${part}.${name}`);
      table[known][name] = is;
    }
  }
  return table;
}

function mapOf(value: unknown, what: string): Record<string, unknown> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    return value as Record<string, unknown>;
  }
  throw new UsageError(`${what} is not a list of names and values`);
}
