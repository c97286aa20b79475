/** A gateway with TLS that asks for a certificate: trusted and answered as an agent would. */
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { expect, test } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { createAuthority } from '../../test/support/certificates.ts';
import { silentLog } from '../lib/log.ts';
import { useClientTls } from '../protocol/clientTls.ts';
import { startRelay } from './relay.ts';

test('calls and tunnels pass to a gateway that is trusted, and to no other', async () => {
  const authority = createAuthority('lab');
  const { cert, key } = authority.issue('gateway');
  const own = { requestCert: true, rejectUnauthorized: true, ca: authority.cert };
  const gateway = createServer({ cert, key, ...own }, (request, response) => {
    response.end((request.socket as TLSSocket).getPeerCertificate().subject.CN);
  });
  const sockets = new WebSocketServer({ server: gateway });
  sockets.on('connection', (socket) => socket.send('hello'));
  await new Promise<void>((resolve) => gateway.listen(0, '127.0.0.1', resolve));
  const target = new URL(`https://127.0.0.1:${(gateway.address() as AddressInfo).port}`);
  const relay = await startRelay({ target, host: '127.0.0.1', port: 0, log: silentLog });
  try {
    const ask = (): Promise<Response> => fetch(`${relay.url}/install/agent.sha256`);
    expect((await ask()).status).toBe(503);
    const shown = authority.issue('connector');
    useClientTls({ ca: authority.cert, cert: shown.cert, key: shown.key });
    const response = await ask();
    expect([response.status, await response.text()]).toEqual([200, 'connector']);
    const socket = new WebSocket(`${relay.url.replace('http', 'ws')}/v1/tunnel`);
    const said = await new Promise((resolve, reject) => {
      socket.on('message', (data) => resolve((data as Buffer).toString()));
      socket.on('error', reject);
    });
    expect(said).toBe('hello');
    socket.terminate();
  } finally {
    await relay.close();
    for (const socket of sockets.clients) socket.terminate();
    gateway.closeAllConnections();
    await new Promise((resolve) => gateway.close(resolve));
  }
});
