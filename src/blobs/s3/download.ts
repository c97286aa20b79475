/** Reads an object; where the connection breaks on the way it goes on at the byte it was at. */
import { Readable } from 'node:stream';
import { DroverError } from '../../lib/errors.ts';
import type { BlobRange } from '../contract.ts';
import type { S3Answer, S3Client } from './client.ts';
import { BLOB_LIMITS } from '../limits.ts';
import { S3_LIMITS } from './limits.ts';

interface Download {
  key: string;
  range: BlobRange | undefined;
  absent: (answer: S3Answer) => Promise<never>;
}

interface Answered {
  body: Readable;
  size: number;
}

/** The first answer is awaited here, so that absence is an error of the call, not of a stream. */
export async function download(
  client: S3Client,
  { key, range, absent }: Download,
): Promise<Readable> {
  const from = async (start: number): Promise<Answered> => {
    const end = range ? range.end : '';
    const headers = start > 0 || range ? { range: `bytes=${start}-${end}` } : {};
    const answer = await client.stream({ method: 'GET', key, headers });
    if (!answer.body) return absent(answer);
    return { body: answer.body, size: Number(answer.headers['content-length']) };
  };
  const start = range?.start ?? 0;
  const first = await from(start);
  const options = { objectMode: false, highWaterMark: BLOB_LIMITS.bufferBytes };
  const stream = Readable.from(resumed(first, start, from), options);
  // A stream that is ended before its first byte was asked for never runs what is below.
  first.body.on('error', () => {});
  stream.once('close', () => first.body.destroy());
  return stream;
}

async function* resumed(
  first: Answered,
  start: number,
  from: (start: number) => Promise<Answered>,
): AsyncGenerator<Uint8Array> {
  const end = start + first.size;
  let at = start;
  let { body } = first;
  for (let failures = 0; ;) {
    try {
      for await (const chunk of body as AsyncIterable<Buffer>) {
        at += chunk.length;
        failures = 0;
        yield chunk;
      }
      if (at >= end) return;
      throw new Error(`the answer ended ${end - at} bytes early`);
    } catch (cause) {
      if (at >= end) return;
      if (++failures < S3_LIMITS.tries) {
        body = (await from(at)).body;
        continue;
      }
      const detail = `The S3 of the blob store broke off at byte ${at}`;
      throw new DroverError('UNAVAILABLE', detail, { hint: 'Read on from there.', cause });
    }
  }
}
