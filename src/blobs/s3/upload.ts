/**
 * Puts an object: in one call, or in parts whose object appears only when the last call says so.
 * Every body is signed by its hash and carries it as a checksum, so that S3 refuses what changed
 * on the way.
 */
import { DroverError } from '../../lib/errors.ts';
import { bodyOf, type S3Answer, type S3Body, type S3Client } from './client.ts';
import { S3_LIMITS } from './limits.ts';
import { escapeXml, textOf } from '../../lib/s3Xml.ts';

interface Part {
  number: number;
  etag: string;
  checksum: string;
}

/** `content` throws where it is not what it should be, and then nothing appears. */
export async function upload(
  client: S3Client,
  key: string,
  size: number,
  content: AsyncIterable<Uint8Array>,
): Promise<void> {
  if (size > S3_LIMITS.partBytes) return uploadInParts(client, key, size, content);
  const chunks: Uint8Array[] = [];
  for await (const chunk of content) chunks.push(chunk);
  const body = bodyOf(Buffer.concat(chunks));
  found(await client.call({ method: 'PUT', key, body, headers: checksumOf(body) }));
}

async function uploadInParts(
  client: S3Client,
  key: string,
  size: number,
  content: AsyncIterable<Uint8Array>,
): Promise<void> {
  const headers = { 'x-amz-checksum-algorithm': 'SHA256' };
  const begun = found(await client.call({ method: 'POST', key, query: { uploads: '' }, headers }));
  const uploadId = textOf(begun.text, 'UploadId');
  if (!uploadId) throw new DroverError('UNAVAILABLE', 'S3 began an upload without naming it');
  try {
    const partBytes = Math.max(S3_LIMITS.partBytes, Math.ceil(size / S3_LIMITS.parts));
    const parts = await sendParts(client, { key, uploadId }, inParts(content, partBytes));
    await complete(client, { key, uploadId }, parts);
  } catch (error) {
    await abort(client, key, uploadId);
    throw error;
  }
}

interface Upload {
  key: string;
  uploadId: string;
}

/** A few at once; the next part is only gathered when one of them is through. */
async function sendParts(
  client: S3Client,
  { key, uploadId }: Upload,
  bodies: AsyncIterable<Buffer>,
): Promise<Part[]> {
  const parts: Part[] = [];
  const underWay = new Set<Promise<void>>();
  const sendPart = async (number: number, bytes: Buffer): Promise<void> => {
    const query = { partNumber: String(number), uploadId };
    const body = bodyOf(bytes);
    const headers = checksumOf(body);
    const answer = found(await client.call({ method: 'PUT', key, query, body, headers }));
    const etag = String(answer.headers['etag'] ?? '');
    parts[number - 1] = { number, etag, checksum: headers['x-amz-checksum-sha256'] };
  };
  let number = 0;
  try {
    for await (const bytes of bodies) {
      const sending = sendPart(++number, bytes);
      underWay.add(sending);
      sending.finally(() => underWay.delete(sending)).catch(() => {});
      if (underWay.size >= S3_LIMITS.partsAtOnce) await Promise.race(underWay);
    }
    await Promise.all(underWay);
  } finally {
    // An upload that is given up is removed when nothing more arrives for it.
    await Promise.allSettled(underWay);
  }
  return parts;
}

async function* inParts(
  content: AsyncIterable<Uint8Array>,
  partBytes: number,
): AsyncGenerator<Buffer> {
  let part = Buffer.allocUnsafe(partBytes);
  let filled = 0;
  for await (const chunk of content) {
    for (let taken = 0; taken < chunk.length;) {
      const piece = chunk.subarray(taken, taken + partBytes - filled);
      part.set(piece, filled);
      filled += piece.length;
      taken += piece.length;
      if (filled < partBytes) continue;
      yield part;
      part = Buffer.allocUnsafe(partBytes);
      filled = 0;
    }
  }
  if (filled > 0) yield part.subarray(0, filled);
}

async function complete(client: S3Client, upload: Upload, parts: Part[]): Promise<void> {
  const { key, uploadId } = upload;
  const list = parts.map(
    ({ number, etag, checksum }) =>
      `<Part><PartNumber>${number}</PartNumber><ETag>${escapeXml(etag)}</ETag>` +
      `<ChecksumSHA256>${checksum}</ChecksumSHA256></Part>`,
  );
  const bytes = Buffer.from(
    `<CompleteMultipartUpload xmlns="http://s3.amazonaws.com/doc/2006-03-01/">${list.join('')}` +
      '</CompleteMultipartUpload>',
  );
  const body = bodyOf(bytes);
  const answer = await client.call({ method: 'POST', key, query: { uploadId }, body });
  // S3 begins its answer before it is done: a failure may come as a success with an Error in it.
  const code = textOf(answer.text, 'Code');
  if (answer.status !== 404 && !code) return;
  // A first call may have done it, though its answer was lost.
  const there = await client.call({ method: 'HEAD', key });
  if (there.status !== 404) return;
  const detail = `S3 could not put the parts together (${code || 'status 404'})`;
  throw new DroverError('UNAVAILABLE', detail, { hint: 'Nothing was stored. Send it again.' });
}

/** What cannot be removed now is removed by a later start, see `leftoverMs`. */
async function abort(client: S3Client, key: string, uploadId: string): Promise<void> {
  await client.call({ method: 'DELETE', key, query: { uploadId } }).catch(() => {});
}

/** A 404 for a write: the bucket, or the upload, is gone. */
function found(answer: S3Answer): S3Answer {
  if (answer.status !== 404) return answer;
  const code = textOf(answer.text, 'Code') || 'status 404';
  throw new DroverError('UNAVAILABLE', `The bucket of the blob store is gone (${code})`, {
    hint: 'See blobs.bucket; nothing was stored.',
  });
}

function checksumOf({ digest }: S3Body) {
  return {
    'x-amz-sdk-checksum-algorithm': 'SHA256',
    'x-amz-checksum-sha256': digest.toString('base64'),
  };
}
