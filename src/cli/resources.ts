/** Resources as people write them: --gpus A100:2, --cpus 0.5, --mem 64G, --array 0-9,20%5. */
import type { SubmittedSpec } from '../protocol/jobSpec.ts';
import { UsageError } from './args.ts';

type Device = NonNullable<NonNullable<SubmittedSpec['resources']>['device']>;

const BINARY = { k: 2 ** 10, m: 2 ** 20, g: 2 ** 30, t: 2 ** 40 };
const DECIMAL = { k: 1e3, m: 1e6, g: 1e9, t: 1e12 };
const SIZE = /^(\d+(?:\.\d+)?)([kmgt])(i?b?)$/i;
const SHARE_OF_ONE = 1000;
/** So that a typo cannot fill the memory; the server's own limit is lower and says so. */
const ARRAY_EXPANSION_LIMIT = 100_000;

/** 64G is binary as in Slurm and Docker, and so is 64Gi and 64GiB; 64GB is decimal. */
export function parseMemory(text: string, what: string): number {
  const size = sizeOf(text, BINARY);
  if (size !== undefined) return size;
  throw new UsageError(
    `${what} ${JSON.stringify(text)} is not an amount of memory`,
    'write a number with its unit: 512M, 64G, 1.5T',
  );
}

function sizeOf(text: string, bareUnits: typeof BINARY): number | undefined {
  const match = SIZE.exec(text.trim());
  if (!match) return undefined;
  const [, amount, unit, suffix] = match;
  const kind = suffix!.toLowerCase();
  const units = kind.startsWith('i') ? BINARY : kind === 'b' ? DECIMAL : bareUnits;
  return Math.round(Number(amount) * units[unit!.toLowerCase() as keyof typeof BINARY]);
}

/** 2, 0.5 or 500m; in thousandths of a core. */
export function parseCpus(text: string, what: string): number {
  const match = /^(\d+(?:\.\d{1,3})?)(m?)$/.exec(text.trim());
  const millis = match ? Number(match[1]) * (match[2] ? 1 : 1000) : Number.NaN;
  if (millis >= 1) return Math.round(millis);
  throw new UsageError(
    `${what} ${JSON.stringify(text)} is not a number of cores`,
    'write 4, 0.5 or 500m',
  );
}

/** 1, 0.5, A100:2, A100,H100:2 or 80GB:1; null for 0. */
export function parseGpus(text: string, what: string): Device | null {
  const colon = text.lastIndexOf(':');
  const wanted = colon < 0 ? '' : text.slice(0, colon).trim();
  const amount = (colon < 0 ? text : text.slice(colon + 1)).trim();
  if (colon < 0 && !/^\d*\.?\d+$/.test(amount)) return parseGpus(`${amount}:1`, what);
  const quantity = /^\d*\.?\d+$/.test(amount) ? Number(amount) : Number.NaN;
  const shared = quantity < 1 && quantity >= 0.001;
  if ((colon >= 0 && wanted === '') || !(Number.isInteger(quantity) || shared)) throw badGpus();
  if (quantity === 0) return null;
  const count = shared
    ? { count: 1, share: Math.round(quantity * SHARE_OF_ONE) }
    : { count: quantity };
  if (wanted === '') return { kind: 'gpu', ...count };
  // Vendors' gigabytes are decimal: an "80GB" card shows 79.6 GiB, and must fit 80G and 80GB.
  const memoryBytes = sizeOf(wanted, DECIMAL);
  if (memoryBytes !== undefined) return { kind: 'gpu', ...count, memoryBytes };
  const models = wanted.split(',').map((model) => model.trim());
  if (!models.every((model) => /^[a-z0-9]/i.test(model))) throw badGpus();
  return { kind: 'gpu', ...count, models };

  function badGpus(): UsageError {
    return new UsageError(
      `${what} ${JSON.stringify(text)} is not a GPU request`,
      'write 1, 0.5, A100:2 or 80GB:1',
    );
  }
}

/** 0-99, 0,3,7-9 or 0-100:10, the indices in the order written; %10 after it: ten at a time. */
export function parseArray(text: string, what: string): { indices: number[]; limit?: number } {
  const percent = text.indexOf('%');
  if (percent < 0) return { indices: parseIndices(text, what) };
  const limit = text.slice(percent + 1).trim();
  if (!/^[1-9]\d{0,8}$/.test(limit)) {
    throw new UsageError(
      `${what} ${text}: after % goes how many tasks may run at once`,
      `write ${what} ${text.slice(0, percent)}%10`,
    );
  }
  return { indices: parseIndices(text.slice(0, percent), what), limit: Number(limit) };
}

function parseIndices(text: string, what: string): number[] {
  const indices = new Set<number>();
  for (const part of text.split(',')) {
    for (const index of range(part.trim(), text, what)) {
      if (indices.has(index)) throw new UsageError(`${what} ${text}: ${index} appears twice`);
      indices.add(index);
    }
    if (indices.size > ARRAY_EXPANSION_LIMIT) throw tooMany(text, what);
  }
  return [...indices];
}

function range(part: string, text: string, what: string): number[] {
  const match = /^(\d{1,10})(?:-(\d{1,10})(?::(\d{1,10}))?)?$/.exec(part);
  const first = Number(match?.[1]);
  const last = Number(match?.[2] ?? first);
  const step = Number(match?.[3] ?? 1);
  if (!match || step < 1) {
    throw new UsageError(
      `${what} ${JSON.stringify(text)} is not a list of indices`,
      'write 0-99, 0,3,7-9 or 0-100:10',
    );
  }
  if (last < first) {
    throw new UsageError(`${what} ${text}: ${part} runs backwards`, `write ${last}-${first}`);
  }
  const count = Math.floor((last - first) / step) + 1;
  if (count > ARRAY_EXPANSION_LIMIT) throw tooMany(text, what);
  return Array.from({ length: count }, (_, i) => first + i * step);
}

function tooMany(text: string, what: string): UsageError {
  return new UsageError(`${what} ${text} is more than ${ARRAY_EXPANSION_LIMIT} tasks`);
}

export function showMemory(bytes: number): string {
  if (bytes === 0) return '0';
  const units = [
    [BINARY.t, 'T'],
    [BINARY.g, 'G'],
    [BINARY.m, 'M'],
  ] as const;
  for (const [size, letter] of units) {
    if (bytes >= size) return `${Number((bytes / size).toFixed(1))}${letter}`;
  }
  return `${Math.ceil(bytes / BINARY.k)}K`;
}

export function showCpus(millis: number): string {
  return String(millis / 1000);
}
