/** Finds the blobs that nothing names, and removes them. A failed read ends it: unknown is kept. */
import type { Clock } from '../lib/clock.ts';
import { isBlobHash, type BlobHash } from '../model/blob.ts';
import { parseManifest } from '../model/manifest.ts';
import type { BlobEntry, BlobStore } from './contract.ts';

/**
 * What came or was asked for later is spared: bundles are sent before the job that names them, and
 * results and checkpoints before they count. The store's own marks may be an hour old.
 */
const YOUNG_MS = 24 * 3_600_000;
/** A longer list of files is no manifest of ours. */
const MANIFEST_BYTES = 1024 ** 3;
/** Manifests read at once. */
const AT_ONCE = 8;

interface Tally {
  blobs: number;
  bytes: number;
}

export interface Collection {
  unnamed: BlobEntry[];
  spared: Tally;
  kept: Tally;
}

export interface CollectOptions {
  store: BlobStore;
  tenant: string;
  /** Every blob:HASH and tree:HASH that keeps one. */
  names: AsyncIterable<string>;
  clock: Clock;
}

export async function findUnnamed(options: CollectOptions): Promise<Collection> {
  const { store, tenant, clock } = options;
  const named = await namedHashes(options);
  const found: Collection = {
    unnamed: [],
    spared: { blobs: 0, bytes: 0 },
    kept: { blobs: 0, bytes: 0 },
  };
  const oldest = clock.now() - YOUNG_MS;
  for await (const entry of store.list(tenant)) {
    if (named.has(entry.hash)) count(found.kept, entry);
    else if (entry.modifiedAtMs > oldest) count(found.spared, entry);
    else found.unnamed.push(entry);
  }
  return found;
}

function count(tally: Tally, { size }: BlobEntry): void {
  tally.blobs++;
  tally.bytes += size;
}

/** Those that are still as old as they were: who asked for one meanwhile relies on it. */
export async function removeUnnamed(
  { store, tenant, clock }: CollectOptions,
  unnamed: readonly BlobEntry[],
): Promise<BlobEntry[]> {
  const removed: BlobEntry[] = [];
  for (const entry of unnamed) {
    const now = await store.stat(tenant, entry.hash);
    if (!now || now.modifiedAtMs > clock.now() - YOUNG_MS) continue;
    if (await store.remove(tenant, entry.hash)) removed.push(entry);
  }
  return removed;
}

async function namedHashes({ store, tenant, names }: CollectOptions): Promise<Set<BlobHash>> {
  const named = new Set<BlobHash>();
  const trees = new Set<BlobHash>();
  for await (const name of names) {
    const colon = name.indexOf(':');
    const hash = name.slice(colon + 1);
    if (!isBlobHash(hash)) continue;
    named.add(hash);
    if (name.startsWith('tree:')) trees.add(hash);
  }
  const waiting = [...trees];
  const reader = async (): Promise<void> => {
    for (let hash = waiting.pop(); hash; hash = waiting.pop()) {
      for (const file of await filesOf(store, tenant, hash)) named.add(file);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, reader));
  return named;
}

/** None where the manifest is gone or is none: then it keeps nothing. */
async function filesOf(store: BlobStore, tenant: string, hash: BlobHash): Promise<BlobHash[]> {
  const known = await store.stat(tenant, hash);
  if (!known || known.size > MANIFEST_BYTES) return [];
  const chunks: Buffer[] = [];
  for await (const chunk of await store.open(tenant, hash)) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString();
  try {
    return parseManifest(text).files.map((file) => file.hash);
  } catch {
    // The bytes are whole, the store saw to that; they just list nothing.
    return [];
  }
}
