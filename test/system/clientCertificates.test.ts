/** A gateway that asks for certificates: every client of ours shows the one it was given. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { WebSocketServer } from 'ws';
import { httpTransport } from '../../src/agent/transport.ts';
import { startTestGateway, type TestGateway } from '../../src/gateway/testGateway.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { silentLog } from '../../src/lib/log.ts';
import { TlsFiles } from '../../src/lib/tls/files.ts';
import { missingBlobs } from '../../src/protocol/blobClient.ts';
import { createClient } from '../../src/protocol/client.ts';
import { useClientTls, useClientTlsFiles } from '../../src/protocol/clientTls.ts';
import { connectWebSocket } from '../../src/protocol/tunnel/webSocket.ts';
import { createAuthority } from '../support/certificates.ts';

const authority = createAuthority('lab CA');
const folder = mkdtempSync(path.join(tmpdir(), 'drover-certificates-'));
const sockets = new WebSocketServer({ noServer: true });
let gateway: TestGateway;
let tls: TlsFiles;

function write(name: string, text: string): { setting: string; path: string } {
  const file = path.join(folder, name);
  writeFileSync(file, text);
  return { setting: name, path: file };
}

beforeAll(async () => {
  const { cert, key } = authority.issue('server');
  const files = {
    cert: write('cert', cert),
    key: write('key', key),
    ca: write('ca', authority.cert),
  };
  tls = new TlsFiles({ files, clock: systemClock, log: silentLog });
  gateway = await startTestGateway(
    {},
    {
      tls,
      upgrade: (request, socket, head) =>
        sockets.handleUpgrade(request, socket as never, head, (one) => one.send('welcome')),
    },
  );
});
afterAll(async () => {
  await gateway.close();
  tls.close();
  rmSync(folder, { recursive: true });
});

const calls: [string, () => Promise<unknown>][] = [
  ['fetch', () => createClient({ url: gateway.url, token: gateway.fake.adminToken }).cluster()],
  [
    'undici',
    async () => {
      const error = (await missingBlobs({ url: gateway.url }, [`sha256:${'0'.repeat(64)}`]).catch(
        (refusal: unknown) => refusal,
      )) as { status?: number };
      // There are no blobs behind this gateway; it is enough that it was asked.
      if (error.status !== 404) throw error as unknown as Error;
    },
  ],
  [
    'an agent',
    async () => {
      const transport = httpTransport(gateway.url);
      await transport.attemptSecrets('t', 'u').finally(() => transport.close());
    },
  ],
  [
    'a WebSocket',
    () =>
      connectWebSocket(
        { url: gateway.url, protocol: 'x', headers: {}, maxMessageBytes: 100 },
        (socket) => socket.terminate(),
      ),
  ],
];

test('without one nobody gets in, with one everybody does', async () => {
  useClientTls({ ca: authority.cert });
  // The other two go on trying for a while: they cannot tell it from a server that starts again.
  for (const [who, run] of calls.slice(2)) await expect(run(), who).rejects.toThrow();
  const { cert, key } = authority.issue('ada');
  const files = { certFile: write('ada.pem', cert).path, keyFile: write('ada.key', key).path };
  useClientTlsFiles({ caFile: path.join(folder, 'ca'), ...files });
  for (const [who, run] of calls) {
    await expect(run().then(() => who)).resolves.toBe(who);
  }
}, 60_000);
