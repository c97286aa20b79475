/** Before the command starts: its directory, with what the newest whole checkpoint held. */
import { lstatSync, mkdirSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import type { Manifest } from '../../model/manifest.ts';
import type { BlobClientOptions } from '../../protocol/blobClient.ts';
import { fetchFolder, fetchManifest, TornFolder } from '../../protocol/folderClient.ts';
import { identityOf } from '../folders/storeFiles.ts';
import { Unprepared, type Preparation } from '../runtimes/around.ts';
import { CHECKPOINT_FOLDER, NOTHING, writeRecord, type Known } from './record.ts';

export async function restore(blobs: BlobClientOptions, preparation: Preparation): Promise<void> {
  const { order, stage, home, task, facts } = preparation;
  const folder = join(stage, CHECKPOINT_FOLDER);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  task.env['DROVER_CHECKPOINT_DIR'] = join(home, CHECKPOINT_FOLDER);
  task.env['DROVER_RESUME'] = '0';
  const found = await newestWhole(blobs, preparation, folder);
  if (found) {
    task.env['DROVER_RESUME'] = '1';
    facts['resumed from'] = found.hash;
  }
  const manifest = found?.manifest ?? NOTHING;
  writeRecord(stage, { manifest, known: knownOf(folder, manifest) });
  const dir = order.checkpoint?.dir ?? '';
  if (dir !== '') placeLink(preparation, dir);
}

async function newestWhole(
  blobs: BlobClientOptions,
  { order, stage, signal, say, facts }: Preparation,
  folder: string,
): Promise<{ hash: string; manifest: Manifest } | undefined> {
  const torn: string[] = [];
  for (const hash of order.restore ?? []) {
    try {
      say('restoring its checkpoint');
      const manifest = await fetchManifest(blobs, hash, join(stage, 'manifest'), signal);
      await fetchFolder(blobs, manifest, folder, { signal });
      return { hash, manifest };
    } catch (error) {
      if (!(error instanceof TornFolder)) throw error;
      torn.push(`${hash}: ${error.message}`);
      facts['torn checkpoints'] = torn.join('; ');
      rmSync(folder, { recursive: true, force: true });
      mkdirSync(folder, { mode: 0o700 });
    }
  }
  if (torn.length === 0) return undefined;
  // To begin anew would be a day's work lost without a word.
  throw new Unprepared(
    `none of its ${torn.length} checkpoints is whole (${torn.join('; ')}); ` +
      'submit it again to begin anew',
  );
}

/** Restored files need not be read again to know what they hold. */
function knownOf(folder: string, { files }: Manifest): { [path: string]: Known } {
  return Object.fromEntries(
    files.map((file) => {
      const stat = lstatSync(join(folder, file.path), { bigint: true });
      return [file.path, { identity: identityOf(stat), file }];
    }),
  );
}

/** The command finds the directory where it looks for it, below its working directory. */
function placeLink({ stage, home, task }: Preparation, dir: string): void {
  const wanted = resolve(task.workdir, dir);
  const inside = relative(home, wanted);
  const place = inside.startsWith('..') ? wanted : join(stage, inside);
  mkdirSync(dirname(place), { recursive: true });
  const there = lstatSync(place, { throwIfNoEntry: false });
  // A folder with nothing in it, or the link of an earlier attempt, makes room.
  const free = !there || there.isSymbolicLink() || (there.isDirectory() && isEmpty(place));
  if (!free) {
    throw new Unprepared(
      `${dir} cannot be the checkpoint directory: there is something in the working directory ` +
        'under that name already; remove it or name another with checkpoint.dir',
    );
  }
  rmSync(place, { recursive: true, force: true });
  symlinkSync(join(home, CHECKPOINT_FOLDER), place);
}

/** What only keeps an empty folder in a repository does not count. */
function isEmpty(folder: string): boolean {
  return readdirSync(folder).every((name) => name === '.gitkeep' || name === '.gitignore');
}
