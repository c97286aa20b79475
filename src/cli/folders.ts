/** Folders that jobs left, from the server to here. */
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { fetchFolder, fetchManifest } from '../protocol/folderClient.ts';
import type { CommandContext } from './command.ts';
import { showMemory } from './resources.ts';
import { clientVersion } from './versionNumber.ts';

/** Files that are there already are replaced; others are left alone. */
export async function fetchInto(
  context: CommandContext,
  manifest: string,
  directory: string,
): Promise<void> {
  const { url, token } = context.connection();
  const blobs = { url, token, userAgent: `drover-cli/${clientVersion()}` };
  const target = path.resolve(context.io.cwd, directory);
  await mkdir(target, { recursive: true });
  const listed = await fetchManifest(blobs, manifest, path.join(target, '.drover-manifest'));
  await fetchFolder(blobs, listed, target);
  const bytes = listed.files.reduce((sum, { size }) => sum + size, 0);
  await context.notice(`${listed.files.length} files, ${showMemory(bytes)}, in ${target}`);
}
