/** Inputs by HTTP: one file, resumed where a connection broke, fetched again if it changed. */
import { isBlobHash } from '../../model/blob.ts';
import { linkReadOnly } from '../cache/place.ts';
import { checkHash } from './checkHash.ts';
import { download, type Request } from './download.ts';
import type { Arrival, Source } from './source.ts';

export const fromHttp: Source = (arrival) => fetchFile(arrival, { url: arrival.input.uri });

/** Has the file at the arrival's target and returns its hash. */
export async function fetchFile(arrival: Arrival, request: Request): Promise<string> {
  const { input, target, cache, notes, signal, say } = arrival;
  const link = (cached: string): Promise<void> => linkReadOnly(cached, target, false);
  if (isBlobHash(input.hash) && (await cache.useIfThere(input.hash, link))) return input.hash;
  const note = notes.read(request.url);
  const known = note && (await cache.has(note.hash)) ? note : undefined;
  const etags = known ? [known.etag, undefined] : [undefined];
  for (const etag of etags) {
    const hash = await cache.withPart(async (part, makeRoom) => {
      const got = await download(request, { part, makeRoom, signal, say, name: input.name, etag });
      if (got === 'unchanged') return undefined;
      checkHash(input, got.hash);
      // Linked before it is kept: in use from the first moment, nothing evicts it.
      await link(part);
      cache.keep(part, got.hash);
      if (got.etag) notes.write(request.url, { etag: got.etag, hash: got.hash });
      return got.hash;
    });
    if (hash !== undefined) return hash;
    checkHash(input, known!.hash);
    // Evicted while we asked: then it is fetched without a word on what we had.
    if (await cache.useIfThere(known!.hash, link)) return known!.hash;
  }
  throw new Error(`input ${input.name}: its server says "unchanged" without being asked`);
}
