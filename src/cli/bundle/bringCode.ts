/**
 * The code of a job: a relative `workdir` is a folder here and goes along as a bundle, an absolute
 * one is a directory that the worker has.
 */
import path from 'node:path';
import { blobHashOf } from '../../model/blob.ts';
import { missingBlobs, putBytes } from '../../protocol/blobClient.ts';
import type { SubmittedSpec } from '../../protocol/jobSpec.ts';
import type { CommandContext } from '../command.ts';
import { withFoundLock } from '../environmentDraft.ts';
import { parseMemory, showMemory } from '../resources.ts';
import { commitOf } from './git.ts';
import { openHashCache } from './hashCache.ts';
import { sendFolder } from './send.ts';
import { BUNDLE_LIMITS, walkFolder, type WalkOptions } from './walk.ts';

export const BUNDLE_OPTION = {
  kind: 'text',
  value: 'SIZE',
  help: `of --workdir, instead of ${showMemory(BUNDLE_LIMITS.totalBytes)}`,
} as const;

type Code = NonNullable<SubmittedSpec['code']>;

/** The specs with their folders sent and named; each folder is sent once. */
export async function bringCode(
  context: CommandContext,
  specs: readonly SubmittedSpec[],
  bundleLimit?: string,
): Promise<SubmittedSpec[]> {
  const limits = bundleLimits(bundleLimit);
  const sent = new Map<string, Promise<Code>>();
  const bring = (folder: string): Promise<Code> => {
    const code = sent.get(folder) ?? sendCode(context, folder, limits);
    sent.set(folder, code);
    return code;
  };
  const brought: SubmittedSpec[] = [];
  for (const { workdir, ...spec } of specs) {
    if (!workdir || path.isAbsolute(workdir)) {
      brought.push(workdir ? { ...spec, workdir } : spec);
    } else {
      const folder = path.resolve(context.io.cwd, workdir);
      const code = await bring(folder);
      brought.push(withFoundLock({ ...spec, code }, folder));
    }
  }
  return brought;
}

function bundleLimits(text: string | undefined): WalkOptions {
  const hint =
    'leave out what it does not need by lines in .gitignore or .droverignore, put data up by ' +
    '`drover data put`, or allow more with --bundle-limit SIZE';
  const limits = { ...BUNDLE_LIMITS, ignoreFiles: ['.gitignore', '.droverignore'], hint };
  if (text === undefined) return limits;
  const most = parseMemory(text, '--bundle-limit');
  return { ...limits, fileBytes: most, totalBytes: most };
}

async function sendCode(context: CommandContext, root: string, limits: WalkOptions): Promise<Code> {
  const { io } = context;
  const blobs = context.blobs();
  const found = walkFolder(root, limits);
  const cache = openHashCache(io.env, root, io.now());
  const say = async (text: string): Promise<void> => {
    if (io.stderr.isTTY) await context.notice(text);
  };
  const sent = await sendFolder(found, { blobs, root, cache, say });
  await say(`code: ${sent.files} files, ${showMemory(sent.bytes)}; sent ${sent.sentFiles} of them`);
  const { commit, diff } = await commitOf(root);
  if (diff === undefined) await context.notice('the changes since the commit are too many to keep');
  return { bundle: sent.manifest, commit, diff: await sendDiff(blobs, diff ?? '') };
}

async function sendDiff(blobs: ReturnType<CommandContext['blobs']>, diff: string): Promise<string> {
  if (diff === '') return '';
  const bytes = Buffer.from(diff);
  const hash = blobHashOf(bytes);
  if ((await missingBlobs(blobs, [hash])).length > 0) await putBytes(blobs, bytes);
  return hash;
}
