/** What many files as one input may be. */
import { expect, test } from 'vitest';
import { FOLDER_FILES, fetchFolder } from './folder.ts';
import type { Arrival } from './source.ts';

test('more files than the limit are refused before any is fetched', async () => {
  const input = { name: 'it', uri: 's3://bucket/all/', hash: '' };
  const arrival = { input, target: '/nowhere' } as Arrival;
  const paths = Array.from({ length: FOLDER_FILES + 1 }, (_, at) => `f${at}`);
  const fetching = fetchFolder(arrival, paths, () => Promise.reject(new Error('fetched')));
  await expect(fetching).rejects.toThrow(`s3://bucket/all/ has more than ${FOLDER_FILES} files`);
});
