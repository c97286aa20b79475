/**
 * A snapshot of a checkpoint directory. Meant is: what the command had finished saving. A file
 * counts once it was renamed into the directory, which cannot be seen afterwards; so everything
 * counts except what shows that it is unfinished, and where that cannot be told, it does not count:
 * - names that begin with `.` or end in .tmp, .part or .partial;
 * - what a process has open for writing, and what changed while it was read;
 * - after an unclean end, what is new and shows no rename: a rename sets the time of change and not
 *   that of the content.
 * Of what does not count the last version stays, and as long as something does not count nothing
 * is taken away either: its predecessor may have been removed for it.
 */
import { sleep, type Clock } from '../../lib/clock.ts';
import type { Manifest, ManifestFile, ManifestLink } from '../../model/manifest.ts';
import type { BlobClientOptions } from '../../protocol/blobClient.ts';
import {
  emptyFolders,
  listFolder,
  parentsOf,
  type FoundFile,
  type Listing,
} from '../folders/listFolder.ts';
import { identityOf, storeFiles } from '../folders/storeFiles.ts';
import type { Known, Record } from './record.ts';
import { openForWriting } from './writers.ts';

/** So often a directory that changes while it is read is read again. */
const TRIES = 4;
/** Times on disk are no finer than a tick of the kernel: a younger file may change unseen. */
const SETTLE_MS = 20;

export interface SnapshotOptions {
  blobs: BlobClientOptions;
  folder: string;
  record: Record;
  /** Processes that may write there. */
  pids: () => number[];
  /** The command did not end by itself: what it was writing is cut short. */
  unclean: boolean;
  clock: Clock;
  signal: AbortSignal;
}

export interface Snapshot {
  manifest: Manifest;
  known: { [path: string]: Known };
  /** Files that did not count. */
  skipped: string[];
}

/** Every blob of it is stored when it resolves. */
export async function takeSnapshot(options: SnapshotOptions): Promise<Snapshot> {
  const { folder, blobs, signal } = options;
  const known = { ...options.record.known };
  /** Stored now: whole as they were, though the command may have put newer ones in their place. */
  const stored = new Set<string>();
  let listing = listIt(folder);
  for (let tried = 0; tried < TRIES; tried++) {
    const finished = finishedOf(listing, known, options);
    const young = hasYoung(finished, listing, options);
    const settle = young ? () => sleep(options.clock, SETTLE_MS) : undefined;
    for (const outcome of await storeFiles(blobs, finished, { signal, settle })) {
      if (outcome.kind === 'changed') continue;
      known[outcome.file.path] = { identity: outcome.identity, file: outcome.file };
      stored.add(outcome.file.path);
    }
    listing = listIt(folder);
    // Something came meanwhile, which what was seen before may lead to.
    if (listing.files.every((file) => isKnown(file, known) || stored.has(file.path))) break;
  }
  return compose(listing, { known, stored }, options.record.manifest);
}

function isHidden(name: string): boolean {
  return name.startsWith('.') || /\.(tmp|part|partial)$/.test(name);
}

export function listIt(folder: string): Listing {
  return listFolder(folder, { ignore: isHidden });
}

/** New files that look finished. */
export function finishedOf(
  listing: Listing,
  known: Record['known'],
  { pids, unclean }: Pick<SnapshotOptions, 'pids' | 'unclean'>,
): FoundFile[] {
  const fresh = listing.files.filter((file) => !isKnown(file, known));
  if (fresh.length === 0) return [];
  const written = openForWriting(pids(), fresh);
  return fresh.filter(
    (file) => !written.has(file.path) && (!unclean || wasRenamed(file, listing.folders)),
  );
}

function isKnown({ path, stat }: FoundFile, known: Record['known']): boolean {
  return known[path]?.identity === identityOf(stat);
}

/** It, or a folder it lies in after its last byte was written. */
function wasRenamed({ path, stat }: FoundFile, folders: Listing['folders']): boolean {
  if (stat.ctimeNs > stat.mtimeNs) return true;
  return folders.some(
    (folder) =>
      path.startsWith(`${folder.path}/`) &&
      folder.stat.ctimeNs > folder.stat.mtimeNs &&
      folder.stat.ctimeNs > stat.mtimeNs,
  );
}

/** Without processes nobody writes any more; what was renamed was finished before. */
function hasYoung(
  files: readonly FoundFile[],
  listing: Listing,
  { clock, pids }: Pick<SnapshotOptions, 'clock' | 'pids'>,
): boolean {
  const settled = BigInt(clock.now() - SETTLE_MS);
  const isYoung = (file: FoundFile): boolean =>
    file.stat.ctimeMs > settled && !wasRenamed(file, listing.folders);
  return files.some(isYoung) && pids().length > 0;
}

function compose(
  listing: Listing,
  now: { known: Record['known']; stored: ReadonlySet<string> },
  last: Manifest,
): Snapshot {
  const known: Record['known'] = {};
  const files: ManifestFile[] = [];
  const skipped: string[] = [];
  for (const file of listing.files) {
    const entry = now.known[file.path];
    if (!entry || !(isKnown(file, now.known) || now.stored.has(file.path))) {
      skipped.push(file.path);
      continue;
    }
    known[file.path] = entry;
    files.push(entry.file);
  }
  const manifest: Manifest = {
    version: 1,
    files,
    links: listing.links,
    folders: emptyFolders(listing),
  };
  return { manifest: skipped.length === 0 ? manifest : withLast(manifest, last), known, skipped };
}

/** What there was before, where nothing newer is in its place. */
function withLast(manifest: Manifest, last: Manifest): Manifest {
  const entries = [...manifest.files, ...manifest.links];
  const taken = new Set(entries.flatMap(({ path }) => [path, ...parentsOf(path)]));
  const leaves = new Set(entries.map(({ path }) => path));
  const isFree = ({ path }: ManifestFile | ManifestLink): boolean =>
    !taken.has(path) && !parentsOf(path).some((parent) => leaves.has(parent));
  const files = [...manifest.files, ...last.files.filter(isFree)];
  const links = [...manifest.links, ...last.links.filter(isFree)];
  const filled = new Set([...files, ...links].flatMap(({ path }) => [path, ...parentsOf(path)]));
  const folders = manifest.folders.filter((folder) => !filled.has(folder));
  return { version: 1, files, links, folders };
}
