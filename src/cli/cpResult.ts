/** A part of what a task left, once it has ended. */
import path from 'node:path';
import { DroverError } from '../lib/errors.ts';
import { isBlobHash } from '../model/blob.ts';
import type { Manifest } from '../model/manifest.ts';
import { getBlob } from '../protocol/blobClient.ts';
import { fetchFolder, fetchManifest } from '../protocol/folderClient.ts';
import type { CommandContext } from './command.ts';
import { splitTask } from './logs.ts';

/** Puts it at `scratch/copy`. */
export async function copyFromResult(
  context: CommandContext,
  task: string,
  remote: string,
  scratch: string,
): Promise<void> {
  const { id, task: index } = splitTask(task, undefined);
  const { manifest } = await context.client().getResult(id, index);
  const blobs = context.blobs();
  const listed = await fetchManifest(blobs, manifest, path.join(scratch, 'manifest'));
  const wanted = path.posix.normalize(remote).replace(/^\/+|\/+$/g, '');
  const copy = path.join(scratch, 'copy');
  const file = listed.files.find((one) => one.path === wanted);
  if (file && isBlobHash(file.hash)) {
    await getBlob(blobs, file.hash, copy);
    return;
  }
  const part = below(listed, wanted === '.' ? '' : `${wanted}/`);
  if (part.files.length + part.links.length + part.folders.length === 0) {
    throw new DroverError('NOT_FOUND', `the result of ${task} has no ${remote}`, {
      hint: `The task has ended: only what it left is there; list it with: drover result ${task}`,
    });
  }
  await fetchFolder(blobs, part, copy);
}

function below({ files, links, folders }: Manifest, prefix: string): Manifest {
  const inside = <Entry extends { path: string }>(entries: Entry[]): Entry[] =>
    entries
      .filter((entry) => entry.path.startsWith(prefix))
      .map((entry) => ({ ...entry, path: entry.path.slice(prefix.length) }));
  return {
    version: 1,
    files: inside(files),
    links: inside(links),
    folders: folders.filter((at) => at.startsWith(prefix)).map((at) => at.slice(prefix.length)),
  };
}
