/** The code a job brought: its own writable copy, in the directory the command starts in. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import type { BlobClientOptions } from '../../protocol/blobClient.ts';
import type { Step } from '../around.ts';
import type { ContentCache } from '../cache/contentCache.ts';
import { blobFetch, copyWritable, placeTree, readManifest } from '../cache/place.ts';
import { Unprepared } from '../runtimes/around.ts';

export interface CodeOptions {
  cache: ContentCache;
  /** How the blobs of an attempt are fetched. */
  blobs: (attempt: string) => BlobClientOptions;
}

export function createCodeStep({ cache, blobs }: CodeOptions): Step {
  return {
    needsPreparation: ({ code }) => code !== undefined,
    async prepare({ order, stage, home, task, facts, signal, say }) {
      const { bundle, folder, commit } = order.code!;
      const fetchOf = blobFetch(blobs(order.uid), 'the code', signal);
      const placing = { cache, fetchOf, signal, say };
      say('fetching its code');
      const manifest = await readManifest(placing, bundle, 'the code');
      await placeTree(placing, manifest, join(stage, 'work'), copyWritable);
      if (folder && !isFolder(join(stage, 'work', folder))) {
        throw new Unprepared(`the code has no folder ${folder}`);
      }
      task.workdir = join(home, 'work', folder);
      facts['code.bundle'] = bundle;
      if (commit) facts['code.commit'] = commit;
    },
  };
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}
