/**
 * What a command leaves: everything in `$DROVER_RESULT_DIR`, and what the patterns of its job mean.
 * It is stored before the end is told, so that a job that succeeded has its result.
 */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { manifestBytes, type Manifest, type ManifestFile } from '../../model/manifest.ts';
import type { BlobClientOptions } from '../../protocol/blobClient.ts';
import type { Step } from '../around.ts';
import { emptyFolders, listFolder, parentsOf, type Listing } from '../folders/listFolder.ts';
import { storeFiles, type FileToStore } from '../folders/storeFiles.ts';
import { isRefusal, storeManifest } from '../folders/storeManifest.ts';
import type { Finish, Kept } from '../runtimes/around.ts';
import { RESULT_FOLDER } from '../runtimes/task.ts';
import { listMatching } from './patterns.ts';

/** So often a file that changes while it is read is read again. */
const TRIES = 3;
/** So many things that could not be kept are named; the rest is a number. */
const NAMED = 3;

export function createResults(blobsOf: (uid: string) => BlobClientOptions): Step {
  return {
    needsFinish: (order, home) => (order.outputs?.length ?? 0) > 0 || hasResult(home),
    async finish(finish) {
      const { order, signal, say } = finish;
      try {
        return await keepResult(blobsOf(order.uid), finish);
      } catch (error) {
        if (isRefusal(error)) {
          const why = error.hint ? `${error.message}. ${error.hint}` : error.message;
          return { unstored: true, message: `its result could not be kept: ${why}` };
        }
        if (!signal.aborted) say(`its result is not stored yet: ${(error as Error).message}`);
        throw error;
      }
    },
  };
}

function hasResult(home: string): boolean {
  try {
    return readdirSync(join(home, RESULT_FOLDER)).length > 0;
  } catch (error) {
    // Removed by the command itself, or by an agent from before there was one.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
}

async function keepResult(blobs: BlobClientOptions, finish: Finish): Promise<Kept> {
  const { home, signal, say } = finish;
  const found = findResult(finish);
  const bytes = found.files.reduce((sum, { stat }) => sum + Number(stat.size), 0);
  say(`storing its result: ${found.files.length} files, ${bytes} bytes`);
  const { files, changed } = await storeAll(blobs, found.files, signal);
  for (const path of changed) found.others.push(`${path} is being written to by others`);
  const manifest: Manifest = {
    version: 1,
    files,
    links: found.links,
    folders: emptyFolders(found),
  };
  const stored = await storeManifest(blobs, manifest, join(home, 'result.json'), signal);
  const result = { manifest: stored, bytes: manifestBytes(manifest) };
  return found.others.length === 0 ? { result } : { result, message: describe(found.others) };
}

/** Nobody of the attempt writes any more, but an output may lie where others do. */
async function storeAll(
  blobs: BlobClientOptions,
  files: FileToStore[],
  signal: AbortSignal,
): Promise<{ files: ManifestFile[]; changed: string[] }> {
  const stored: ManifestFile[] = [];
  let left = files;
  for (let tried = 0; tried < TRIES && left.length > 0; tried++) {
    const outcomes = await storeFiles(blobs, left, { signal });
    stored.push(...outcomes.flatMap((one) => (one.kind === 'stored' ? [one.file] : [])));
    left = left.filter((_, at) => outcomes[at]?.kind === 'changed');
  }
  return { files: stored, changed: left.map(({ path }) => path) };
}

/** A path that is in both is the result directory's. */
function findResult({ home, order, task }: Finish): Listing {
  const own = listFolder(join(home, RESULT_FOLDER));
  const outputs = order.outputs ? listMatching(task.workdir, order.outputs) : undefined;
  if (!outputs) return own;
  const leaves = new Set([...own.files, ...own.links].map(({ path }) => path));
  const taken = new Set([...leaves, ...own.folders.map(({ path }) => path)]);
  const isFree = ({ path }: { path: string }): boolean =>
    !taken.has(path) && !parentsOf(path).some((parent) => leaves.has(parent));
  return {
    files: [...own.files, ...outputs.files.filter(isFree)],
    links: [...own.links, ...outputs.links.filter(isFree)],
    folders: [...own.folders, ...outputs.folders.filter(isFree)],
    others: [...own.others, ...outputs.others],
  };
}

function describe(others: readonly string[]): string {
  const more = others.length > NAMED ? ` and ${others.length - NAMED} more` : '';
  return `not kept with its result: ${others.slice(0, NAMED).join(', ')}${more}`;
}
