/** A blob store over HTTP in memory, as agents see it, for the tests of this part. */
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import type { BlobClientOptions } from '../../protocol/blobClient.ts';

export interface FakeBlobs {
  options: BlobClientOptions;
  blobs: Map<string, Buffer>;
  /** How many were sent. */
  puts: number;
  /** Called before a blob is answered. */
  onPut: () => void;
  close(): Promise<void>;
}

export async function startFakeBlobs(): Promise<FakeBlobs> {
  const blobs = new Map<string, Buffer>();
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    const answer = (status: number, body: unknown): void => {
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify(body));
    };
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks);
      const hash = request.url?.split('/').at(-1) ?? '';
      if (request.method === 'POST') {
        const { hashes } = JSON.parse(body.toString()) as { hashes: string[] };
        answer(200, { data: { missing: hashes.filter((one) => !blobs.has(one)) }, meta: {} });
      } else if (request.method === 'PUT') {
        fake.onPut();
        const found = `sha256:${createHash('sha256').update(body).digest('hex')}`;
        if (found !== hash) return answer(400, { code: 'INVALID_ARGUMENT', detail: 'other bytes' });
        fake.puts++;
        blobs.set(hash, body);
        answer(201, { data: { hash, size: body.length, created: true }, meta: {} });
      } else if (blobs.has(hash)) response.end(blobs.get(hash));
      else answer(404, { code: 'NOT_FOUND', detail: `no ${hash}` });
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const fake: FakeBlobs = {
    options: { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` },
    blobs,
    puts: 0,
    onPut: () => undefined,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  return fake;
}
