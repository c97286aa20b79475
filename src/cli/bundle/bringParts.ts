/** Everything of this machine that jobs name is sent before they are: their code, their inputs. */
import path from 'node:path';
import { statSync } from 'node:fs';
import { hashFile, missingBlobs, putBlob } from '../../protocol/blobClient.ts';
import type { BlobClientOptions } from '../../protocol/blobClient.ts';
import type { SubmittedSpec } from '../../protocol/jobSpec.ts';
import { UsageError } from '../args.ts';
import type { CommandContext } from '../command.ts';
import { HAS_SCHEME } from '../inputDraft.ts';
import { bringCode } from './bringCode.ts';
import { openHashCache } from './hashCache.ts';
import { sendFolder } from './send.ts';
import { walkFolder, type WalkOptions } from './walk.ts';

type Input = NonNullable<SubmittedSpec['inputs']>[number];

/** What was named is meant: nothing is left out, however large. */
const EVERYTHING: WalkOptions = {
  ignoreFiles: [],
  fileBytes: Number.MAX_SAFE_INTEGER,
  totalBytes: Number.MAX_SAFE_INTEGER,
  files: 1_000_000,
  hint: 'split it into several',
};

export async function bringParts(
  context: CommandContext,
  specs: readonly SubmittedSpec[],
  bundleLimit?: string,
): Promise<SubmittedSpec[]> {
  const sent = new Map<string, Promise<SentData>>();
  const bring = async (input: Input): Promise<Input> => {
    if (HAS_SCHEME.test(input.uri)) return input;
    const local = path.resolve(context.io.cwd, input.uri);
    const sending = sent.get(local) ?? sendData(context, local);
    sent.set(local, sending);
    const { hash, folder } = await sending;
    return { ...input, uri: `${folder ? 'tree' : 'blob'}:${hash}` };
  };
  const withCode = await bringCode(context, specs, bundleLimit);
  return Promise.all(
    withCode.map(async (spec) =>
      spec.inputs ? { ...spec, inputs: await Promise.all(spec.inputs.map(bring)) } : spec,
    ),
  );
}

export interface SentData {
  hash: string;
  /** A folder's hash is that of its manifest. */
  folder: boolean;
  files: number;
  bytes: number;
  sentBytes: number;
}

/** A file or a folder of this machine, whole. */
export async function sendData(context: CommandContext, local: string): Promise<SentData> {
  const blobs = context.blobs();
  const { io } = context;
  const say = async (text: string): Promise<void> => {
    if (io.stderr.isTTY) await context.notice(text);
  };
  if (kindOf(local) === 'file') return sendOne(blobs, local);
  const found = walkFolder(local, EVERYTHING);
  const cache = openHashCache(io.env, local, io.now());
  const sent = await sendFolder(found, { blobs, root: local, cache, say });
  const { manifest: hash, files, bytes, sentBytes } = sent;
  return { hash, folder: true, files, bytes, sentBytes };
}

function kindOf(local: string): 'file' | 'folder' {
  let stat;
  try {
    stat = statSync(local);
  } catch (error) {
    throw new UsageError(`${local} cannot be read: ${(error as Error).message}`);
  }
  if (stat.isFile()) return 'file';
  if (stat.isDirectory()) return 'folder';
  throw new UsageError(`${local} is neither a file nor a folder`);
}

async function sendOne(blobs: BlobClientOptions, local: string): Promise<SentData> {
  const { hash, size: bytes } = await hashFile(local);
  const missing = await missingBlobs(blobs, [hash]);
  if (missing.length > 0) await putBlob(blobs, local, { hash, size: bytes });
  return { hash, folder: false, files: 1, bytes, sentBytes: missing.length > 0 ? bytes : 0 };
}
