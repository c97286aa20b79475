/** Inputs that lie in the blob store: a file, or a folder by its manifest. */
import { isBlobHash, type BlobHash } from '../../model/blob.ts';
import { blobFetch, linkReadOnly, placeTree, readManifest, type Placing } from '../cache/place.ts';
import { Unprepared } from '../runtimes/around.ts';
import type { Arrival, Source } from './source.ts';

export const fromBlob: Source = async (arrival) => {
  const hash = hashIn(arrival);
  const { cache, fetchOf } = placingOf(arrival);
  await cache.use(hash, fetchOf(hash), (path) => linkReadOnly(path, arrival.target, false));
  return hash;
};

export const fromTree: Source = async (arrival) => {
  const hash = hashIn(arrival);
  const placing = placingOf(arrival);
  const manifest = await readManifest(placing, hash, `input ${arrival.input.name}`);
  await placeTree(placing, manifest, arrival.target, linkReadOnly);
  const bytes = manifest.files.reduce((sum, { size }) => sum + size, 0);
  placing.cache.noteTree(hash, bytes);
  return hash;
};

function placingOf({ cache, blobs, input, signal, say }: Arrival): Placing {
  return { cache, fetchOf: blobFetch(blobs, `input ${input.name}`, signal), signal, say };
}

/** The address is the hash; one that is given besides must say the same. */
function hashIn({ input: { name, uri, hash } }: Arrival): BlobHash {
  const found = uri.slice(uri.indexOf(':') + 1);
  if (!isBlobHash(found)) throw new Unprepared(`input ${name}: ${uri} is not the name of a blob`);
  if (hash === '' || hash === found) return found;
  throw new Unprepared(`input ${name}: ${uri} does not have the hash ${hash} that was asked for`);
}
