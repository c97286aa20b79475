/**
 * A sealed segment: the blocks of an open one, each compressed on its own, then their index.
 *
 *   file    = magic, block (a zstd frame)*, index (zstd of JSON), trailer
 *   trailer = index length u32, crc32(index) u32, magic
 */
import type { FileHandle } from 'node:fs/promises';
import { open, rename } from 'node:fs/promises';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { constants, crc32, zstdCompress, zstdDecompress } from 'node:zlib';
import { DroverError } from '../../lib/errors.ts';
import {
  readExactly,
  syncFolder,
  writeExactly,
  type Block,
  type Segment,
  type SegmentAttempt,
} from './segment.ts';

const MAGIC = Buffer.from('DRVSEAL1', 'latin1');
const TRAILER_BYTES = 8 + MAGIC.length;
/** Level 1: the sealer shares two cores with what it must keep up with. */
const LEVEL = 1;
/** No record is larger, so a larger block is damage, not data. */
const MAX_BLOCK_BYTES = 64 * 1024 * 1024;

const zip = promisify(zstdCompress);
const unzip = promisify(zstdDecompress);
/** Output comes in pieces of this size, 16 KiB unless told; each costs more than its bytes. */
const PACKED_PIECE_BYTES = 64 * 1024;
const BLOCK_PIECE_BYTES = 256 * 1024;
const compress = (bytes: Buffer): Promise<Buffer> =>
  zip(bytes, {
    params: { [constants.ZSTD_c_compressionLevel]: LEVEL },
    chunkSize: PACKED_PIECE_BYTES,
  });

interface SealedIndex {
  blocks: (Omit<Block, 'tasks'> & { tasks: number[] })[];
  attempts: SegmentAttempt[];
  kept: number;
  noticed: boolean;
}

/** Compresses a segment that is no longer appended to. The open one is the caller's to remove. */
export async function sealSegment(segment: Segment, target: string): Promise<Segment> {
  const temporary = `${target}.tmp`;
  const source = await open(segment.path, 'r');
  try {
    const output = await open(temporary, 'w');
    try {
      const sealed = await writeSealed(segment, source, output);
      await output.sync();
      await rename(temporary, target);
      await syncFolder(dirname(target));
      return { ...sealed, path: target };
    } finally {
      await output.close();
    }
  } finally {
    await source.close();
  }
}

async function writeSealed(
  segment: Segment,
  source: FileHandle,
  output: FileHandle,
): Promise<Segment> {
  await writeExactly(output, MAGIC, 0);
  let position = MAGIC.length;
  const blocks: Block[] = [];
  for (const block of segment.blocks) {
    const raw = await readExactly(source, block.position, block.length);
    if (raw.length !== block.length) throw damaged(segment.path);
    const packed = await compress(raw);
    await writeExactly(output, packed, position);
    blocks.push({ ...block, position, length: packed.length });
    position += packed.length;
  }
  const { attempts, kept, noticed } = segment;
  const index: SealedIndex = {
    blocks: blocks.map((block) => ({ ...block, tasks: [...block.tasks] })),
    attempts,
    kept,
    noticed,
  };
  const packed = await compress(Buffer.from(JSON.stringify(index)));
  const trailer = Buffer.alloc(8);
  trailer.writeUInt32BE(packed.length, 0);
  trailer.writeUInt32BE(crc32(packed), 4);
  await writeExactly(output, Buffer.concat([packed, trailer, MAGIC]), position);
  return { ...segment, phase: 'sealed', bytes: position, blocks, refs: new Map() };
}

/** Reads the index; the blocks stay on disk. */
export async function openSealed(ordinal: number, path: string): Promise<Segment> {
  const handle = await open(path, 'r');
  try {
    const { size } = await handle.stat();
    if (size < MAGIC.length + TRAILER_BYTES) throw damaged(path);
    const trailer = await readExactly(handle, size - TRAILER_BYTES, TRAILER_BYTES);
    const indexBytes = trailer.readUInt32BE(0);
    const bytes = size - TRAILER_BYTES - indexBytes;
    if (!trailer.subarray(8).equals(MAGIC) || bytes < MAGIC.length) throw damaged(path);
    const packed = await readExactly(handle, bytes, indexBytes);
    if (crc32(packed) !== trailer.readUInt32BE(4)) throw damaged(path);
    const index = JSON.parse((await unzip(packed)).toString('utf8')) as SealedIndex;
    const { attempts, kept, noticed } = index;
    const blocks = index.blocks.map((block) => ({ ...block, tasks: new Set(block.tasks) }));
    const refs = new Map<string, number>();
    return {
      ordinal,
      path,
      phase: 'sealed',
      closedAtMs: 0,
      bytes,
      blocks,
      attempts,
      refs,
      kept,
      noticed,
    };
  } finally {
    await handle.close();
  }
}

export async function decompressBlock(path: string, packed: Buffer): Promise<Buffer> {
  try {
    return await unzip(packed, {
      maxOutputLength: MAX_BLOCK_BYTES,
      chunkSize: BLOCK_PIECE_BYTES,
    });
  } catch (cause) {
    throw damaged(path, cause);
  }
}

export function damaged(path: string, cause?: unknown): DroverError {
  return new DroverError('INTERNAL', `the log segment ${path} is damaged`, {
    hint: 'The disk returned other bytes than were written: restore this file from a backup.',
    cause,
  });
}
