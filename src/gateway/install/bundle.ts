/** The self-contained agent as it lies on disk: what `make agent-bundle` made, for one platform. */
import { open, readFile, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { DroverError } from '../../lib/errors.ts';

export const PLATFORMS = ['linux-x64', 'linux-arm64'] as const;
export type Platform = (typeof PLATFORMS)[number];

const bundleFacts = z.object({
  version: z.string(),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  bytes: z.int().min(1),
});

export interface Bundle extends z.output<typeof bundleFacts> {
  platform: Platform;
  /** Without the ending of its compressed copy. */
  file: string;
}

/** In the first of the folders that has one. */
export async function findBundle(folders: readonly string[], platform: Platform): Promise<Bundle> {
  for (const folder of folders) {
    const file = join(folder, `drover-agent-${platform}`);
    const text = await readIfThere(`${file}.json`);
    if (text !== undefined) return { ...bundleFacts.parse(JSON.parse(text)), platform, file };
  }
  throw new DroverError('NOT_FOUND', `This server has no agent for ${platform}`, {
    hint: `Run \`make agent-bundle\` on such a machine; server.installFolder says where it lies.`,
  });
}

/** Open, with its size. While it is being replaced, what names it may be of the one before. */
export async function openBundle(
  bundle: Bundle,
  isCompressed: boolean,
): Promise<{ file: FileHandle; size: number }> {
  const file = await open(isCompressed ? `${bundle.file}.gz` : bundle.file);
  const { size } = await file.stat();
  if (isCompressed || size === bundle.bytes) return { file, size };
  await file.close();
  throw new DroverError('UNAVAILABLE', 'The agent is being replaced on this server just now', {
    hint: 'Try again in a few seconds.',
  });
}

async function readIfThere(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
